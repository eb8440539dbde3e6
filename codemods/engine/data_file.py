"""The work on a file that is not Python: it is searched for legacy paths, and never edited."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ..facts import Decision, Export, FileFacts, Made
from ..model import FileResult, Finding, Options, Safety
from ..rules.codes import rules
from ..rules.rule import Named
from .comments import silences
from .notes import NO_NAME
from .render import LONGEST_LINE

__all__ = ["DataWork"]

_MOST_FINDINGS = 100
"""Findings in one file; a longer list of paths is data."""
_TEXT = ".txt"
_ONLY_FINDINGS = "only Python is edited; see the findings"


class DataWork:
    """A configuration or another text, with the methods of `FileWork`.

    Args:
      source: its bytes.
      options: how to rewrite the run's files.
      path: its path, as reports show it.
    """

    def __init__(self, source: bytes, options: Options, path: str) -> None:
        self._source = source
        self._options = options
        self._path = path
        self._text = source.decode("utf-8-sig", "replace")

    def free(self) -> None:
        """Nothing: there are no trees."""

    def facts(self) -> FileFacts:
        """Nothing, because no file of a program imports this one."""
        return FileFacts()

    def exports(self) -> Mapping[str, Export]:
        """Nothing."""
        return {}

    def made(self, names: Iterable[str]) -> Mapping[str, Made]:
        """Nothing."""
        return {}

    def result(self, decision: Decision) -> FileResult:
        """The unchanged file, with a finding for each legacy path."""
        findings = tuple(finding for finding, _ in zip(self._findings(), range(_MOST_FINDINGS)))
        return FileResult(self._source, findings, note=_ONLY_FINDINGS if findings else NO_NAME)

    def _findings(self) -> Iterator[Finding]:
        """Yields each legacy name in the text that no comment on its line silences."""
        for number, line in enumerate(self._text.split("\n"), 1):
            shown = line.rstrip("\r")
            for named in self._named(shown):
                if not self._options.selects(named.code) or silences(shown, named.code):
                    continue
                if self._path.endswith(_TEXT) and shown.startswith("(", named.end):
                    continue  # a listing of code, for people
                finding = Finding(
                    self._path, number, named.start + 1, named.code, named.symbol, Safety.MANUAL,
                    False, named.message,
                )  # fmt: skip
                text = shown if len(shown) < LONGEST_LINE else ""
                yield finding._replace(end_line=number, end_column=named.end + 1, text=text)

    def _named(self, line: str) -> Iterator[Named]:
        for rule in rules():
            if rule.in_data is not None:
                yield from rule.in_data(line, self._options)
