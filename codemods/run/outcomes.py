"""What the parent process makes of results: it writes files, and converts to what is reported."""

from __future__ import annotations

from ..engine.prefilter import may_refer, uses_other_contrib
from ..facts import UNREAD
from ..files import atomic_write
from ..files.diffs import replacements, unified
from ..model import FileError, FileResult
from .results import FileOutcome, Job, JobKind, Plan, Read

__all__ = ["failed", "finished"]

_SHIM = b"tf_lossscale"


def finished(path: str, real: str, result: FileResult, plan: Plan) -> FileOutcome:
    """Writes the decided result of a file if the plan says so; returns the outcome to report."""
    outcome = _to_outcome(path, result, plan)
    if not (plan.write and outcome.changed):
        return outcome
    try:
        atomic_write.replace(real, result.before, result.source)
        return outcome
    except atomic_write.ChangedOnDiskError:
        message = "not written: the file changed during the run; run again"
    except atomic_write.ReadOnlyFileError:
        message = "not written: the file is read-only; make it writable, or --exclude it"
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        message = f"could not be written: {reason}; the file is unchanged"
    return FileOutcome(path, error=FileError(path, 0, message))


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
        needs_shim=changed and _SHIM in after,
        diff=unified(path, before, after) if changed and plan.diff else b"",
        replacements=replacements(before, after) if plan.replacements and changed else (),
    )


def failed(job: Job, message: str) -> object:
    """What a job gives that could not be carried out."""
    if job.kind is JobKind.SCREEN:
        return None
    if job.kind is JobKind.READ:
        return Read(job.source or b"", error=FileError(job.path, 0, message))
    if job.kind is JobKind.EDIT:
        source = job.source or b""
        return FileResult(source, error=FileError(job.path, 0, message), before=source)
    if job.kind in (JobKind.EXPORTS, JobKind.MADE):
        return {}
    return dict.fromkeys(job.files, UNREAD)
