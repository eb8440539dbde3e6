"""One run of `tf-lossscale migrate`: finds files, processes them, reports, returns the status."""

from __future__ import annotations

import contextlib
import os
import platform
import sys
import time
from typing import TYPE_CHECKING, Optional, TextIO

from tf_lossscale._about import VERSION

from .. import reports
from ..files.discover import Candidate, project_files_above
from ..files.printable import quoted, visible
from ..model import KerasChoice, Target
from ..project.search import ProjectSearch, is_project_file
from ..reports import text
from ..run.limits import LateError, Watch
from ..run.results import FileOutcome, Plan, Spool, Summary, Task
from .request import Request
from .search import FileSearch, read_project_file, warn
from .terminal import Progress, put, style_of

if TYPE_CHECKING:
    from ..run.file_set import FileSet

__all__ = ["run"]

_WHICH = "-v shows what was skipped; Python files and notebooks are checked"


def run(request: Request) -> int:
    """Carries out the request and returns the exit status."""
    for report in request.reports:
        if report.file and not os.path.isdir(os.path.dirname(os.path.abspath(report.file))):
            return _refuse(f"--report {report.format}:{report.file}: the directory does not exist")
    is_stdin = list(request.paths) == ["-"]
    if request.settings_note and not (is_stdin and _is_for_program(request)):
        print(request.settings_note, file=sys.stderr)
    if is_stdin:
        return _run_stdin(request)
    summary = Summary(wrote=request.write)
    with contextlib.ExitStack() as stack:
        spool = stack.enter_context(contextlib.closing(Spool[FileOutcome]()))
        progress = stack.enter_context(contextlib.closing(Progress()))
        try:
            with Watch(request.limits) as watch:
                search = FileSearch(request, summary, watch)
                search.run(progress)
                progress.clear()
                has_work = any(isinstance(step, Candidate) for step in search.steps)
                if has_work or _reports_keras(request):
                    request, summary.keras = _with_keras(request, search.project)
                chosen = _file_set(search, request) if has_work else None
        except LateError as error:
            progress.clear()
            return _refuse(str(error))
        if chosen is not None:
            stack.enter_context(contextlib.closing(chosen))
            count = sum(isinstance(step, Candidate) for step in search.steps)
            chosen.work(request.jobs, lambda done: progress.at("Processing", done, count))
            progress.clear()
            why = _why_not_written(chosen) if request.write and not request.allow_dirty else None
            if why is not None:
                what = "commit or stash the changes, or pass --allow-dirty"
                return _refuse(f"nothing written: {why}; {what}")
        keeps_diff = any(report.format == "html" for report in request.reports)
        processed = iter(()) if chosen is None else chosen.outcomes()
        for step in search.steps:
            outcome = next(processed) if isinstance(step, Candidate) else step
            summary.add(outcome)
            spool.append(outcome if keeps_diff else outcome._replace(diff=b""))
            progress.clear()
            _show(outcome, request)
        progress.clear()
        if not (summary.files or summary.failed):
            where = ", ".join(quoted(path) for path in request.paths)
            print(f"tf-lossscale: warning: no files to check in {where}; {_WHICH}", file=sys.stderr)
        return max(_report(request, spool, summary, sys.stdout), summary.status)


def _file_set(search: FileSearch, request: Request) -> FileSet:
    """The files to process."""
    candidates = [step for step in search.steps if isinstance(step, Candidate)]
    # Imported late: it imports LibCST, which often takes longer than the search.
    from ..run.file_set import FileSet

    plan = _plan(request, write=request.write)
    return FileSet(candidates, sorted(search.files), search.words, plan, request.limits)


def _why_not_written(chosen: FileSet) -> Optional[str]:
    """The reason not to overwrite the first protected file that would change; None if none is."""
    from ..files.work_trees import not_restorable

    changed = list(chosen.changed())
    reasons = not_restorable(changed)
    return next((reasons[real] for real in changed if real in reasons), None)


def _run_stdin(request: Request) -> int:
    from ..run.pool import process_all
    from ..run.process_file import finished

    if sys.stdin is None:
        return _refuse("stdin is closed")
    source = sys.stdin.buffer.read(request.limits.size + 1)
    if len(source) > request.limits.size:
        return _refuse(f"{request.stdin_filename}: {request.limits.too_large}")
    name = request.stdin_filename
    for_program = _is_for_program(request)
    project = None if request.keras is not None else ProjectSearch()
    try:
        with Watch(request.limits):
            if project is not None:
                project.add(name, os.path.abspath(name), source)
                for found in project_files_above(name, request.excludes, is_project_file):
                    read_project_file(found.file, project, quiet=for_program)
            request, keras = _with_keras(request, project, quiet=for_program)
    except LateError as error:
        return _refuse(str(error))
    task = Task(name, name, source)
    plan = _plan(request, write=False)
    ((_, result),) = process_all([task], plan, 1, request.limits)
    outcome = finished(task, result, plan)
    put(sys.stdout, source if outcome.error is not None else result.source)
    summary = Summary(wrote=False)
    summary.is_dry = False
    summary.keras = keras
    summary.files = 1
    summary.add(outcome)
    with contextlib.closing(Spool[FileOutcome]()) as spool:
        spool.append(outcome)
        _show(outcome._replace(diff=b""), request)
        return max(_report(request, spool, summary, sys.stderr), summary.status)


def _is_for_program(request: Request) -> bool:
    """Whether a program may read the report of `-` on stderr: then print nothing else there."""
    return any(one.file is None and one.format != "text" for one in request.reports)


def _plan(request: Request, write: bool) -> Plan:
    formats = {report.format for report in request.reports}
    return Plan(
        request.options,
        write,
        diff=request.show_diff or "html" in formats,
        tracebacks=request.tracebacks,
        replacements="sarif" in formats and not request.write,
    )


def _with_keras(
    request: Request, project: Optional[ProjectSearch], quiet: bool = False
) -> tuple[Request, KerasChoice]:
    """The request with the Keras version to target, and why it is that one."""
    choice = request.keras
    if choice is None:
        assert project is not None
        choice = project.choice()
    for warning in () if quiet else choice.warnings:
        warn(warning.path, warning.line, warning.message)
    if request.verbose and not quiet:
        for line in (choice.words, *choice.details):
            print(visible(line), file=sys.stderr)
    options = request.options._replace(keras=choice.keras)
    return request._replace(options=options, keras=choice), choice


def _reports_keras(request: Request) -> bool:
    """Whether the Keras version is reported even if no file has a legacy name."""
    return request.verbose or any(report.format != "text" for report in request.reports)


def _show(outcome: FileOutcome, request: Request) -> None:
    """Prints the error or the diff of one file, or why it was left unchanged."""
    if outcome.error is not None:
        print(text.problem_line(outcome.error, "error"), file=sys.stderr)
    elif outcome.warning is not None:
        print(text.problem_line(outcome.warning, "warning"), file=sys.stderr)
    elif request.show_diff and outcome.diff:
        from ..files.diffs import colored

        has_colors = style_of(sys.stdout, request.color).color
        put(sys.stdout, colored(outcome.diff) if has_colors else outcome.diff)
    elif request.verbose and not outcome.changed:
        print(f"{quoted(outcome.path)}: unchanged: {visible(outcome.note)}", file=sys.stderr)


def _report(request: Request, spool: Spool[FileOutcome], summary: Summary, stream: TextIO) -> int:
    """Writes the reports; returns 2 if one cannot be written, otherwise 0."""
    status = 0
    summary.about = _about(request)
    for report in request.reports:
        if report.file is None:
            # Errors have already been printed to stderr.
            quiet = (one._replace(error=None, warning=None) for one in spool)
            outcomes = quiet if report.format == "text" else spool
            if report.format == "text":
                style = style_of(stream, request.color)
                text.write(outcomes, summary, stream, style, request.statistics)
            else:
                reports.write(report.format, outcomes, summary, stream)
            continue
        try:
            with reports.replacing(report.file) as file:
                if report.format == "text":
                    text.write(spool, summary, file, statistics=request.statistics)
                else:
                    reports.write(report.format, spool, summary, file)
        except OSError as error:
            status = _refuse(f"--report {report.format}:{report.file}: {error.strerror}")
    return status


def _about(request: Request) -> dict[str, str]:
    """What identifies a run, by heading; nothing that does not affect its result."""
    options = request.options
    keras = f"Keras {options.keras}" if options.keras else "every Keras"
    words = ["migrate", *map(quoted, request.paths), "--to", options.target.value]
    if options.target is Target.FINAL and options.keras:
        words += ["--keras", str(options.keras)]
    words += ["--unsafe"] * options.unsafe + ["--write"] * request.write
    for name, codes in (("--select", options.select), ("--ignore", options.ignore)):
        words += [name, ",".join(codes)] if codes else []
    return {
        "Command": visible(" ".join(["tf-lossscale", *words])),
        "Target": "the shim" if options.target is Target.SHIM else f"the final API, {keras}",
        "Versions": f"tf-lossscale {VERSION}, Python {platform.python_version()}",
        "Date": _today(),
    }


def _today() -> str:
    """The date; that of SOURCE_DATE_EPOCH if it is set, for reproducible builds."""
    given = os.environ.get("SOURCE_DATE_EPOCH", "")
    seconds = int(given) if given.isdecimal() and len(given) < 12 else time.time()
    return time.strftime("%Y-%m-%d", time.gmtime(seconds))


def _refuse(message: str) -> int:
    print(f"tf-lossscale: error: {visible(message)}", file=sys.stderr)
    return 2
