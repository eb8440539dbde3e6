"""What became of one file of a run, the counts over all of them, and where they are kept."""

from __future__ import annotations

import contextlib
import io
import pickle
import tempfile
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple, Optional

from ..model import FileError, Finding, Options, Safety

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
      source: the bytes after the edits, of what came on stdin.
    """

    path: str
    changed: bool = False
    findings: tuple[Finding, ...] = ()
    error: Optional[FileError] = None
    note: str = ""
    diff: bytes = b""
    excerpts: tuple[str, ...] = ()
    source: bytes = b""


class Plan(NamedTuple):
    """What to do with each file of a run.

    Attributes:
      options: what decides how it is rewritten.
      write: put the result in its place.
      diff: somebody wants to see the diff.
      excerpts: somebody wants to see each place with its part of the diff.
      tracebacks: print that of a defect of ours.
    """

    options: Options
    write: bool = False
    diff: bool = False
    excerpts: bool = False
    tracebacks: bool = False


class Summary:
    """The counts of a run.

    Attributes:
      files: looked at.
      changed: that the edits change.
      failed: that could not be processed.
      safe, unsafe, manual: findings by outcome.
      left: findings that leave something to do.
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
            self.safe += finding.outcome is Safety.SAFE
            self.unsafe += finding.outcome is Safety.UNSAFE
            self.manual += finding.outcome is Safety.MANUAL
            self.left += finding.is_left

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
    """File outcomes on disk, so that memory does not grow with the number of files.

    The first few stay in memory, and so do all from where the disk does not take them: a directory
    for temporary files that is full or missing stops no run.
    """

    _IN_MEMORY = 4 * 1024 * 1024

    def __init__(self) -> None:
        self._file: BinaryIO = io.BytesIO()
        self._end = 0
        self._may_move = True

    def append(self, outcome: FileOutcome) -> None:
        """Keeps one more."""
        data = pickle.dumps(outcome, protocol=pickle.HIGHEST_PROTOCOL)
        if self._may_move and self._end + len(data) > self._IN_MEMORY:
            self._may_move = False
            with contextlib.suppress(OSError):
                self._move(tempfile.TemporaryFile())  # noqa: SIM115 - closed by close()
        try:
            self._write(data)
        except OSError:
            self._move(io.BytesIO())
            self._write(data)
        self._end += len(data)

    def _write(self, data: bytes) -> None:
        self._file.seek(self._end)
        self._file.write(data)
        self._file.flush()

    def _move(self, other: BinaryIO) -> None:
        """Goes on in `other`, with what is there."""
        try:
            self._file.seek(0)
            left = self._end
            while left:
                part = self._file.read(min(left, 1024 * 1024))
                other.write(part)
                left -= len(part)
            other.flush()
        except OSError:
            with contextlib.suppress(OSError):  # which writes once more what it could not
                other.close()
            raise
        with contextlib.suppress(OSError):
            self._file.close()
        self._file = other

    def __iter__(self) -> Iterator[FileOutcome]:
        self._file.seek(0)
        while self._file.tell() < self._end:
            yield pickle.load(self._file)

    def close(self) -> None:
        """Gives the space back."""
        with contextlib.suppress(OSError):
            self._file.close()
