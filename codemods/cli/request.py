"""What one run of `tf-lossscale migrate` does: the command line and the settings, put together."""

from __future__ import annotations

import argparse
import collections
import os
import stat
from collections.abc import Sequence
from typing import Optional

from ..files.excludes import SUFFIXES, Excludes
from ..files.printable import quoted, relative
from ..model import KerasChoice, Options, Target
from ..reports import Report, check_replaceable
from ..run import baseline
from ..run.baseline import Key
from ..run.limits import Limits
from ..run.results import Plan
from .settings import Settings, SettingsError, load, load_file

__all__ = ["Request"]

_JOBS_PER_CORE = 4
"""An upper limit for `--jobs`: more processes use memory and save no time."""


class Request(argparse.Namespace):
    """The options of a run, by the names that the parser gives them.

    What neither the command line nor the settings give is as below.

    Attributes:
      jobs: the number of worker processes.
      excludes: the paths to skip.
      known: the findings that the baseline accepts; None without one.
      settings_note: the line that reports the settings in effect; may be empty.
      choice: the Keras version to target, and why; None until the search of the run has decided.
    """

    paths: Sequence[str]
    to = "final"
    keras = "auto"
    write = check = unsafe = mark = allow_dirty = follow_links_outside = statistics = False
    quiet = False
    baseline: Optional[str] = None
    write_baseline: Optional[str] = None
    settings_file: Optional[str] = None
    select: Sequence[tuple[str, ...]] = ()
    ignore: Sequence[tuple[str, ...]] = ()
    exclude: Sequence[str] = ()
    stdin_filename = ""
    report: Sequence[Report] = (Report("text", None),)
    color = "auto"
    verbose = 0
    jobs = 0
    time_limit = 60.0
    size_limit = 32.0
    excludes: Excludes
    known: Optional[collections.Counter[Key]] = None
    settings_note: str
    choice: Optional[KerasChoice] = None

    @classmethod
    def of(cls, arguments: argparse.Namespace) -> Request:
        """Creates the request from the command line and the settings of the project.

        Raises:
          SettingsError: if the settings or the baseline are invalid.
          ValueError: if options cannot be combined.
        """
        given = {name: value for name, value in vars(arguments).items() if value is not None}
        request = cls(**given)
        request._check_combinations()
        settings = request._loaded_settings()
        for name in settings.values.keys() - given.keys():
            setattr(request, name, settings.values[name])
        if sum(report.file is None for report in request.report) > 1:
            raise ValueError("only one --report can go to stdout; use FORMAT:FILE for the others")
        request._check_report_files()
        request._add_text_report()
        request._read_baseline()
        if request.statistics and "text" not in request.formats:
            raise ValueError("--statistics requires the text report")
        request.jobs = min(request.jobs or _cores(), _JOBS_PER_CORE * _cores())
        request.stdin_filename = request.stdin_filename or "<stdin>"
        base = os.getcwd() if "exclude" in given else settings.directory
        request.excludes = Excludes(request.exclude, base)
        request.settings_note = settings.shown(given)
        request._choose_keras(settings, "keras" in given)
        return request

    def _check_combinations(self) -> None:
        """Raises ValueError if options of the command line cannot be combined."""
        if "-" in self.paths and not self.is_stdin:
            raise ValueError("- (stdin) cannot be combined with other paths")
        if self.stdin_filename and not self.is_stdin:
            raise ValueError("--stdin-filename requires -")
        if self.write and (self.check or self.is_stdin):
            raise ValueError("--write cannot be combined with --check or -")
        if self.write and self.write_baseline:
            raise ValueError("--write-baseline cannot be combined with --write")
        if self.settings_file and not self.settings:
            raise ValueError("--settings cannot be combined with --no-settings")

    def _check_report_files(self) -> None:
        """Raises ValueError if a report would replace more than a report of an earlier run."""
        named = {
            os.path.realpath(file): f"the file of {option}"
            for option, file in (
                ("--baseline", self.baseline),
                ("--write-baseline", self.write_baseline),
            )
            if file is not None
        }
        checked = (f"{quoted(path)}, which is checked" for path in self.paths)
        named.update(zip(map(os.path.realpath, self.paths), checked))
        for report in self.report:
            if report.file is None or _is_stream(report.file):
                continue
            option = f"--report {report.format}:{report.file}"
            real = os.path.realpath(report.file)
            if real in named:
                raise ValueError(f"{option}: this is {named[real]}; name another file")
            if os.path.exists(real) and real.endswith(SUFFIXES):
                raise ValueError(f"{option}: would replace a source file; name another one")
            try:
                check_replaceable(report.file)
            except OSError as error:
                reason = (error.strerror or str(error)).lower()
                raise ValueError(f"{option}: {reason}") from None
            named[real] = f"the file of {option}"

    def _choose_keras(self, settings: Settings, is_given: bool) -> None:
        """Chooses the Keras version that the command line or the settings give, if they do."""
        if self.keras == "auto":
            return
        reason = f"keras = {self.keras} in {quoted(relative(settings.path))}"
        if is_given:
            reason = f"--keras {self.keras}"
        self.choice = KerasChoice(int(self.keras), reason, is_given=is_given)

    def _loaded_settings(self) -> Settings:
        if self.settings_file:
            return load_file(self.settings_file)
        if not self.settings:
            return Settings({})
        return load([self.stdin_filename or "."] if self.is_stdin else self.paths)

    def _add_text_report(self) -> None:
        """A report to a file is in addition to the text, which only `--quiet` silences."""
        is_text = [report.format == "text" and report.file is None for report in self.report]
        if self.quiet:
            self.report = [report for report, skip in zip(self.report, is_text) if not skip]
        elif all(report.file is not None for report in self.report):
            self.report = [Report("text", None), *self.report]

    def _read_baseline(self) -> None:
        try:
            if self.baseline is not None:
                self.known = baseline.read(self.baseline)
            if self.write_baseline is not None:
                baseline.check_replaceable(self.write_baseline)
        except baseline.BaselineError as error:
            raise SettingsError(str(error)) from None

    @property
    def is_stdin(self) -> bool:
        """Whether the source comes from stdin."""
        return list(self.paths) == ["-"]

    @property
    def formats(self) -> set[str]:
        """The formats of all reports."""
        return {report.format for report in self.report}

    @property
    def is_for_program(self) -> bool:
        """Whether a program may read the report that goes to a stream."""
        return any(report.file is None and report.format != "text" for report in self.report)

    @property
    def outputs(self) -> set[str]:
        """The absolute paths of the files that this run writes or compares with."""
        files = [report.file for report in self.report]
        named = (file for file in (*files, self.baseline, self.write_baseline) if file is not None)
        return set(map(os.path.realpath, named))

    @property
    def shows_diff(self) -> bool:
        """Whether to print the diff."""
        is_other_output = self.is_stdin or self.is_for_program or self.write_baseline is not None
        return not (self.write or self.check or self.quiet or is_other_output)

    @property
    def limits(self) -> Limits:
        """The limits on each file."""
        return Limits(self.time_limit, round(self.size_limit * 1024**2))

    @property
    def options(self) -> Options:
        """How files are rewritten."""
        return Options(
            Target(self.to),
            self.choice.keras if self.choice else None,
            self.unsafe,
            sum(self.select, ()),
            sum(self.ignore, ()),
            self.mark,
            self.choice is not None and self.choice.sets_legacy_keras,
        )

    @property
    def plan(self) -> Plan:
        """What to do with each file."""
        return Plan(
            self.options,
            self.write,
            diff=self.shows_diff or "html" in self.formats,
            tracebacks=self.verbose > 1,
            replacements="sarif" in self.formats and not self.write,
        )


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _is_stream(path: str) -> bool:
    """Whether a path leads to a terminal, a pipe or a device, to which several reports may go."""
    try:
        return path.startswith("/dev/") or not stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False
