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

_ANCHOR = re.compile(r"<!-- (\{ #\S+ \}) -->")
_NAME = re.compile(r"^- `\w+` <!-- (::: \S+) -->$", re.MULTILINE)
_MEMBER = re.compile(r"^- `\w+` <!-- ### (::: \S+) -->$", re.MULTILINE)
_OF_SITE = re.compile(r"^<!-- (::: .*?)\n-->$", re.DOTALL | re.MULTILINE)
"""Comments of the API pages, which GitHub does not show: anchors, and where docstrings stand."""

_SESSION = re.compile(r"^```\n(?=(?:\(\w+\) )?\$ )", re.MULTILINE)
"""The fence of commands behind a prompt: as a session, their copy button copies commands only."""

_ENVIRONMENT = re.compile(r"(<span class=\"gp [^<]*)</span> (?=<span class=\"gp\">)")
_OUTPUT = re.compile(r"(<span class=\"go\">[^<]*)</span>\n")
"""The spaces and line ends that belong to what a copy button leaves out."""

_CODE = re.compile(r"(?<=<code>)[^<]+(?=</code>)")
_HYPHENATED = re.compile(r"(?<!\S)[\w-]*-[\w-]+(?: \d)?(?!\S)")
_WHOLE = r'<span class="whole">\g<0></span>'
_CELL = re.compile(r"<td[^>]*>.*?</td>", re.DOTALL)
_HEADING = re.compile(r"<(h[1-4])\b.*?</\1>", re.DOTALL)
_TEXT = re.compile(r"(?<=>)[^<]+")
_BREAK = re.compile(r"(?<=[\w)])(\.(?=[^\W\d])|[/(](?=[\w'&]))")
_LONG = re.compile(r"[A-Za-z]{24,}")
_SNAKE = re.compile(r"\w{24,}")
_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_PART = re.compile(r"(?<=[._])(?=[^\W\d])")


def on_page_markdown(markdown: str, page: Any = None, **_: Any) -> str:
    """Called by mkdocs with the text of each page."""
    if page is not None and page.file.src_uri in ONE_SCREEN:
        page.meta["hide"] = ["toc"]
    markdown = _ANCHOR.sub(r"\1", markdown.replace(ELSEWHERE, ""))
    markdown = _SESSION.sub("```console\n", markdown)
    markdown = _MEMBER.sub(r"\n\1\n    options:\n      heading_level: 3\n", markdown)
    return _OF_SITE.sub(r"\1\n", _NAME.sub(r"\n\1\n", markdown))


def on_page_content(html: str, **_: Any) -> str:
    """Called by mkdocs with the HTML of each page."""
    html = _OUTPUT.sub(r"\1\n</span>", _ENVIRONMENT.sub(r"\1 </span>", html))
    html = _CODE.sub(lambda code: _HYPHENATED.sub(_WHOLE, code[0]), html)
    html = _HEADING.sub(lambda heading: _TEXT.sub(_with_parts, heading[0]), html)
    return _CELL.sub(lambda cell: _TEXT.sub(_with_breaks, cell[0]), html)


def _with_parts(text: "re.Match[str]") -> str:
    """Lets names in headings break after a dot or an underscore, and long ones before a capital."""
    long = _LONG.sub(lambda name: _CAPITAL.sub("<wbr>", name[0]), text[0])
    return _PART.sub("<wbr>", long)


def _with_breaks(text: "re.Match[str]") -> str:
    """Lets long names in tables break after dots, brackets and underscores, or before capitals."""
    long = _LONG.sub(lambda name: _CAPITAL.sub("<wbr>", name[0]), text[0])
    long = _SNAKE.sub(lambda name: _PART.sub("<wbr>", name[0]), long)
    return _BREAK.sub(r"\1<wbr>", long)
