"""One file from disk to disk: read, rewritten, written where asked, told as an outcome."""

from __future__ import annotations

import os
import traceback
from typing import Callable

from ..engine.transform import transform
from ..files import atomic_write
from ..files.diffs import excerpt, unified
from ..files.discover import words
from ..model import FileError, FileResult, Options
from ..notebooks.transform import transform as transform_notebook
from .limits import Limits, memory_bound
from .results import FileOutcome, Plan

__all__ = ["process", "process_given", "rewritten"]


def process(
    path: str, real: str, plan: Plan, limits: Limits, before_writing: Callable[[], None]
) -> FileOutcome:
    """What becomes of the file `real`, which the reports call `path`. Never raises.

    Args:
      path: as the reports show it.
      real: where it is.
      plan: what to do.
      limits: what it may cost.
      before_writing: called before the result is put in its place.
    """
    try:
        if os.stat(real).st_size > limits.size:
            return _failed(path, limits.too_large)
        source = atomic_write.read(real)
    except OSError as error:
        return _failed(path, words(error))
    result = rewritten(path, source, plan.options, plan.tracebacks)
    outcome = _to_outcome(path, source, result, plan)
    if result.error is None and plan.write and result.source != source:
        before_writing()
        try:
            atomic_write.replace(real, source, result.source)
        except atomic_write.ChangedOnDiskError:
            return _failed(path, "changed while it was looked at, so it was left; run again")
        except atomic_write.ReadOnlyFileError:
            return _failed(path, "is read-only, so it was left; make it writable, or --exclude it")
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            return _failed(path, f"could not be written: {reason}; it is as it was")
    return outcome


def process_given(path: str, source: bytes, plan: Plan) -> FileOutcome:
    """What becomes of bytes from stdin, with the result. Never raises."""
    result = rewritten(path, source, plan.options, plan.tracebacks)
    return _to_outcome(path, source, result, plan)._replace(source=result.source)


def rewritten(path: str, source: bytes, options: Options, tracebacks: bool = False) -> FileResult:
    """What becomes of the bytes of a file of that name. Never raises.

    Args:
      path: the name, whose suffix tells what it is.
      source: the bytes.
      options: what to do.
      tracebacks: print that of a defect of ours to stderr.
    """
    try:
        if path.endswith(".ipynb"):
            return transform_notebook(source, options)
        return transform(source, options)
    except MemoryError:
        message = f"takes more than {memory_bound() / 2**30:.0f} GB of memory; --exclude it"
    except Exception as error:  # a defect of ours concerns this file only, and must be told
        if tracebacks:
            traceback.print_exc()
        what = f"{type(error).__name__}: {error}"
        message = f"was left: a rule failed on it ({what}); please report this, with the file"
    return FileResult(source, error=FileError("", 0, message))


def _to_outcome(path: str, source: bytes, result: FileResult, plan: Plan) -> FileOutcome:
    """The outcome that the reports tell of `result`."""
    if result.error is not None:
        return FileOutcome(path, error=result.error._replace(path=path))
    changed = result.source != source
    wanted = plan.diff or plan.excerpts
    diff = unified(path, source, result.source) if changed and wanted else b""
    findings = tuple(finding._replace(path=path) for finding in result.findings)
    excerpts: tuple[str, ...] = ()
    if plan.excerpts:
        excerpts = tuple(
            excerpt(diff, source, finding.line, finding.end_line) for finding in findings
        )
    return FileOutcome(path, changed, findings, None, result.note, diff, excerpts)


def _failed(path: str, message: str) -> FileOutcome:
    return FileOutcome(path, error=FileError(path, 0, message))
