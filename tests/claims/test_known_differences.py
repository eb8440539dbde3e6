"""The identifiers of known differences, such as `<!--C1-->`, which tests and comments use.

Which tests prove a row, `test_proofs.py` checks: a row names them as every page does.
"""

import re
from typing import List, NamedTuple

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


def test_every_known_difference_is_named_by_a_test():
    table = rows((ROOT / PAGE).read_text(encoding="utf-8"))
    assert len(table) > 50
    assert untested(table) == []


def test_every_identifier_that_is_named_is_that_of_a_row():
    assert unknown_names(everything(), rows((ROOT / PAGE).read_text(encoding="utf-8"))) == []
