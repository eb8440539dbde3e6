"""The options of `tf-lossscale migrate`, which the settings in pyproject.toml can give, too."""

from __future__ import annotations

import argparse
import difflib
import os
from typing import TYPE_CHECKING, Any, Callable, NoReturn

from tf_lossscale._process import ArgumentParser

from ..files.printable import visible

if TYPE_CHECKING:
    from ..reports import Report

__all__ = ["Parser", "add_options", "code_prefixes"]


class Parser(ArgumentParser):
    """Suggests what a misspelled option could mean, and where to find help; prints no usage.

    Escapes file names in errors: a shell's `*` can expand to any name.
    """

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parses the arguments; unlike the method of the base class, refuses unknown ones."""
        parsed, unknown = super().parse_known_args(args, namespace)
        if unknown:
            known = [option for action in self._actions for option in action.option_strings]
            near = difflib.get_close_matches(unknown[0].split("=")[0], known, 1, 0.75)
            hint = f"; did you mean {near[0]}?" if near else ""
            self.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
        return parsed, unknown

    def error(self, message: str) -> NoReturn:
        """Exits with status 2."""
        self.exit(2, f"{self.prog}: error: {visible(message)}\nsee `{self.prog} --help`\n")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `migrate`; None means that an option was not passed."""
    for title, options in _OPTIONS.items():
        group = parser.add_argument_group(title)
        for name, more in options.items():
            group.add_argument(*name.split(), **more)


def code_prefixes(text: str) -> tuple[str, ...]:
    """The code prefixes in a value such as `LS1,LS301`.

    Raises:
      ArgumentTypeError: if no rule code starts with one of them.
    """
    prefixes = tuple(part.strip().upper() for part in text.split(",") if part.strip())
    if prefixes:
        from ..rules.codes import nearest, unknown_prefixes

        unknown = unknown_prefixes(prefixes)
        if unknown:
            near = nearest(unknown[0])
            hint = f"did you mean {', '.join(near)}?" if near else "see `tf-lossscale rules`"
            raise argparse.ArgumentTypeError(f"unknown rule code {', '.join(unknown[:10])}; {hint}")
    return prefixes


def _report(text: str) -> Report:
    """Parses a `--report FORMAT[:FILE]`; argparse shows the error."""
    from ..reports import FORMATS, Report

    name, colon, file = text.partition(":")
    if name not in FORMATS:
        known = ", ".join(FORMATS)
        raise argparse.ArgumentTypeError(f"unknown report format {name!r}; the formats are {known}")
    if colon and not file:
        raise argparse.ArgumentTypeError(
            f"{text!r} has no file name; use {name}:FILE, or {name} for stdout"
        )
    if file and not os.path.isdir(os.path.dirname(os.path.abspath(file))):
        raise argparse.ArgumentTypeError(f"{text}: the directory does not exist")
    return Report(name, file or None)


def _jobs(text: str) -> int:
    if not text.isdecimal() or len(text) > 18 or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number, 1 or more")
    return int(text)


def _positive(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} must be a number, more than 0")
    return number


def _flag(text: str) -> dict[str, Any]:
    return {"action": "store_true", "help": text}


def _yes_or_no(text: str) -> dict[str, Any]:
    return {"action": argparse.BooleanOptionalAction, "help": text}


def _value(metavar: str, read: Callable[[str], object], text: str) -> dict[str, Any]:
    return {"metavar": metavar, "type": read, "help": text}


def _list(metavar: str, read: Callable[[str], object], text: str) -> dict[str, Any]:
    return {"action": "append", **_value(metavar, read, text)}


_OPTIONS: dict[str, dict[str, dict[str, Any]]] = {
    "target": {
        "--to": {"choices": ["shim", "final"], "help": "API to migrate to (default: final)"},
        "--keras": {
            "choices": ["auto", "2", "3"],
            "help": "Keras version to target (default: auto, from the project or the installed "
            "TensorFlow; if unknown, both)",
        },
    },
    "edits": {
        "--write": _flag("write the changes to the files"),
        "--check": _flag("report only; print no diff"),
        "--unsafe": _yes_or_no("also apply edits that can change behavior"),
        "--mark": _yes_or_no("add a # TODO(CODE) comment at each manual finding"),
        "--allow-dirty": _yes_or_no("write even if there are uncommitted changes"),
    },
    "rules and files": {
        "--select": _list(
            "CODE,...", code_prefixes, "use only these rules; prefixes such as LS3 are accepted"
        ),
        "--ignore": _list(
            "CODE,...", code_prefixes, "skip these rules; prefixes such as LS3 are accepted"
        ),
        "--exclude": _list("GLOB", str, "skip matching paths; repeatable"),
        "--follow-links-outside": _flag("follow symbolic links that leave the given paths"),
        "--stdin-filename": _value("FILE", str, "file name to report for stdin"),
    },
    "reports": {
        "--report": _list(
            "FORMAT[:FILE]",
            _report,
            "text, json, sarif, github or html, to a file or stdout; repeatable (default: text; "
            "one to a file is in addition)",
        ),
        "--quiet": _flag("print no diff and no text report; errors still go to stderr"),
        "--baseline": _value("FILE", str, "do not count the findings that FILE lists"),
        "--write-baseline": _value("FILE", str, "list all findings in FILE, for --baseline"),
        "--statistics": _flag("also report the counts of each rule"),
        "--color": {
            "choices": ["auto", "always", "never"],
            "help": "colors in the diff and the text report (default: auto, on terminals)",
        },
        "-v --verbose": {
            "action": "count",
            "help": "report why files were left unchanged, and why symbols go to the shim; "
            "-vv: show tracebacks of internal errors",
        },
    },
    "other options": {
        "--jobs": _value("N", _jobs, "worker processes (default: one per core)"),
        "--time-limit": _value("SECONDS", _positive, "limit for each file (default: 60)"),
        "--size-limit": _value("MB", _positive, "reject larger files (default: 32)"),
        "--settings": {
            "dest": "settings_file",
            "metavar": "FILE",
            "help": "read the settings in FILE, whoever owns it (default: the project's "
            "pyproject.toml, if it belongs to you or git calls its directory safe)",
        },
        "--no-settings": {
            "dest": "settings",
            "action": "store_false",
            "help": "ignore the settings in pyproject.toml",
        },
        "-h --help": {"action": "help", "help": "show this help"},
    },
}
"""The options of `migrate`, by the group in which the help shows them."""
