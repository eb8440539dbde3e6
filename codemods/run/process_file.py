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

__all__ = ["failed", "finished", "work_on"]


def work_on(task: Task, plan: Plan, limits: Limits) -> FileResult:
    """Rewrites a file that the search of the run has let through. Never raises, never writes.

    It is read here, and not in the search: its bytes must not wait in memory behind other files,
    and whatever changes it until it is written is noticed.
    """
    source = task.source
    try:
        if source is None and os.stat(task.real).st_size > limits.size:
            return failed(task.path, limits.too_large)
        source = atomic_write.read(task.real) if source is None else source
        result = transform(source, plan.options, task.path, task.surroundings)
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
    return failed(task.path, message, source or b"")


def finished(task: Task, result: FileResult, plan: Plan) -> FileOutcome:
    """Writes the decided result of a file if the plan says so; returns the outcome to report."""
    outcome = _to_outcome(task.path, result, plan)
    if not (plan.write and outcome.changed):
        return outcome
    try:
        atomic_write.replace(task.real, result.before, result.source)
        return outcome
    except atomic_write.ChangedOnDiskError:
        message = "not written: the file changed during the run; run again"
    except atomic_write.ReadOnlyFileError:
        message = "not written: the file is read-only; make it writable, or --exclude it"
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        message = f"could not be written: {reason}; the file is unchanged"
    return FileOutcome(task.path, error=FileError(task.path, 0, message))


def _to_outcome(path: str, result: FileResult, plan: Plan) -> FileOutcome:
    """Converts the result to the outcome that the reports show."""
    before, after, error = result.before, result.source, result.error
    outcome = FileOutcome(path, other_contrib=uses_other_contrib(after))
    if error is not None and error.is_syntax and not may_refer(before):
        message = f"not checked, but without a legacy name of TensorFlow: {error.message}"
        return outcome._replace(warning=error._replace(message=message))
    if error is not None:
        return outcome._replace(error=error)
    changed = after != before
    return outcome._replace(
        changed=changed,
        findings=result.findings,
        note=result.note,
        diff=unified(path, before, after) if changed and plan.diff else b"",
        replacements=replacements(before, after) if plan.replacements and changed else (),
    )


def failed(path: str, message: str, source: bytes = b"") -> FileResult:
    """The result for a file that could not be processed."""
    return FileResult(source, error=FileError(path, 0, message), before=source)
