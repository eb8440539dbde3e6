"""The values that pass between the engine, the command and the reports."""

from __future__ import annotations

import enum
from typing import NamedTuple, Optional

__all__ = ["FileError", "FileResult", "Finding", "Options", "Safety", "Target"]


class Safety(enum.Enum):
    """What a rule says of one place."""

    SAFE = "safe"
    """The behaviour stays the same; applied."""
    UNSAFE = "unsafe"
    """The behaviour can differ; the message says how. Applied with `--unsafe` only."""
    MANUAL = "manual"
    """Left as it is; the message says what to do."""


class Target(enum.Enum):
    """Where a migration goes."""

    SHIM = "shim"
    FINAL = "final"


class Options(NamedTuple):
    """What decides how one file is rewritten; the same for all files of a run.

    Attributes:
      target: the shim, or the final Keras API.
      keras: 2 (`tf.keras` up to TensorFlow 2.15, or tf-keras) or 3.
      unsafe: apply edits that can change behaviour too.
      select: rule-code prefixes to use; empty means all.
      ignore: rule-code prefixes to leave out; wins over `select`.
      mark: leave a `# TODO(CODE): ...` comment at each manual finding.
    """

    target: Target = Target.FINAL
    keras: int = 2
    unsafe: bool = False
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    mark: bool = False

    def selects(self, code: str) -> bool:
        """Whether `select` and `ignore` let a rule's code through."""
        if self.select and not code.startswith(self.select):
            return False
        return not (self.ignore and code.startswith(self.ignore))


class Finding(NamedTuple):
    """One place that a rule speaks of. Lines and columns count from 1, as editors do.

    `path` is empty until the command fills it in. `end_line` is the last line of the place, which
    suppression comments and annotations need. A `safe` finding that is not applied needs no edit.
    """

    path: str
    line: int
    column: int
    code: str
    symbol: str
    outcome: Safety
    applied: bool
    message: str
    end_line: int = 0

    @property
    def is_left(self) -> bool:
        """Whether a person, or `--unsafe`, has something to do there."""
        return not self.applied and self.outcome is not Safety.SAFE

    @property
    def remark(self) -> str:
        """Why the outcome of the rule is not that of an edit here; empty where it is."""
        if self.applied or self.outcome is Safety.MANUAL:
            return ""
        return "not applied" if self.is_left else "unchanged"


class FileError(NamedTuple):
    """Why a file could not be processed. `line` is 0 where no line is to blame."""

    path: str
    line: int
    message: str


class FileResult(NamedTuple):
    """What became of one file.

    Attributes:
      source: the bytes after the edits; the input bytes where nothing was edited.
      findings: in order of place.
      error: set when the file could not be processed; then `source` is the input.
      note: why nothing was changed, for `-v`; empty where something was.
    """

    source: bytes
    findings: tuple[Finding, ...] = ()
    error: Optional[FileError] = None
    note: str = ""
