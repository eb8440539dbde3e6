"""One run of `tf-lossscale migrate`: finds files, processes them, reports, returns the status."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Optional

from tf_lossscale._about import VERSION

from .. import reports
from ..files import work_trees
from ..files.diffs import colored
from ..files.discover import Candidate
from ..files.printable import quoted, visible
from ..reports.text import problem_line
from ..run.baseline import Baseline, base_of
from ..run.limits import LateError, Watch
from ..run.results import FileOutcome, Spool, Summary
from .request import Request
from .search import FileSearch
from .terminal import Messages, put, style_of

__all__ = ["run"]

_EXCLUDED = "matches --exclude"
_WHICH = "-v shows what was skipped; Python files and notebooks are checked"


class _RefusedError(Exception):
    """The run ends with exit status 2; the message is the reason."""


def run(request: Request) -> int:
    """Carries out the request and returns the exit status."""
    summary = Summary(wrote=request.write)
    # A program that reads the report of stdin on stderr must find nothing else there.
    messages = Messages(quiet=request.is_stdin and request.is_for_program)
    spool = Spool[FileOutcome]()
    try:
        if request.settings_note:
            messages.say(request.settings_note)
        accepted = _baseline(request)
        processed = _process_stdin if request.is_stdin else _process_files
        for outcome in processed(request, summary, messages):
            if accepted is not None:
                outcome = accepted.new_in(outcome, request.write)
            summary.add(outcome)
            spool.append(outcome if "html" in request.formats else outcome._replace(diff=b""))
            _show(outcome, request, messages)
        if not (summary.files or summary.failed or request.is_stdin):
            where = ", ".join(quoted(path) for path in request.paths)
            messages.say(f"tf-lossscale: warning: no files to check in {where}; {_WHICH}")
        if accepted is not None:
            summary.in_baseline = accepted.accepted
            _show_stale(request, accepted, summary, messages)
        status = _write_baseline(request, accepted, summary)
        return max(status, _report(request, spool, summary), summary.status)
    except (_RefusedError, LateError) as error:
        messages.clear()
        return _refuse(str(error))
    finally:
        messages.clear()


def _baseline(request: Request) -> Optional[Baseline]:
    if request.write_baseline is not None:
        return Baseline(base_of())
    return None if request.known is None else Baseline(base_of(), request.known)


def _show_stale(request: Request, accepted: Baseline, summary: Summary, messages: Messages) -> None:
    """Prints the entries of the baseline that match nothing any more, with `-v`."""
    if not request.verbose or request.baseline is None:
        return
    for key in accepted.stale(summary.checked - summary.failing):
        if request.options.selects(key.code):
            messages.say(f"{quoted(request.baseline)}: stale: {key.words}")


def _write_baseline(request: Request, accepted: Optional[Baseline], summary: Summary) -> int:
    """Writes the baseline; returns 2 if it cannot be written, otherwise 0."""
    path = request.write_baseline
    if path is None or accepted is None:
        return 0
    if summary.failed:
        one = summary.failed == 1
        files, them = ("1 file", "it") if one else (f"{summary.failed:,} files", "them")
        what = f"fix or --exclude {them}"
        return _refuse(f"--write-baseline {path}: not written, as {files} failed; {what}")
    try:
        with reports.replacing(path) as file:
            file.write(accepted.text())
        return 0
    except OSError as error:
        return _refuse(f"--write-baseline {path}: {(error.strerror or str(error)).lower()}")


def _process_files(request: Request, summary: Summary, messages: Messages) -> Iterator[FileOutcome]:
    """Searches and rewrites the files; the outcomes, which are written as they are read."""
    with Watch(request.limits) as watch:
        search = FileSearch(request, watch, messages)
        search.run()
        messages.clear()
        candidates = [step for step in search.steps if isinstance(step, Candidate)]
        if request.verbose or request.formats != {"text"}:
            summary.keras = search.decided_keras()
        _count(search, summary)
    processed = iter(_processed(candidates, search, summary, messages))
    return (next(processed) if isinstance(step, Candidate) else step for step in search.steps)


def _count(search: FileSearch, summary: Summary) -> None:
    """Adds to the summary what the search has found."""
    summary.files = len(search.files)
    summary.checked = frozenset([*search.files, *search.data_files])
    if search.requirements is not None:
        summary.requirements = search.requirements.files
        summary.have_shim = search.requirements.have_shim
    summary.other_contrib = search.other_contrib


def _processed(
    candidates: Sequence[Candidate], search: FileSearch, summary: Summary, messages: Messages
) -> Iterable[FileOutcome]:
    """The outcomes of the files with legacy words, which are written as they are read."""
    if not candidates:
        return ()
    # Imported late: most repositories have no such file, and few of the others need LibCST.
    from ..run.outcomes import finished
    from ..run.screened import results_without_places

    request = search.request
    results = results_without_places(candidates, request.plan, request.limits)
    if results is not None:
        pairs = zip(candidates, results)
        return (finished(file.path, file.real, result, request.plan) for file, result in pairs)
    from ..run.file_set import FileSet

    summary.keras = search.decided_keras()
    hints = frozenset(search.hints)
    files = FileSet(
        candidates, sorted(search.files), hints, search.links, request.plan, request.limits
    )
    count = len(candidates)
    files.work(request.jobs, lambda done: messages.at("Processing", done, count))
    messages.clear()
    if request.write and not request.allow_dirty:
        _refuse_dirty(files.changed())
    return files.outcomes()


def _refuse_dirty(files: Iterable[str]) -> None:
    """Raises an error if git could not restore one of the files."""
    why = work_trees.why_not_restorable(files)
    if why is not None:
        raise _RefusedError(f"nothing written: {why}, or pass --allow-dirty")


def _process_stdin(request: Request, summary: Summary, messages: Messages) -> Iterable[FileOutcome]:
    """Rewrites the source from stdin to stdout; its outcome."""
    from ..run.file_set import edited_alone
    from ..run.outcomes import finished

    if sys.stdin is None:
        raise _RefusedError("stdin is closed")
    name = request.stdin_filename
    source = sys.stdin.buffer.read(request.limits.size + 1)
    if len(source) > request.limits.size:
        raise _RefusedError(f"{name}: {request.limits.too_large}")
    summary.is_dry = False
    if request.excludes.match(os.path.realpath(name)):
        put(sys.stdout, source)
        messages.say(f"{quoted(name)}: unchanged: {_EXCLUDED}")
        return []
    with Watch(request.limits) as watch:
        search = FileSearch(request, watch, messages)
        search.run_stdin(source)
        summary.keras = search.decided_keras()
    result = edited_alone(name, source, request.plan, request.limits)
    put(sys.stdout, result.source if result.error is None else source)
    summary.files = 1
    return [finished(name, name, result, request.plan)]


def _show(outcome: FileOutcome, request: Request, messages: Messages) -> None:
    """Prints the error or the diff of one file, or why it was left unchanged."""
    messages.clear()
    for kind, problem in outcome.problems:
        messages.say(problem_line(kind, problem))
    if request.shows_diff and outcome.diff:
        has_colors = style_of(sys.stdout, request.color).color
        put(sys.stdout, colored(outcome.diff) if has_colors else outcome.diff)
    if request.verbose and not (outcome.changed or outcome.problems):
        messages.say(f"{quoted(outcome.path)}: unchanged: {visible(outcome.note)}")


def _report(request: Request, spool: Spool[FileOutcome], summary: Summary) -> int:
    """Writes the reports; returns 2 if one cannot be written, otherwise 0."""
    status = 0
    summary.about = _about(request)
    stream = sys.stderr if request.is_stdin else sys.stdout
    for report in request.report:
        if report.file is None:
            style = style_of(stream, request.color)
            # Errors have already been printed to stderr.
            quiet = (outcome._replace(error=None, warning=None) for outcome in spool)
            outcomes = quiet if report.format == "text" else spool
            reports.write(report.format, outcomes, summary, stream, style, request.statistics)
            continue
        try:
            with reports.replacing(report.file) as file:
                reports.write(report.format, spool, summary, file, statistics=request.statistics)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            status = _refuse(f"--report {report.format}:{report.file}: {reason}")
    return status


def _about(request: Request) -> dict[str, str]:
    """What identifies a run, by heading; nothing that does not affect its result."""
    options = request.options
    is_final = not options.to_shim
    words = ["tf-lossscale migrate", *map(quoted, request.paths), f"--to {request.to}"]
    words += [f"--keras {options.keras}"] if is_final and options.keras else []
    words += ["--unsafe"] * request.unsafe + ["--write"] * request.write
    for name, codes in (("--select", options.select), ("--ignore", options.ignore)):
        words += [f"{name} {','.join(codes)}"] if codes else []
    keras = f"Keras {options.keras}" if options.keras else "every Keras"
    given = os.environ.get("SOURCE_DATE_EPOCH", "")  # for reproducible builds
    seconds = int(given) if given.isdecimal() and len(given) < 12 else time.time()
    return {
        "Command": visible(" ".join(words)),
        "Target": f"the final API, {keras}" if is_final else "the shim",
        "Versions": f"tf-lossscale {VERSION}, Python {platform.python_version()}",
        "Date": time.strftime("%Y-%m-%d", time.gmtime(seconds)),
    }


def _refuse(message: str) -> int:
    print(f"tf-lossscale: error: {visible(message)}", file=sys.stderr)
    return 2
