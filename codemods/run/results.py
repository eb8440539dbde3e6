"""The jobs of a run, the outcome of each file, the counts over all files, and a store for them."""

from __future__ import annotations

import enum
import os
import pickle
import zlib
from collections.abc import Iterator
from typing import Generic, NamedTuple, Optional, TypeVar

from ..facts import SINGLE_FILE, Decision, FileFacts, Links
from ..files.excludes import is_data
from ..model import FileError, FileResult, Finding, KerasChoice, Options, Replacement, Safety

__all__ = [
    "FileOutcome",
    "Job",
    "JobKind",
    "Plan",
    "Read",
    "Spool",
    "Summary",
]

_T = TypeVar("_T")


class FileOutcome(NamedTuple):
    """The outcome of one file.

    Attributes:
      path: the path to show in reports.
      changed: whether the edits change the file (with `--write`: have changed it).
      findings: the findings, in source order.
      error: set if the file could not be processed; then it is unchanged.
      note: why the file was left unchanged, for `-v`.
      diff: the diff from the old to the new bytes; empty if not requested or nothing changes.
      replacements: the edits, if requested and not written.
      warning: why the file could not be read, if it has no legacy name of TensorFlow.
      other_contrib: whether it still uses `tf.contrib` for what no rule migrates.
      needs_shim: whether the edits make it import the shim.
    """

    path: str
    changed: bool = False
    findings: tuple[Finding, ...] = ()
    error: Optional[FileError] = None
    note: str = ""
    diff: bytes = b""
    replacements: tuple[Replacement, ...] = ()
    warning: Optional[FileError] = None
    other_contrib: bool = False
    needs_shim: bool = False

    @property
    def problems(self) -> list[tuple[str, FileError]]:
        """The error or the warning, with its kind: `error` or `warning`."""
        both = (("error", self.error), ("warning", self.warning))
        return [(kind, problem) for kind, problem in both if problem is not None]


class JobKind(enum.Enum):
    """What a worker does with a file; the comments say what it returns."""

    SCREEN = "say whether it can have a place to migrate"  # FileResult, or None if it can
    READ = "read it, and collect its facts"  # Read
    EXPORTS = "say what its top-level names mean"  # dict[str, Export]
    MADE = "say what names of it are made of"  # dict[str, Made]
    LINKS = "say what connects it, and others, with other files"  # dict[str, Links]
    EDIT = "edit it after the decision"  # FileResult


class Job(NamedTuple):
    """The work of a worker on one file, or on several if that takes little time for each.

    Attributes:
      kind: what to do.
      path: the path to show in reports.
      real: the path of the file.
      source: its bytes, if they are known.
      names: for `MADE`, the names.
      files: for `LINKS`, the paths of the files.
      words: for `LINKS`, only files that may read a module with one of these names; None for all.
      decision: for `EDIT`, what is decided about the file.
    """

    kind: JobKind
    path: str
    real: str
    source: Optional[bytes] = None
    names: frozenset[str] = frozenset()
    files: tuple[str, ...] = ()
    words: Optional[tuple[str, ...]] = None
    decision: Decision = SINGLE_FILE


class Read(NamedTuple):
    """What reading a file gives.

    Attributes:
      source: its bytes.
      facts: what other files must know.
      error: set if it could not be read or parsed.
      result: what becomes of it, if no decision changes that.
    """

    source: bytes
    facts: FileFacts = FileFacts(links=Links(is_known=False))
    error: Optional[FileError] = None
    result: Optional[FileResult] = None

    @property
    def final(self) -> Optional[FileResult]:
        """The result, if the file needs no decision."""
        if self.error is not None:
            return FileResult(self.source, error=self.error, before=self.source)
        return self.result


class Plan(NamedTuple):
    """What to do with each file of a run.

    Attributes:
      options: how to rewrite the files.
      write: whether to write the result to the file.
      diff: whether the diff is needed.
      tracebacks: whether to print tracebacks of internal errors.
      replacements: whether the edits are needed one by one.
    """

    options: Options
    write: bool = False
    diff: bool = False
    tracebacks: bool = False
    replacements: bool = False


class Summary:
    """The counts of a run.

    Attributes:
      files: the number of files checked.
      checked: their real paths.
      failing: those of files that could not be processed, so nothing is known about their findings.
      changed: the number of files that the edits change.
      failed: the number of files that could not be processed.
      safe, unsafe, manual: the number of findings with each outcome.
      left: the number of findings that leave something to do.
      applied: the number of findings whose edits are part of the result.
      held: the number of findings whose edits need `--unsafe`.
      wrote: whether the changes were written.
      is_dry: whether they were only shown; neither written nor printed as the result.
      about: what identifies the run in a report, such as the command line, by heading.
      keras: the Keras version to target, and the reason.
      in_baseline: the number of findings that the baseline accepts, which do not count.
      needs_shim: whether edits were written that make a file import the shim.
      requirements: the files that say what is installed where the program runs.
      have_shim: whether one of these names it.
      other_contrib: the number of files that use `tf.contrib` for what no rule migrates.
    """

    def __init__(self, wrote: bool) -> None:
        self.wrote = wrote
        self.is_dry = not wrote
        self.about: dict[str, str] = {}
        self.applied = self.held = self.in_baseline = 0
        self.needs_shim = self.have_shim = False
        self.requirements: list[str] = []
        self.checked: frozenset[str] = frozenset()
        self.failing: set[str] = set()
        self.keras = KerasChoice(None, "not decided", is_given=True)
        self.files = self.changed = self.failed = self.left = 0
        self.safe = self.unsafe = self.manual = self.other_contrib = 0

    def add(self, outcome: FileOutcome) -> None:
        """Adds the outcome of a file to all counts; to `files` if it is a configuration.

        Those without a legacy path do not count as checked.
        """
        self.files += is_data(outcome.path) and bool(outcome.findings)
        self.changed += outcome.changed
        if outcome.error is not None:
            self.failed += 1
            self.failing.add(os.path.realpath(outcome.path))
        self.other_contrib += outcome.other_contrib
        self.needs_shim |= outcome.needs_shim
        for finding in outcome.findings:
            self.safe += finding.outcome is Safety.SAFE
            self.unsafe += finding.outcome is Safety.UNSAFE
            self.manual += finding.outcome is Safety.MANUAL
            self.left += finding.is_left
            self.applied += finding.applied
            self.held += finding.is_left and finding.outcome is Safety.UNSAFE

    @property
    def status(self) -> int:
        """The exit status: 0 nothing is left to do, 1 something is left to do, 2 a file failed."""
        if self.failed:
            return 2
        return int(bool(self.left or (self.changed and not self.wrote)))

    def as_dict(self) -> dict[str, int]:
        """The counts in the JSON report."""
        names = ("files", "changed", "failed", "safe", "unsafe", "manual", "other_contrib")
        return {name: getattr(self, name) for name in names}


class Spool(Generic[_T]):
    """The items of a run, compressed, so that memory hardly grows with the number of files."""

    def __init__(self) -> None:
        self._items: dict[int, bytes] = {}

    def append(self, item: _T) -> None:
        """Adds an item with the next number."""
        self[len(self._items)] = item

    def __setitem__(self, number: int, item: _T) -> None:
        self._items[number] = zlib.compress(pickle.dumps(item, pickle.HIGHEST_PROTOCOL), 1)

    def __getitem__(self, number: int) -> _T:
        item: _T = pickle.loads(zlib.decompress(self._items[number]))
        return item

    def __iter__(self) -> Iterator[_T]:
        """The items in the order of their numbers."""
        return (self[number] for number in sorted(self._items))
