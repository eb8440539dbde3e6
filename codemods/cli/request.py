"""What one run of `tf-lossscale migrate` does: the command line and the settings, put together."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Optional

from .. import reports
from ..files.excludes import Excludes
from ..files.printable import quoted
from ..model import KerasChoice, Options, Target
from ..reports import Report
from ..run.limits import Limits
from .settings import Settings

__all__ = ["Request", "given_keras", "prefixes_in", "shown"]

_JOBS_PER_CORE = 4
"""An upper limit for `--jobs`: more processes use memory and save no time."""


class Request(NamedTuple):
    """What a run does, from the command line and the settings.

    Attributes:
      paths: as the user gave them; `["-"]` is stdin.
      options: how files are rewritten; their Keras version is decided after the search.
      keras: the Keras version that the command line or the settings give; None for `auto`.
      write: whether to write the files.
      show_diff: whether to print the diff.
      excludes: the paths to skip.
      jobs: the number of worker processes.
      reports: the reports to write.
      allow_dirty: whether to write even if there are uncommitted changes.
      stdin_filename: the file name to report for stdin.
      verbose: whether to report why files were left unchanged.
      follow_links_outside: whether to follow symbolic links that leave the given paths.
      settings_note: the line that reports the settings in effect; may be empty.
      limits: the time and size limits for each file.
      tracebacks: whether to print tracebacks of internal errors.
      color: `auto`, `always` or `never`.
      statistics: whether the text report has the counts of each rule.
    """

    paths: Sequence[str]
    options: Options
    keras: Optional[KerasChoice]
    write: bool
    show_diff: bool
    excludes: Excludes
    jobs: int
    reports: tuple[Report, ...]
    allow_dirty: bool
    stdin_filename: str
    verbose: bool
    follow_links_outside: bool
    settings_note: str
    limits: Limits
    tracebacks: bool
    color: str
    statistics: bool

    @classmethod
    def of(cls, paths: Sequence[str], arguments: argparse.Namespace, settings: Settings) -> Request:
        """Creates the request from the paths, the other arguments, and the settings.

        Raises:
          ValueError: if an option has an invalid value.
        """

        def chosen(name: str, default: Any) -> Any:
            given = getattr(arguments, name)
            return settings.values.get(name, default) if given is None else given

        options = Options(
            target=Target(chosen("to", "final")),
            unsafe=chosen("unsafe", False),
            select=prefixes_in(chosen("select", [])),
            ignore=prefixes_in(chosen("ignore", [])),
            mark=chosen("mark", False),
        )
        base = settings.directory if arguments.exclude is None else os.getcwd()
        requested = tuple(map(reports.parse, chosen("report", ["text"])))
        if sum(report.file is None for report in requested) > 1:
            raise ValueError("only one --report can go to stdout; use FORMAT:FILE for the others")
        if arguments.statistics and all(report.format != "text" for report in requested):
            raise ValueError("--statistics requires the text report")
        to_stdout = any(report.file is None and report.format != "text" for report in requested)
        return cls(
            paths=paths,
            options=options,
            keras=given_keras(arguments.keras, settings),
            write=arguments.write,
            show_diff=not (arguments.write or arguments.check or to_stdout),
            excludes=Excludes(chosen("exclude", []), base),
            jobs=min(chosen("jobs", None) or _cores(), _JOBS_PER_CORE * _cores()),
            reports=requested,
            allow_dirty=chosen("allow_dirty", False),
            stdin_filename=arguments.stdin_filename or "<stdin>",
            verbose=arguments.verbose > 0,
            follow_links_outside=arguments.follow_links_outside,
            settings_note=settings.shown(lambda name: getattr(arguments, name) is None),
            limits=Limits.of(arguments.time_limit, arguments.size_limit),
            tracebacks=arguments.verbose > 1,
            color=arguments.color,
            statistics=arguments.statistics,
        )


def prefixes_in(values: Iterable[str]) -> tuple[str, ...]:
    """The code prefixes in words such as the values of `--select`, separated by commas.

    Raises:
      ValueError: if no rule code starts with one of them.
    """
    prefixes = tuple(
        one.strip().upper() for value in values for one in value.split(",") if one.strip()
    )
    if prefixes:
        from ..rules.codes import nearest, unknown_prefixes

        unknown = unknown_prefixes(prefixes)
        if unknown:
            shown = ", ".join(unknown[:10])
            near = nearest(unknown[0])
            hint = f"did you mean {', '.join(near)}?" if near else "see `tf-lossscale rules`"
            raise ValueError(f"unknown rule code {shown}; {hint}")
    return prefixes


def given_keras(option: Optional[str], settings: Settings) -> Optional[KerasChoice]:
    """The Keras version that the command line or the settings give; None for `auto`.

    Args:
      option: the value of `--keras`; None if it was not passed.
      settings: the settings of the project.
    """
    value = settings.values.get("keras", "auto") if option is None else option
    if value == "auto":
        return None
    if option is not None:
        return KerasChoice(int(option), f"--keras {option}", is_given=True)
    return KerasChoice(int(value), f"keras = {value} in {quoted(shown(settings.path))}")


def shown(path: str) -> str:
    """The path relative to the working directory if there is a relative path."""
    try:
        return os.path.relpath(path)
    except ValueError:  # on another drive
        return path


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
