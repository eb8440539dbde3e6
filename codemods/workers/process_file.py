"""Processes one file: reads it, rewrites it, writes it if requested, returns the outcome."""

from __future__ import annotations

import os
import traceback
from typing import Callable

from ..engine.prefilter import may_concern, may_refer
from ..engine.transform import transform
from ..files import atomic_write
from ..files.diffs import excerpt, replacements, unified
from ..files.discover import NOTEBOOK, words
from ..model import FileError, FileResult, Options
from ..notebooks.transform import transform as transform_notebook
from ..resolve.neighbors import ALONE, NOBODY, Neighbors
from ..run.flows import Question, answer
from ..run.module_facts import facts_of
from .limits import Limits, memory_bound
from .results import FileOutcome, Plan

__all__ = ["answered", "process", "process_given", "rewritten"]


def process(
    path: str,
    real: str,
    plan: Plan,
    limits: Limits,
    before_writing: Callable[[], None],
    neighbors: Neighbors = NOBODY,
) -> FileOutcome:
    """Processes a file that the search of the run has let through. Never raises.

    It is read here, and not in the search: its bytes must not wait in memory behind other files,
    and whatever changes it until it is written is noticed.

    Args:
      path: the path to show in reports.
      real: the path of the file.
      plan: what to do.
      limits: the limits on one file.
      before_writing: called before the result is written.
      neighbors: what the other files of the run tell about it.
    """
    try:
        if os.stat(real).st_size > limits.size:
            return _failed(path, limits.too_large)
        source = atomic_write.read(real)
    except OSError as error:
        return _failed(path, words(error))
    result = _transformed(path, source, plan.options, plan.tracebacks, neighbors)
    outcome = _to_outcome(path, source, result, plan)
    if result.error is None and plan.write and result.source != source:
        before_writing()
        try:
            atomic_write.replace(real, source, result.source)
        except atomic_write.ChangedOnDiskError:
            return _failed(path, "not written: the file changed during the run; run again")
        except atomic_write.ReadOnlyFileError:
            return _failed(
                path, "not written: the file is read-only; make it writable, or --exclude it"
            )
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            return _failed(path, f"could not be written: {reason}; the file is unchanged")
    return outcome


def process_given(path: str, source: bytes, plan: Plan) -> FileOutcome:
    """Processes bytes from stdin; the outcome holds the new bytes. Never raises."""
    result = rewritten(path, source, plan.options, plan.tracebacks, ALONE)
    return _to_outcome(path, source, result, plan)._replace(source=result.source)


def rewritten(
    path: str,
    source: bytes,
    options: Options,
    tracebacks: bool = False,
    neighbors: Neighbors = NOBODY,
) -> FileResult:
    """Rewrites the bytes of a file. Never raises: an error is part of the result.

    Args:
      path: the name of the file; the suffix `.ipynb` means a notebook.
      source: the bytes of the file.
      options: how to rewrite them.
      tracebacks: whether to print tracebacks of internal errors to stderr.
      neighbors: what the other files of the run tell about it.
    """
    if not may_concern(source):
        return FileResult(source, note="no legacy name in it")
    return _transformed(path, source, options, tracebacks, neighbors)


def answered(
    path: str,
    real: str,
    question: Question,
    neighbors: Neighbors,
    options: Options,
    limits: Limits,
) -> FileOutcome:
    """What a file says; nothing if it cannot be read or parsed. Never raises."""
    try:
        if os.stat(real).st_size > limits.size:
            return FileOutcome(path)
        source = atomic_write.read(real)
        if question == Question():
            return FileOutcome(path, facts=facts_of(source, options.from_shim))
        if question.about_result:
            result = _transformed(path, source, options, False, neighbors)
            is_known = result.error is None and not path.endswith(NOTEBOOK)
            facts = facts_of(result.source, options.from_shim) if is_known else None
            return FileOutcome(
                path, findings=result.findings, error=result.error, facts=facts, left=result.left
            )
        return FileOutcome(path, answer=answer(source, options, neighbors, question))
    except Exception:  # what is not known is unknown; a rewrite of the file reports the error
        return FileOutcome(path)


def _transformed(
    path: str,
    source: bytes,
    options: Options,
    tracebacks: bool,
    neighbors: Neighbors = NOBODY,
) -> FileResult:
    try:
        if path.endswith(NOTEBOOK):
            return transform_notebook(source, options, path, neighbors.blocked_by)
        if neighbors == NOBODY:
            return transform(source, options, path)
        return transform(source, options, path, neighbors)
    except MemoryError:
        message = f"needs more than {memory_bound() / 2**30:.0f} GB of memory; --exclude it"
    except Exception as error:  # an internal error fails this file only
        if tracebacks:
            traceback.print_exc()
        what = f"{type(error).__name__}: {error}"
        message = f"not rewritten: a rule failed ({what}); please report this, with the file"
    return FileResult(source, error=FileError(path, 0, message))


def _to_outcome(path: str, source: bytes, result: FileResult, plan: Plan) -> FileOutcome:
    """Converts the result to the outcome that the reports show."""
    if result.error is not None and result.error.is_syntax and not may_refer(source):
        message = f"not checked, but without a legacy name of TensorFlow: {result.error.message}"
        return FileOutcome(path, warning=result.error._replace(path=path, message=message))
    if result.error is not None:
        return FileOutcome(path, error=result.error)
    changed = result.source != source
    wanted = plan.diff or plan.excerpts
    diff = unified(path, source, result.source) if changed and wanted else b""
    excerpts: tuple[str, ...] = ()
    if plan.excerpts:
        excerpts = tuple(
            excerpt(diff, source, finding.line, finding.end_line) for finding in result.findings
        )
    edits = replacements(source, result.source) if plan.replacements and changed else ()
    return FileOutcome(
        path, changed, result.findings, None, result.note, diff, excerpts, replacements=edits
    )


def _failed(path: str, message: str) -> FileOutcome:
    return FileOutcome(path, error=FileError(path, 0, message))
