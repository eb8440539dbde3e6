"""The values that are passed between the stages, to the reports and to the command."""

from __future__ import annotations

import enum
from typing import NamedTuple, Optional

__all__ = [
    "FileError",
    "FileResult",
    "Finding",
    "Group",
    "KerasChoice",
    "Options",
    "Replacement",
    "Safety",
    "Target",
]


class Safety(enum.Enum):
    """The outcome of a rule at one place in the source."""

    SAFE = "safe"
    """The behavior stays the same; applied."""
    UNSAFE = "unsafe"
    """The behavior can change; the message says how. Applied only with `--unsafe`."""
    MANUAL = "manual"
    """Not edited; the message says what to do."""


class Target(enum.Enum):
    """The API that a run migrates to."""

    SHIM = "shim"
    FINAL = "final"


class Group(enum.Enum):
    """The symbols that one decision is made for, in one program: the final API or the shim."""

    CONTRIB = "contrib"
    V1 = "v1"
    CROSS_SHARD = "cross-shard"
    POLICIES = "policies"
    """The functions and classes of the dtype policy, which pass policies to each other."""
    KERAS_OPTIMIZERS = "keras-optimizers"
    """The Keras loss-scale optimizers and all that depends on their class."""


class Options(NamedTuple):
    """The options that decide how files are rewritten.

    Attributes:
      target: the shim, or the final Keras API.
      keras: the Keras version to target: 2 (`tf.keras` up to TensorFlow 2.15, or tf-keras), 3, or
        None if the result must run on both.
      unsafe: whether to apply edits that can change behavior.
      select: the rule codes to use, as prefixes; empty means all.
      ignore: the rule codes to skip, as prefixes; takes precedence over `select`.
      mark: whether to add a `# TODO(CODE): ...` comment at each manual finding.
      sets_legacy_keras: whether the project sets `TF_USE_LEGACY_KERAS`, so that `tf.keras` is
        `tf_keras`.
    """

    target: Target = Target.FINAL
    keras: Optional[int] = 2
    unsafe: bool = False
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    mark: bool = False
    sets_legacy_keras: bool = False

    @property
    def to_shim(self) -> bool:
        """Whether the target is the shim."""
        return self.target is Target.SHIM

    @property
    def for_keras_3(self) -> bool:
        """Whether the result must run on Keras 3."""
        return self.keras != 2

    def selects(self, code: str) -> bool:
        """Whether `select` and `ignore` allow a rule code."""
        if self.select and not code.startswith(self.select):
            return False
        return not (self.ignore and code.startswith(self.ignore))


class Finding(NamedTuple):
    """What a rule reports about one place in the source. Lines and columns count from 1.

    `end_column` is the column after the last character; 0 if the end is unknown. `text` is the
    first line of the place in the source; empty if it is long.

    `end_line` is the last line of the place, for suppression comments and annotations. A `safe`
    finding that is not applied needs no edit.

    In a notebook, `cell` is the position among all cells and `cell_line` the line in the cell, both
    from 1; `line` is the line of the file, and `column` the one in the line of the cell.
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
    end_column: int = 0
    text: str = ""
    cell: Optional[int] = None
    cell_line: int = 0

    @property
    def full_message(self) -> str:
        """The message; in a notebook, after the place in it."""
        if self.cell is None:
            return self.message
        return f"cell {self.cell}, line {self.cell_line}: {self.message}"

    @property
    def is_left(self) -> bool:
        """Whether something is left to do at this place, by hand or with `--unsafe`."""
        return not self.applied and self.outcome is not Safety.SAFE

    @property
    def remark(self) -> str:
        """Why a safe or unsafe finding was not applied; empty if it was."""
        if self.applied or self.outcome is Safety.MANUAL:
            return ""
        return "not applied" if self.is_left else "unchanged"


class Replacement(NamedTuple):
    """An edit of a file: the text from a start up to an end, from 1, is replaced by `text`."""

    line: int
    column: int
    end_line: int
    end_column: int
    text: str


class FileError(NamedTuple):
    """Why a file could not be processed. `line` is 0 if the error has no line.

    `is_syntax` is set if the source could not be decoded or parsed.
    """

    path: str
    line: int
    message: str
    is_syntax: bool = False


class FileResult(NamedTuple):
    """The result of transforming one file.

    Attributes:
      source: the bytes after the edits; the input bytes if nothing was edited.
      findings: the findings, in source order.
      error: set if the file could not be processed; then `source` is the input.
      note: why nothing was changed, for `-v`; empty if something was.
      before: the bytes that a worker has read.
    """

    source: bytes
    findings: tuple[Finding, ...] = ()
    error: Optional[FileError] = None
    note: str = ""
    before: bytes = b""


class KerasChoice(NamedTuple):
    """The Keras version to target, and the reason.

    Attributes:
      keras: 2, 3, or None if the result must run on both.
      reason: what decided.
      warnings: contradictions, each at its first place that decides for Keras 2.
      details: everything that decides, for `-v`.
      is_given: whether the command line decided.
      sets_legacy_keras: whether the project sets `TF_USE_LEGACY_KERAS`, whatever decided.
    """

    keras: Optional[int]
    reason: str
    warnings: tuple[FileError, ...] = ()
    details: tuple[str, ...] = ()
    is_given: bool = False
    sets_legacy_keras: bool = False

    @property
    def target(self) -> str:
        """The target as reports name it: `2`, `3` or `both`."""
        return "both" if self.keras is None else str(self.keras)

    @property
    def words(self) -> str:
        """The target and the reason, as one line."""
        versions = "Keras 2 and Keras 3" if self.keras is None else f"Keras {self.keras}"
        return f"target: {versions} ({self.reason})"
