"""Every known difference has a test, which its row or an identifier names in a comment.

`<!--C1-->`: the test has the identifier in its name or its text, as the identifier is also used
elsewhere. `<!-- tests/shim/keras/test_final.py::test_weights -->`: a test, or a function that a
test calls with both classes.
"""

import ast
import functools
import re
from typing import List, NamedTuple, Set

from documents import ROOT, Text, everything, place

PAGE = "docs/known-differences.md"
SHIM = ROOT / "tests" / "shim"


class Row(NamedTuple):
    """A line of a list: its identifiers, such as C1, and what ours does, after an arrow."""

    names: List[str]
    ours: str


def rows(page: str) -> List[Row]:
    """The rows with identifiers, which stand in a comment that readers do not see."""
    found = []
    for line in page.splitlines():
        names = re.search(r"<!--([A-Z]\d+(?:,[A-Z]\d+)*)-->$", line)
        if names:
            ours = line[: names.start()].split(" → ")[-1]
            found.append(Row(names[1].split(","), ours.strip()))
    return found


def untested(table: List[Row]) -> List[str]:
    """Identifiers that no test of the shim has, as `C1` or in a name as `c1_...`."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in SHIM.rglob("*.py"))
    found = set(re.findall(r"\b[A-Z]\d+\b", text))
    found |= {name.upper() for name in re.findall(r"(?:\b|_)([a-z]\d+)(?=_)", text)}
    names = {name for row in table if row.ours != "not reproduced" for name in row.names}
    return sorted(names - found)


def unknown_names(texts: List[Text], table: List[Row]) -> List[str]:
    known = {name for row in table for name in row.names}
    return [
        f"{place(text, match.start())}: {name}"
        for text in texts
        for match in re.finditer(r"known[- ]differences?,? \(?((?:[A-Z]\d+(?:, )?)+)", text.text)
        for name in re.findall(r"[A-Z]\d+", match[1])
        if name not in known
    ]


def without_comment(page: str) -> List[str]:
    """The rows of all lists of the page that end neither with an identifier nor with a test."""
    items = re.findall(r"^- .*\n(?:  .*\n)*", page, re.MULTILINE)
    assert len(items) > 100
    return [
        item
        for item in items
        if not re.search(r"<!--(?:[A-Z]\d+[^>]*| tests/\S+::\w+ )-->\n$", item)
    ]


@functools.lru_cache(maxsize=None)
def functions(file: str) -> Set[str]:
    """The names of the functions and methods of a file."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_each_row_names_its_test():
    page = (ROOT / PAGE).read_text(encoding="utf-8")
    assert without_comment(page) == []
    named = re.findall(r"<!-- (tests/\S+)::(\w+) -->", page)
    assert len(named) > 50
    assert [name for file, name in named if name not in functions(file)] == []
    assert without_comment(page + "- a row without a test\n") == ["- a row without a test\n"]


def test_every_known_difference_is_named_by_a_test():
    table = rows((ROOT / PAGE).read_text(encoding="utf-8"))
    assert len(table) > 50
    assert untested(table) == []


def test_every_identifier_that_is_named_is_that_of_a_row():
    assert unknown_names(everything(), rows((ROOT / PAGE).read_text(encoding="utf-8"))) == []
