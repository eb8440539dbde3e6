"""A hook of mkdocs: long names in tables break after a dot or a bracket, not in the middle."""

import re
from typing import Any

_CELL = re.compile(r"<td[^>]*>.*?</td>", re.DOTALL)
_TEXT = re.compile(r"(?<=>)[^<]+")
_BREAK = re.compile(r"(?<=[\w)])([./(])(?=[\w'&])")


def on_page_content(html: str, **_: Any) -> str:
    """Called by mkdocs with the HTML of each page."""
    return _CELL.sub(lambda cell: _TEXT.sub(_with_breaks, cell[0]), html)


def _with_breaks(text: "re.Match[str]") -> str:
    return _BREAK.sub(r"\1<wbr>", text[0])
