"""Processes one file: reads it and rewrites it; after the decision, writes it and reports."""

from __future__ import annotations

import os
import traceback

from ..engine.prefilter import may_refer, uses_other_contrib
from ..engine.transform import transform
from ..files import atomic_write
from ..files.diffs import replacements, unified
from ..files.discover import words
from ..model import FileError, FileResult
from .limits import Limits, memory_bound
from .results import FileOutcome, Plan, Task

__all__ = ["finished", "work_on"]


def work_on(task: Task, plan: Plan, limits: Limits) -> FileResult:
    """Rewrites a file that the search of the run has let through. Never raises, never writes.

    It is read here, and not in the search: its bytes must not wait in memory behind other files,
    and whatever changes it until it is written is noticed.
    """
    source = task.source
    try:
        if source is None and os.stat(task.real).st_size > limits.size:
            return _failed(task.path, limits.too_large)
        source = atomic_write.read(task.real) if source is None else source
        result = transform(source, plan.options, task.path, task.surroundings, task.shares)
        return result._replace(before=source)
    except OSError as error:
        message = words(error)
    except MemoryError:
        message = f"needs more than {memory_bound() / 2**30:.0f} GB of memory; --exclude it"
    except Exception as error:  # an internal error fails this file only
        if plan.tracebacks:
            traceback.print_exc()
        what = f"{type(error).__name__}: {error}"
        message = f"not rewritten: a rule failed ({what}); please report this, with the file"
    return _failed(task.path, message, source or b"")


def finished(path: str, real: str, result: FileResult, plan: Plan) -> FileOutcome:
    """Writes the decided result of a file if the plan says so; returns the outcome to report.

    Args:
      path: the path to show in reports.
      real: the absolute path.
      result: what becomes of the file.
      plan: whether to write it, and what the reports need.
    """
    outcome = _to_outcome(path, result, plan)
    if plan.write and outcome.changed:
        try:
            atomic_write.replace(real, result.before, result.source)
        except atomic_write.ChangedOnDiskError:
            return _error(path, "not written: the file changed during the run; run again")
        except atomic_write.ReadOnlyFileError:
            return _error(
                path, "not written: the file is read-only; make it writable, or --exclude it"
            )
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            return _error(path, f"could not be written: {reason}; the file is unchanged")
    return outcome


def _to_outcome(path: str, result: FileResult, plan: Plan) -> FileOutcome:
    """Converts the result to the outcome that the reports show."""
    outcome = FileOutcome(path, other_contrib=uses_other_contrib(result.source))
    if result.error is not None and result.error.is_syntax and not may_refer(result.before):
        message = f"not checked, but without a legacy name of TensorFlow: {result.error.message}"
        return outcome._replace(warning=result.error._replace(message=message))
    if result.error is not None:
        return outcome._replace(error=result.error)
    before, after = result.before, result.source
    changed = after != before
    return outcome._replace(
        changed=changed,
        findings=result.findings,
        note=result.note,
        diff=unified(path, before, after) if changed and plan.diff else b"",
        replacements=replacements(before, after) if plan.replacements and changed else (),
    )


def _failed(path: str, message: str, source: bytes = b"") -> FileResult:
    return FileResult(source, error=FileError(path, 0, message), before=source)


def _error(path: str, message: str) -> FileOutcome:
    return FileOutcome(path, error=FileError(path, 0, message))
