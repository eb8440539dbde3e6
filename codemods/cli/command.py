"""`tf-lossscale migrate|rules|explain`: the options, and what each sub-command hands on."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any, NoReturn, Optional

from ..files.printable import visible
from .process import guarded
from .settings import Settings, SettingsError, load

__all__ = ["main"]


def main(argv: Optional[Sequence[str]] = None, prog: str = "tf-lossscale") -> int:
    """Runs one sub-command.

    Args:
      argv: the sub-command and its arguments; None takes those of the process.
      prog: the name of the command in messages.

    Returns:
      0 where nothing is left to do, 1 where changes are needed or findings are left, 2 for wrong
      usage, where a file could not be processed, or for whatever else went wrong, 130 where
      somebody interrupted it.
    """
    words = sys.argv[1:] if argv is None else argv
    return guarded(
        prog, lambda: _main(argv, prog), tracebacks="-vv" in words or list(words).count("-v") > 1
    )


def _main(argv: Optional[Sequence[str]], prog: str) -> int:
    parser = _parser(prog)
    try:
        arguments = parser.parse_args(argv)
        if arguments.command == "migrate":
            return _migrate(parser, arguments)
        from . import explain

        if arguments.command == "rules":
            return explain.list_rules(sys.stdout)
        return explain.explain(arguments.code, sys.stdout)
    except SystemExit as exit_:  # argparse has printed the help, or what is wrong
        return int(exit_.code or 0)


def _migrate(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> int:
    paths = arguments.paths or ["."]
    if "-" in paths and paths != ["-"]:
        parser.error("- stands for stdin and goes with no other path")
    if arguments.stdin_filename and paths != ["-"]:
        parser.error("--stdin-filename goes with - only")
    if arguments.write and (arguments.check or paths == ["-"]):
        parser.error("--write goes neither with --check nor with -")
    try:
        named = [arguments.stdin_filename or "."] if paths == ["-"] else paths
        settings = load(named) if arguments.settings else Settings({})
    except SettingsError as error:
        print(f"{parser.prog}: error: {error}", file=sys.stderr)
        return 2
    from . import migrate

    def chosen(name: str, default: Any) -> Any:
        said = getattr(arguments, name)
        return settings.values.get(name, default) if said is None else said

    try:
        request = migrate.Request.of(paths, arguments, chosen, settings)
    except ValueError as error:
        parser.error(str(error))
    return migrate.run(request)


class _Parser(argparse.ArgumentParser):
    """Names files in its errors so that they are safe to print: `*` of a shell can be any name."""

    def error(self, message: str) -> NoReturn:
        super().error(visible(message))

    def print_help(self, file: Any = None) -> None:
        """Prints it, and lets an error through, which argparse would swallow."""
        (file or sys.stdout).write(self.format_help())


def _parser(prog: str) -> argparse.ArgumentParser:
    parser = _Parser(prog=prog, description="Move code off TensorFlow's loss-scale classes.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_migrate(commands)
    commands.add_parser("rules", help="list the rules", description="List the rules.")
    explain = commands.add_parser(
        "explain",
        help="what a rule does, why, before and after",
        description="What a rule does, why, before and after.",
    )
    explain.add_argument("code", metavar="CODE", help="such as LS301")
    return parser


def _add_migrate(commands: Any) -> None:
    yes_or_no = argparse.BooleanOptionalAction
    migrate = commands.add_parser(
        "migrate",
        help="rewrite files and trees; default: show a diff, write nothing",
        description="Rewrite legacy loss-scale code. Without options: show a diff, write nothing.",
        epilog="Exit status: 0 nothing is left to do; 1 changes are needed, or findings are left "
        "after writing; 2 wrong usage, or a file could not be processed; 130 interrupted. Settings "
        "also from [tool.tf-lossscale] in pyproject.toml; the command line wins.",
        allow_abbrev=False,
    )
    add = migrate.add_argument
    add("paths", nargs="*", metavar="PATH", help="files and directories; - is stdin (default: .)")
    add("--to", choices=["shim", "final"], help="where to go (default: final)")
    add(
        "--keras",
        type=int,
        choices=[2, 3],
        help="the Keras that the code shall run on (default: 2)",
    )
    add("--write", action="store_true", help="write the files")
    add("--check", action="store_true", help="as without options, but print no diff")
    add("--unsafe", action=yes_or_no, help="apply edits that can change behaviour too")
    add(
        "--select", action="append", metavar="CODE,...", help="use these rules only; prefixes count"
    )
    add(
        "--ignore",
        action="append",
        metavar="CODE,...",
        help="leave these rules out; prefixes count",
    )
    add("--exclude", action="append", metavar="GLOB", help="leave these paths out; may repeat")
    add("--jobs", type=_jobs, metavar="N", help="processes (default: one for each core)")
    add(
        "--report",
        action="append",
        metavar="FORMAT[:FILE]",
        help="text, json, sarif, github or html, to a file or stdout; may repeat (default: text)",
    )
    add("--mark", action=yes_or_no, help="leave a # TODO(CODE) comment at each manual finding")
    add("--allow-dirty", action=yes_or_no, help="write though git has uncommitted changes")
    add(
        "--follow-links-outside",
        action="store_true",
        help="follow symbolic links out of the named paths",
    )
    add(
        "--no-settings",
        dest="settings",
        action="store_false",
        help="take no settings from pyproject.toml",
    )
    add("--stdin-filename", metavar="FILE", help="the name of what comes from stdin")
    add(
        "--time-limit",
        type=_positive,
        default=60.0,
        metavar="SECONDS",
        help="fail a file that takes longer (default: 60)",
    )
    add(
        "--size-limit",
        type=_positive,
        default=32.0,
        metavar="MB",
        help="fail a file that is larger (default: 32)",
    )
    add(
        "-v",
        "--verbose",
        action="count",
        default=0,
        help="say why each file was left unchanged; -vv: show tracebacks of internal errors",
    )


def _jobs(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return number


def _positive(text: str) -> float:
    number = float(text)
    if not 0 < number < 1e9:
        raise argparse.ArgumentTypeError("must be more than 0")
    return number
