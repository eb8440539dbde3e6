"""What the site shows differently from the files: sessions, whose copy buttons copy commands only.

`docs/site.css` hides prompts and output, the classes `gp` and `go`, while a button copies.
"""

import re
import runpy
from types import SimpleNamespace

from documents import ROOT, blocks, markdown

SITE = runpy.run_path(str(ROOT / "docs" / "site.py"))


def test_commands_behind_a_prompt_are_a_session():
    page = "```\n(old) $ ls\nout\n```\n\n```\nls\n```\n\n```\n$ ls\n```\n"
    assert re.findall(r"```\w+", SITE["on_page_markdown"](page)) == ["```console"] * 2


def test_spaces_and_line_ends_are_left_out_with_prompts_and_output():
    session = (
        '<span class="gp gp-VirtualEnv">(old)</span> <span class="gp">$ </span>ls\n'
        '<span class="go">out</span>\n'
        '<span class="gp">$ </span>ls\n'
    )
    shown = SITE["on_page_content"](session)
    copied = re.sub(r'<span class="g[po][^<]*</span>', "", shown)
    assert copied == "ls\nls\n"
    assert re.sub("<[^>]*>", "", shown) == "(old) $ ls\nout\n$ ls\n"
    assert ":is(.gp, .go)" in (ROOT / "docs" / "site.css").read_text(encoding="utf-8")


def test_no_block_has_commands_of_two_environments():
    """Its copy button would paste them into one terminal."""
    for text in markdown():
        for block in blocks(text):
            environments = set(re.findall(r"^\((\w+)\) \$ ", block.code, re.MULTILINE))
            assert len(environments) < 2, (block.file, block.line)


def test_names_in_headings_break_between_their_parts():
    """Not in the middle of a word, as they did on a phone."""
    heading = '<h2 id="a.b_c">tfls.mixed_precision.MixedPrecisionLossScaleOptimizer in 1.15</h2>'
    shown = SITE["on_page_content"](heading)
    parts = "tfls.|mixed_|precision.|Mixed|Precision|Loss|Scale|Optimizer in 1.15"
    assert shown == f'<h2 id="a.b_c">{parts.replace("|", "<wbr>")}</h2>'


def test_short_pages_have_no_table_of_contents():
    """Their lines are as long as the window, so that each page fits one screen."""
    for name in SITE["ONE_SCREEN"]:
        page = SimpleNamespace(file=SimpleNamespace(src_uri=name), meta={})
        SITE["on_page_markdown"]((ROOT / "docs" / name).read_text(encoding="utf-8"), page=page)
        assert page.meta == {"hide": ["toc"]}
    longer = SimpleNamespace(file=SimpleNamespace(src_uri="keras.md"), meta={})
    SITE["on_page_markdown"]("", page=longer)
    assert longer.meta == {}


def test_names_in_tables_break_after_underscores():
    """A list of rules was cut off at 390 pixels."""
    shown = SITE["on_page_content"]("<td>disable_mixed_precision_graph_rewrite of short_names</td>")
    name = "disable_|mixed_|precision_|graph_|rewrite"
    assert shown == f"<td>{name.replace('|', '<wbr>')} of short_names</td>"


def test_members_of_a_class_are_shown_below_a_heading():
    shown = SITE["on_page_markdown"]("- `build` <!-- ### ::: package.Class.build -->\n")
    assert shown.strip().splitlines() == [
        "::: package.Class.build",
        "    options:",
        "      heading_level: 3",
    ]
