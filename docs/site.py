"""A hook of mkdocs: what the site shows differently from the files on GitHub."""

import re
from typing import Any

ONE_SCREEN = {
    "accumulate.md",
    "ci.md",
    "cost.md",
    "is-it-scaled.md",
    "scale-at-1.md",
    "wrappers.md",
}
"""Short pages: they need no table of contents, whose room makes their lines longer."""

ELSEWHERE = "*Docstrings are shown on the site that `make docs` builds.*\n"
"""A line of the API pages, which GitHub shows without the docstrings."""

OVERVIEW = "[All rules](index.md)\n"
"""What the page of a rule begins with: these pages are not in the navigation."""

_OF_RULE = re.compile(r"rules/(?!index\.md).*")
_TITLE = re.compile(r"^# .*\n", re.MULTILINE)
_ANCHOR = re.compile(r"<!-- (\{ #\S+ \}) -->")
_NAME = re.compile(r"^- `\w+` <!-- (::: \S+) -->$", re.MULTILINE)
_MEMBER = re.compile(r"^- `\w+` <!-- ### (::: \S+) -->$", re.MULTILINE)
_OF_SITE = re.compile(r"^<!-- (::: .*?)\n-->$", re.DOTALL | re.MULTILINE)
"""Comments of the API pages, which GitHub does not show: anchors, and where docstrings stand."""

_FENCED = re.compile(r"^( *)```.*?^\1```$", re.DOTALL | re.MULTILINE)
_COMMENT = re.compile(r"^[ \t]*<!--.*?-->[ \t]*\n|[ \t]*<!--.*?-->", re.DOTALL | re.MULTILINE)
"""All other comments, such as the tests of a claim: on a line of its own, one in an item of a list
would put its item and those behind it into paragraphs."""

_SESSION = re.compile(r"^```\n(?=(?:\(\w+\) )?\$ )", re.MULTILINE)
"""The fence of commands behind a prompt: as a session, their copy button copies commands only."""

_ENVIRONMENT = re.compile(r"(<span class=\"gp [^<]*)</span> (?=<span class=\"gp\">)")
_OUTPUT = re.compile(r"(<span class=\"go\">[^<]*)</span>\n")
"""The spaces and line ends that belong to what a copy button leaves out."""

_PRIVATE = re.compile(r' title="[^"]*\btf_lossscale\._[^"]*"')
"""What a type or default shows under the mouse: the private module that defines it."""

_IMAGE = re.compile(r'<img\b[^>]* src="([^"]+)"[^>]*>')
_CODE = re.compile(r"(?<=<code>)[^<]+(?=</code>)")
_HYPHENATED = re.compile(r"(?<![\w-])[\"']?[\w-]*-\w[\w-]*[\"']?(?: (?:v?\d|[A-Z]+\d?)(?!\S))?")
_OPTION = re.compile(r"(?<!\S)\(?(?:--[a-z][\w-]*|tf-lossscale)(?![\w-])")
_WHOLE = r'<span class="whole">\g<0></span>'
_CELL = re.compile(r"<td[^>]*>.*?</td>", re.DOTALL)
_HEADING = re.compile(r"<(h[1-4])\b.*?</\1>", re.DOTALL)
_TEXT = re.compile(r"(?<=>)[^<]+")
_PIECE = re.compile(r"<(pre|script|style|svg|h[1-4])\b.*?</\1>|<[^>]*>|[^<]+", re.DOTALL)
"""A block that stays as it is, a tag, or text."""

_NAME_IN_CELL = re.compile(r"\S{13,}")
_NAME_IN_HEADING = re.compile(r"\S{19,}")
_NAME_IN_TEXT = re.compile(r"\S{31,}")
"""Names and paths that may not fit: in a column, and in a line on a phone."""

_BREAK = re.compile(r"(?:(?<=\w{5})|(?<=\)))(\.(?=[^\W\d])|[/(](?=[\w'&]))")
"""Not behind a short beginning: `tf.` alone would end a line."""

_LONG = re.compile(r"[A-Za-z]{24,}")
_SNAKE = re.compile(r"\w{24,}")
_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_PART = re.compile(r"(?<=[^\W_][._])(?=[^\W\d])")


def on_page_markdown(markdown: str, page: Any = None, **_: Any) -> str:
    """Called by mkdocs with the text of each page."""
    if page is not None and page.file.src_uri in ONE_SCREEN:
        page.meta["hide"] = ["toc"]
    if page is not None and _OF_RULE.fullmatch(page.file.src_uri):
        markdown = _TITLE.sub(rf"\g<0>\n{OVERVIEW}", markdown, count=1)
    markdown = _ANCHOR.sub(r"\1", markdown.replace(ELSEWHERE, ""))
    markdown = _SESSION.sub("```console\n", markdown)
    markdown = _MEMBER.sub(r"\n\1\n    options:\n      heading_level: 3\n", markdown)
    markdown = _OF_SITE.sub(r"\1\n", _NAME.sub(r"\n\1\n", markdown))
    return _without_comments(markdown)


def on_page_content(html: str, **_: Any) -> str:
    """Called by mkdocs with the HTML of each page."""
    html = _OUTPUT.sub(r"\1\n</span>", _ENVIRONMENT.sub(r"\1 </span>", html))
    html = _IMAGE.sub(r'<a href="\1">\g<0></a>', html)  # GitHub makes links of them, too
    html = _CODE.sub(lambda code: _HYPHENATED.sub(_WHOLE, code[0]), html)
    html = _HEADING.sub(lambda heading: _TEXT.sub(_with_parts, heading[0]), html)
    html = _CELL.sub(_with_whole_options, html)
    return _with_breaks(html, _NAME_IN_TEXT)


def on_post_page(output: str, **_: Any) -> str:
    """Called by mkdocs with each whole page."""
    return _PRIVATE.sub("", output)


def _without_comments(markdown: str) -> str:
    """Leaves out the comments that stand in no block of code."""
    end, parts = 0, []
    for block in _FENCED.finditer(markdown):
        parts += [_COMMENT.sub("", markdown[end : block.start()]), block[0]]
        end = block.end()
    return "".join([*parts, _COMMENT.sub("", markdown[end:])])


def _with_parts(text: "re.Match[str]") -> str:
    """Lets long names in headings break after dots and underscores, or before capitals."""
    long = _LONG.sub(lambda name: _CAPITAL.sub("<wbr>", name[0]), text[0])
    long = _NAME_IN_HEADING.sub(lambda name: _PART.sub("<wbr>", name[0]), long)
    return _OPTION.sub(_WHOLE, long)


def _with_whole_options(cell: "re.Match[str]") -> str:
    """Lets long names in a cell of a table break, but no option."""
    html = _with_breaks(cell[0], _NAME_IN_CELL)
    return _TEXT.sub(lambda text: _OPTION.sub(_WHOLE, text[0]), html)


def _with_breaks(html: str, long_name: "re.Pattern[str]") -> str:
    """Lets long names in text break after dots, brackets and underscores, or before capitals."""

    def in_text(piece: "re.Match[str]") -> str:
        return piece[0] if piece[0].startswith("<") else long_name.sub(in_name, piece[0])

    def in_name(name: "re.Match[str]") -> str:
        parts = _LONG.sub(lambda part: _CAPITAL.sub("<wbr>", part[0]), name[0])
        parts = _SNAKE.sub(lambda part: _PART.sub("<wbr>", part[0]), parts)
        return _BREAK.sub(r"\1<wbr>", parts)

    return _PIECE.sub(in_text, html)
