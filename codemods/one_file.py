"""One file from disk to disk: read, rewritten, written where asked, told as an outcome."""

from __future__ import annotations

from . import engine, notebook, write
from .diffs import excerpt, unified
from .discover import words
from .model import FileError, FileResult, Options
from .outcome import FileOutcome, Plan

__all__ = ["process", "rewritten"]


def process(path: str, real: str, plan: Plan) -> FileOutcome:
    """What becomes of the file `real`, which the reports call `path`. Never raises."""
    try:
        source = write.read(real)
    except OSError as error:
        return _failed(path, words(error))
    result = rewritten(path, source, plan.options)
    if result.error is None and plan.write and result.source != source:
        try:
            write.replace(real, source, result.source)
        except write.ChangedOnDiskError:
            return _failed(path, "changed while it was looked at, so it was left; run again")
        except write.ReadOnlyFileError:
            return _failed(path, "is read-only, so it was left; make it writable, or --exclude it")
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            return _failed(path, f"could not be written: {reason}; it is as it was")
    return told(path, source, result, plan)


def rewritten(path: str, source: bytes, options: Options) -> FileResult:
    """What becomes of the bytes of a file of that name. Never raises."""
    try:
        if path.endswith(".ipynb"):
            return notebook.transform(source, options)
        return engine.transform(source, options)
    except Exception as error:  # a defect of ours concerns this file only, and must be told
        what = f"{type(error).__name__}: {error}"
        message = f"was left: a rule failed on it ({what}); please report this, with the file"
        return FileResult(source, error=FileError("", 0, message))


def told(path: str, source: bytes, result: FileResult, plan: Plan) -> FileOutcome:
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
