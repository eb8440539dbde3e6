"""What the README shows is what the command writes, and the package page has no dead links."""

import re
import runpy

import pytest
from documents import ROOT, Text, blocks
from tf_lossscale_codemods.engine.transform import transform
from tf_lossscale_codemods.model import Options, Safety, Target

PAGE = (ROOT / "README.md").read_text(encoding="utf-8")
HOME = "https://example.org/home"


@pytest.fixture
def package_page(monkeypatch):
    """The function of setup.py that makes the package page."""
    monkeypatch.setattr("setuptools.setup", lambda **_: None)
    return runpy.run_path(str(ROOT / "setup.py"))["package_page"]


def test_the_diff_is_what_migrate_writes():
    (code,) = [block.code for block in blocks(Text("", 1, PAGE)) if block.language == "diff"]
    lines = code.splitlines()
    before = "".join(line[1:] + "\n" for line in lines if not line.startswith("+"))
    after = "".join(line[1:] + "\n" for line in lines if not line.startswith("-"))
    result = transform(before.encode(), Options(Target.SHIM))
    assert result.source.decode() == after
    assert {finding.outcome for finding in result.findings} == {Safety.SAFE}


def test_the_first_command_and_the_diff_come_at_once():
    words = PAGE.partition("pip install tf-lossscale")[0].split()
    assert len(words) < 80
    assert len(PAGE.split()) < 500


def test_links_of_the_readme_are_relative_and_those_of_the_package_page_absolute(package_page):
    links = re.findall(r"\]\(([^)]*)\)", PAGE)
    assert len(links) > 8
    assert [link for link in links if not (ROOT / link).is_file()] == []
    absolute = re.findall(r"\]\(([^)]*)\)", package_page(PAGE, HOME))
    assert absolute == [f"{HOME}/blob/main/{link}" for link in links]


def test_without_an_address_the_package_page_has_no_links(package_page):
    page = package_page(PAGE, "")
    assert "](" not in page
    assert "Known differences".lower() in page
