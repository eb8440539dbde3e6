"""The findings that a project has accepted: a file that lists them, so that only new ones count.

A finding is known by its code, its path and the text of its line, so that it is still the same when
lines above it are added. Of equal findings as many count as known as the file lists.
"""

from __future__ import annotations

import collections
import json
import os
from collections.abc import Collection, Iterator
from typing import NamedTuple

from ..files import atomic_write, git
from ..files.printable import quoted, visible
from ..model import Finding
from .results import FileOutcome

__all__ = [
    "Baseline",
    "BaselineError",
    "Key",
    "base_of",
    "check_replaceable",
    "is_baseline",
    "read",
]

_MARK = "tf-lossscale baseline"
_VERSION = 1
_MOST_BYTES = 8 * 1024**2


class BaselineError(ValueError):
    """A file is no baseline, or cannot be read."""


class Key(NamedTuple):
    """What a finding is known by.

    Attributes:
      path: relative to the top of the git work tree, or else to the working directory.
      code: the code of the rule.
      text: the line without the spaces around it; the symbol if the line is long.
    """

    path: str
    code: str
    text: str

    @property
    def words(self) -> str:
        """The finding, as a line for users."""
        return f"{quoted(self.path)}: {self.code} {visible(self.text)}"


class Baseline:
    """The accepted findings, and which findings of a run are among them.

    Args:
      base: the directory that paths are relative to.
      known: how many findings of each key are accepted; None to accept all.
    """

    def __init__(self, base: str, known: collections.Counter[Key] | None = None) -> None:
        self._base = base
        self._left = known
        self.found: collections.Counter[Key] = collections.Counter()
        """All findings of the run."""
        self.accepted = 0

    def new_in(self, outcome: FileOutcome, is_written: bool) -> FileOutcome:
        """The outcome without the accepted findings.

        If only these change the file, and it is not written, it needs no change.
        """
        new = [finding for finding in outcome.findings if not self._accepts(finding)]
        if len(new) == len(outcome.findings):
            return outcome
        outcome = outcome._replace(findings=tuple(new))
        if is_written or any(finding.applied for finding in new):
            return outcome
        note = outcome.note if new else "its findings are in the baseline"
        return outcome._replace(changed=False, diff=b"", replacements=(), note=note)

    def stale(self, checked: Collection[str]) -> Iterator[Key]:
        """The entries that nothing in the checked files, given by their real paths, matches."""
        for key, count in sorted((self._left or {}).items()):
            path = os.path.join(self._base, key.path)
            if count > 0 and (os.path.realpath(path) in checked or not os.path.exists(path)):
                yield key

    def text(self) -> str:
        """The file that accepts all findings of the run, one a line."""
        entries = [
            json.dumps({"path": key.path, "code": key.code, "text": key.text, "count": count})
            for key, count in sorted(self.found.items())
        ]
        listed = ",\n    ".join(entries)
        findings = f"[\n    {listed}\n  ]" if entries else "[]"
        return f'{{\n  "{_MARK}": {_VERSION},\n  "findings": {findings}\n}}\n'

    def _accepts(self, finding: Finding) -> bool:
        path = os.path.relpath(os.path.abspath(finding.path), self._base).replace(os.sep, "/")
        path = path.encode("utf-8", "backslashreplace").decode()
        key = Key(path, finding.code, finding.text.strip() or finding.symbol)
        self.found[key] += 1
        if self._left is not None:
            if self._left[key] < 1:
                return False
            self._left[key] -= 1
        self.accepted += 1
        return True


def is_baseline(data: bytes) -> bool:
    """Whether a file is a baseline, by its beginning."""
    return f'"{_MARK}"'.encode() in data[:400]


def base_of() -> str:
    """The directory that the paths in a baseline are relative to."""
    here = os.getcwd()
    return git.top_of(here) or os.path.realpath(here)


def read(path: str) -> collections.Counter[Key]:
    """Reads a baseline.

    Raises:
      BaselineError: if it cannot be read, or is no baseline.
    """
    try:
        data = atomic_write.read(os.path.realpath(path), _MOST_BYTES)
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        hint = "write one with --write-baseline" if isinstance(error, FileNotFoundError) else ""
        raise BaselineError(f"{quoted(path)}: {why}{'; ' * bool(hint)}{hint}") from None
    try:
        content = json.loads(data.decode("utf-8"))
        if not isinstance(content, dict) or content.get(_MARK) != _VERSION:
            raise ValueError
        return _counted(content["findings"])
    except (ValueError, KeyError, TypeError, RecursionError):
        what = "is not a baseline of tf-lossscale, or is damaged; write one with --write-baseline"
        raise BaselineError(f"{quoted(path)} {what}") from None


def check_replaceable(path: str) -> None:
    """Raises BaselineError if the file exists and is no baseline."""
    if os.path.islink(path):
        raise BaselineError(f"{quoted(path)} is a symbolic link; name the file that it leads to")
    if not os.path.lexists(path):
        return
    try:
        read(path)
    except BaselineError:
        what = "exists and is not a baseline of tf-lossscale; name another file, or remove it"
        raise BaselineError(f"{quoted(path)} {what}") from None


def _counted(entries: object) -> collections.Counter[Key]:
    """The counts of the entries of a file.

    Raises:
      ValueError: if they are not such entries.
      KeyError: likewise.
    """
    if not isinstance(entries, list):
        raise ValueError
    counts: collections.Counter[Key] = collections.Counter()
    for entry in entries:
        key = Key(entry["path"], entry["code"], entry["text"])
        count = entry["count"]
        if not all(isinstance(part, str) for part in key) or type(count) is not int or count < 1:
            raise ValueError
        counts[key] += count
    return counts
