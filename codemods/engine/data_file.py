"""The work on a file that is not Python: it is searched for legacy paths, and never edited."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ..facts import Decision, Export, FileFacts, Made
from ..model import FileResult, Finding, Options
from ..rules.codes import rules
from ..rules.rule import Named
from .comments import Suppressions
from .notes import NO_NAME
from .render import LONGEST_LINE, Place

__all__ = ["DataWork"]

_MOST_FINDINGS = 100
"""Findings in one file; a longer list of paths is data."""
_TEXT = ".txt"
_WITHOUT_COMMENTS = (_TEXT, ".json")
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
        """Yields each legacy name in the text that no comment on its line silences.

        A comment that silences nothing is one, too. Where `#` begins no comment, it counts beside a
        name only: a text may quote one.
        """
        has_comments = not self._path.endswith(_WITHOUT_COMMENTS)
        for number, line in enumerate(self._text.split("\n"), 1):
            shown = line.rstrip("\r")
            comments = Suppressions.of_line(shown, number)
            names = [named for named in self._named(shown) if self._counts(named, shown)]
            for named in names:
                text = shown if len(shown) < LONGEST_LINE else ""
                place = Place(0, number, named.start + 1, number, named.end + 1, text)
                if not comments.silence(named.code, place):
                    yield place.finding(self._path, named.code, named.symbol, named.message)
            if names or has_comments:
                yield from (found for _, found in comments.unused(self._options, self._path))

    def _counts(self, named: Named, line: str) -> bool:
        """Whether a name is reported: not in a listing of code, for people."""
        is_listing = self._path.endswith(_TEXT) and line.startswith("(", named.end)
        return self._options.selects(named.code) and not is_listing

    def _named(self, line: str) -> Iterator[Named]:
        for rule in rules():
            if rule.in_data is not None:
                yield from rule.in_data(line, self._options)
