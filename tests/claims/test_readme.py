"""What the README shows is what the command writes, and its links work on the package page."""

import re

from documents import ROOT, Text, blocks
from tf_lossscale_codemods.engine.transform import transform_sources
from tf_lossscale_codemods.model import Options, Safety

PAGE = (ROOT / "README.md").read_text(encoding="utf-8")
RAW = "https://raw.githubusercontent.com/tf-lossscale/tf-lossscale/main/"


def test_the_diff_is_what_migrate_writes():
    (code,) = [each.code for each in blocks(Text("", 1, PAGE)) if each.language == "diff"]
    lines = code.splitlines()
    before = "".join(line[1:] + "\n" for line in lines if not line.startswith("+"))
    after = "".join(line[1:] + "\n" for line in lines if not line.startswith("-"))
    (result,) = transform_sources([before.encode()], Options(keras=3))
    assert result.source.decode() == after
    assert {finding.outcome for finding in result.findings} == {Safety.SAFE}


def test_links_are_absolute_and_pictures_are_there():
    links = re.findall(r"\]\(([^)]*)\)", PAGE)
    assert len(links) > 10
    assert [link for link in links if not link.startswith("https://")] == []
    pictures = re.findall(r"!\[[^\]]+\]\(([^)]*)\)", PAGE)
    assert pictures
    for each in pictures:
        assert each.startswith(RAW)
        assert (ROOT / each[len(RAW) :]).is_file()
