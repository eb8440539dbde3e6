"""The pages of the rules are up to date."""

import pathlib
import runpy
import sys

from tf_lossscale_codemods.cli.explain import explained
from tf_lossscale_codemods.rules.codes import codes

DOCS = pathlib.Path(__file__).resolve().parents[3] / "docs"
FOLDER = DOCS / "rules"
PROGRAM = runpy.run_path(str(DOCS / "rule_pages.py"))
main, pages = PROGRAM["main"], PROGRAM["pages"]


def test_the_committed_pages_are_current():
    found = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.iterdir()}
    assert found == pages(), "write them: make rules"


def test_every_code_is_in_the_index_with_its_page():
    written = pages()
    for code in codes():
        link = f"[{code.code}]({code.rule.slug}.md)"
        assert link in written["index.md"]
        assert code.code in written[f"{code.rule.slug}.md"].splitlines()[0]


def test_explain_prints_what_the_page_says():
    """Its text, and the sources of the examples before and after."""
    written = pages()
    for code in codes():
        page = written[f"{code.rule.slug}.md"]
        assert code.text.partition("\n\nUpstream: ")[0] in page
        shown = [
            line.strip() for line in explained((code.code,)).splitlines() if line.startswith("    ")
        ]
        assert len(shown) > 3
        assert [line for line in shown if line not in page] == []


def test_the_program_writes_them_and_removes_those_of_old_rules(tmp_path, monkeypatch, capsys):
    (tmp_path / "gone.md").write_text("x")
    monkeypatch.setattr(sys, "argv", ["pages", str(tmp_path)])
    assert main() == 0
    assert {path.name for path in tmp_path.iterdir()} == set(pages())
    monkeypatch.setattr(sys, "argv", ["pages"])
    assert main() == 2
    assert "usage: pages FOLDER" in capsys.readouterr().err
