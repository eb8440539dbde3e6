"""What became of one file of a run, the counts over all of them, and where they are kept."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Iterator
from typing import NamedTuple, Optional

from .model import FileError, Finding, Options, Outcome

__all__ = ["FileOutcome", "Plan", "Spool", "Summary"]


class FileOutcome(NamedTuple):
    """One file of a run.

    Attributes:
      path: as the reports show it.
      changed: the edits change it (with `--write`: have changed it).
      findings: in order of place.
      error: set when it could not be processed; then nothing was changed.
      note: why it was left unchanged, for `-v`.
      diff: from the old bytes to the new; empty where nothing changes or nobody asked.
      excerpts: one for each finding, where somebody asked: its part of the diff, or its lines.
    """

    path: str
    changed: bool = False
    findings: tuple[Finding, ...] = ()
    error: Optional[FileError] = None
    note: str = ""
    diff: bytes = b""
    excerpts: tuple[str, ...] = ()


class Plan(NamedTuple):
    """What to do with each file of a run.

    Attributes:
      options: what decides how it is rewritten.
      write: put the result in its place.
      diff: somebody wants to see the diff.
      excerpts: somebody wants to see each place with its part of the diff.
    """

    options: Options
    write: bool = False
    diff: bool = False
    excerpts: bool = False


class Summary:
    """The counts of a run.

    Attributes:
      files: looked at.
      changed: that the edits change.
      failed: that could not be processed.
      safe, unsafe, manual: findings by outcome.
      left: findings that were not applied.
      wrote: whether the changes were written.
    """

    def __init__(self, wrote: bool) -> None:
        self.wrote = wrote
        self.files = self.changed = self.failed = self.left = 0
        self.safe = self.unsafe = self.manual = 0

    def add(self, outcome: FileOutcome) -> None:
        """Counts the findings and the fate of one file, not the file itself."""
        self.changed += outcome.changed
        self.failed += outcome.error is not None
        for finding in outcome.findings:
            self.safe += finding.outcome is Outcome.SAFE
            self.unsafe += finding.outcome is Outcome.UNSAFE
            self.manual += finding.outcome is Outcome.MANUAL
            self.left += not finding.applied

    @property
    def status(self) -> int:
        """The exit status: 0 nothing is left to do, 1 something is, 2 a file failed."""
        if self.failed:
            return 2
        return int(bool(self.left or (self.changed and not self.wrote)))

    def as_dict(self) -> dict[str, int]:
        """The counts that the JSON report shows."""
        names = ("files", "changed", "failed", "safe", "unsafe", "manual")
        return {name: getattr(self, name) for name in names}


class Spool:
    """File outcomes on disk, so that memory does not grow with the number of files."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()

    def append(self, outcome: FileOutcome) -> None:
        """Keeps one more."""
        pickle.dump(outcome, self._file, protocol=pickle.HIGHEST_PROTOCOL)

    def __iter__(self) -> Iterator[FileOutcome]:
        self._file.seek(0)
        while True:
            try:
                yield pickle.load(self._file)
            except EOFError:
                return

    def close(self) -> None:
        """Gives the disk space back."""
        self._file.close()
