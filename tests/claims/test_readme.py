"""What the README shows is what the command writes, and the package page has no dead links."""

import re
import runpy
import subprocess

import pytest
from documents import ROOT, Text, blocks, config
from tf_lossscale_codemods.engine.transform import transform
from tf_lossscale_codemods.model import Options, Safety, Target

PAGE = re.sub("<!--.*?-->", "", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.DOTALL)
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


@pytest.mark.parametrize("target", ["demo", "test"])
def test_make_installs_all_that_it_needs(target, tmp_path):
    """In environments that are not there yet: make says what it would run."""
    places = [f"{name}={tmp_path}" for name in ("DEMO", "TEST")]
    done = subprocess.run(
        ["make", "--no-print-directory", "--dry-run", target, "PYTHON=python3", *places],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    lines = done.stdout.replace("\\\n", "").splitlines()
    programs = [line.split()[0] for line in lines]
    assert f"python3 -m venv --clear {tmp_path}" in lines
    assert any(line.startswith(f".ci/retry {tmp_path}/bin/pip install") for line in lines)
    own = {program for program in programs if not program.startswith(f"{tmp_path}/bin/")}
    assert own <= {"python3", "make", ".ci/retry", "echo", "touch", "rm", "diff"}


def test_start_here_leads_to_all_guides():
    """And to the pages of the rules; the reference is in the navigation of the site."""
    docs = (ROOT / "docs").resolve()
    found, new = set(), {docs / "index.md"}
    while new:
        page = new.pop()
        found.add(page)
        links = re.findall(r"\]\(([\w./-]+\.md)", page.read_text(encoding="utf-8"))
        pages = {page.parent.joinpath(link).resolve() for link in links}
        new |= {page for page in pages if docs in page.parents} - found
    assert {*docs.glob("*.md"), *docs.glob("rules/*.md")} - found == set()


def test_the_license_is_that_of_the_package():
    assert config("setup.cfg")["metadata"]["license"] == PAGE.split()[-1]
    assert "Apache License" in (ROOT / "LICENSE").read_text(encoding="utf-8")[:200]
