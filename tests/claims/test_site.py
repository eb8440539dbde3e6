"""What the site shows differently from the files, and what none of its pages shows.

`docs/site.css` hides prompts and output, the classes `gp` and `go`, while a button copies.
"""

import html
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


def test_short_names_and_options_in_headings_do_not_break():
    heading = "<h2>'_hypers_were_created' of get_scaled_loss (--unsafe), tf-lossscale</h2>"
    shown = SITE["on_page_content"](heading)
    whole = '<span class="whole">{}</span>'
    option, command = whole.format("(--unsafe"), whole.format("tf-lossscale")
    name = "'_hypers_<wbr>were_<wbr>created' of get_scaled_loss"
    assert shown == f"<h2>{name} {option}), {command}</h2>"


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


def test_long_names_in_sentences_break_between_their_parts():
    """They broke within words; short names and code in blocks do not break."""
    name = "tf.contrib.mixed_precision.LossScaleOptimizer"
    page = f"<p>Use <code>{name}</code> or tf.function.</p><pre>{name}</pre>"
    shown = SITE["on_page_content"](page)
    broken = "tf.contrib.<wbr>mixed_precision.<wbr>LossScaleOptimizer"
    assert shown == f"<p>Use <code>{broken}</code> or tf.function.</p><pre>{name}</pre>"


def test_code_does_not_break_behind_a_hyphen():
    shown = SITE["on_page_content"]('<p><code>"-inf"</code> <code>tf-lossscale[test]</code></p>')
    whole = ['<span class="whole">"-inf"</span>', '<span class="whole">tf-lossscale</span>[test]']
    assert shown == f"<p><code>{whole[0]}</code> <code>{whole[1]}</code></p>"


def test_comments_are_left_out():
    """A comment on its own line would put its item and the next one into paragraphs."""
    page = "It is. <!-- advice -->\n\n- a\n  <!-- tests/a.py::b,\n       docs/c.md -->\n- b\n"
    code = "```html\n<!-- code -->\n```\n"
    shown = SITE["on_page_markdown"](f"{page}\n{code}\n| a |\n|---|\n<!-- outline -->\n")
    assert shown == f"It is.\n\n- a\n- b\n\n{code}\n| a |\n|---|\n"


def test_pages_of_rules_begin_with_a_link_to_all_rules():
    page = SimpleNamespace(file=SimpleNamespace(src_uri="rules/strings.md"), meta={})
    shown = SITE["on_page_markdown"]("# LS912\n\nText\n", page=page)
    assert shown == "# LS912\n\n[All rules](index.md)\n\nText\n"
    page.file.src_uri = "rules/index.md"
    assert SITE["on_page_markdown"]("# The rules\n", page=page) == "# The rules\n"


def test_pictures_are_links_to_themselves():
    """Their text is too small to read on a phone."""
    shown = SITE["on_page_content"]('<p><img alt="A run" src="run.svg" /></p>')
    assert shown == '<p><a href="run.svg"><img alt="A run" src="run.svg" /></a></p>'


_MARKS_OF_MARKDOWN = re.compile(
    r"<!--|-->|tests/\S+::|\]\(|`|^\s*\||(?<!\w)\*\*|:::|\{ ?#", re.MULTILINE
)


_WITHIN_WORD = re.compile(r"\w<(?:strong|em)>.*?</(?:strong|em)>|</(?:strong|em)>\w")
"""What `2**16 ... 2**25` outside of code becomes."""


def test_no_page_shows_comments_or_marks_of_markdown(site):
    """Such as a table without an empty line above it, or a comment in it."""
    shown = {}
    for path in site.glob("**/*.html"):
        article = path.read_text("utf-8").partition("<article")[2].partition("</article>")[0]
        article = re.sub(r"<(pre|code|svg|script)\b.*?</\1>", "", article, flags=re.DOTALL)
        text = html.unescape(re.sub(r"<[^!>][^>]*>", "", article))
        marks = [*_MARKS_OF_MARKDOWN.findall(text), *_WITHIN_WORD.findall(article)]
        shown[path.relative_to(site).as_posix()] = marks
    assert len(shown) > 50
    assert {name: marks for name, marks in shown.items() if marks} == {}


def test_items_of_a_list_are_all_paragraphs_or_none(site):
    """Not some of them, as those beside a comment were: their distances differed."""
    for path in site.glob("*.html"):
        lists = re.findall(
            r"<[uo]l>\n(?:<li>(?:(?!</?[uo]l>).)*</li>\n)+</[uo]l>", path.read_text("utf-8"), re.S
        )
        for items in lists:
            assert len(set(re.findall(r"<li>(\n<p>)?", items))) == 1, (path.name, items)


def test_the_reference_shows_no_private_names_of_the_package(site):
    """In signatures, in types, and in what their tooltips say."""
    pages = {path.name: path.read_text("utf-8") for path in site.glob("api/*.html")}
    assert len(pages) > 7
    for name, page in pages.items():
        signatures = re.findall(r'<div class="doc-signature.*?</div>', page, re.DOTALL)
        assert not re.findall(r'=</span><span class="n">_\w+', "".join(signatures)), name
        assert not re.findall(r'title="[^"]*tf_lossscale\._', page), name
        # What is not linked is a value of TensorFlow.
        assert set(re.findall(r"<span>(\w+)</span>", page)) <= {"MEAN", "GATE_OP"}, name


def test_members_of_a_class_are_shown_below_a_heading():
    shown = SITE["on_page_markdown"]("- `build` <!-- ### ::: package.Class.build -->\n")
    assert shown.strip().splitlines() == [
        "::: package.Class.build",
        "    options:",
        "      heading_level: 3",
    ]
