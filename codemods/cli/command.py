"""`tf-lossscale migrate|rules|explain`: parses the options and calls the subcommand."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Sequence
from typing import Any, NoReturn, Optional

from tf_lossscale._arguments import ArgumentParser
from tf_lossscale._cli.process import guarded

from ..files.printable import visible
from .settings import Settings, SettingsError, load

__all__ = ["main", "parsers"]


def main(argv: Optional[Sequence[str]] = None, prog: str = "tf-lossscale") -> int:
    """Runs one subcommand.

    Args:
      argv: the subcommand and its arguments; by default those of the process.
      prog: the name of the command in messages.

    Returns:
      The exit status: 0 if nothing is left to do, 1 if changes are needed or findings are left, 2
      for wrong usage, a file that could not be processed, or any other failure, 130 if interrupted.
    """
    words = sys.argv[1:] if argv is None else argv
    return guarded(
        prog,
        lambda: _main(argv, prog),
        tracebacks="-vv" in words or list(words).count("-v") > 1,
        interrupted="interrupted; no file was left half-written",
    )


def _main(argv: Optional[Sequence[str]], prog: str) -> int:
    parser = _parser(prog)
    words = sys.argv[1:] if argv is None else argv
    try:
        if not words:
            parser.print_help(sys.stderr)
            parser.exit(2, f"\n{prog}: error: a command is required\n")
        arguments = parser.parse_args(argv)
        if arguments.command == "migrate":
            return _migrate(arguments.parser, arguments)
        from . import explain

        if arguments.command == "rules":
            return explain.list_rules(sys.stdout)
        return explain.explain(arguments.codes, sys.stdout, arguments.all)
    except SystemExit as exit_:  # argparse has printed the help or the error
        return int(exit_.code or 0)


def _migrate(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> int:
    paths = arguments.paths or ["."]
    if "-" in paths and paths != ["-"]:
        parser.error("- (stdin) cannot be combined with other paths")
    if arguments.stdin_filename and paths != ["-"]:
        parser.error("--stdin-filename requires -")
    if arguments.write and (arguments.check or paths == ["-"]):
        parser.error("--write cannot be combined with --check or -")
    try:
        named = [arguments.stdin_filename or "."] if paths == ["-"] else paths
        settings = load(named) if arguments.settings else Settings({})
    except SettingsError as error:
        print(f"{parser.prog.split()[0]}: error: {error}", file=sys.stderr)
        return 2
    from . import migrate
    from .request import Request

    def chosen(name: str, default: Any) -> Any:
        given = getattr(arguments, name)
        return settings.values.get(name, default) if given is None else given

    try:
        request = Request.of(paths, arguments, chosen, settings)
    except ValueError as error:
        parser.error(str(error))
    return migrate.run(request)


class _Parser(ArgumentParser):
    """Suggests what a misspelled word could mean, and where to find help; prints no usage.

    Escapes file names in errors: a shell's `*` can expand to any name.
    """

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parses the arguments; unlike the method of the base class, refuses unknown ones."""
        parsed, unknown = super().parse_known_args(args, namespace)
        if unknown:
            known = [one for action in self._actions for one in action.option_strings]
            near = [_nearest(word.split("=")[0], known) for word in unknown]
            self.error(f"unrecognized arguments: {' '.join(unknown)}{''.join(near)}")
        return parsed, unknown

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            error.message += _nearest(str(value), [str(one) for one in action.choices or ()])
            raise

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {visible(message)}\nsee `{self.prog} --help`\n")


def _nearest(word: str, known: Sequence[str]) -> str:
    """The end of an error message, with the known word that is most similar, if one is."""
    near = difflib.get_close_matches(word, known, 1, 0.75)
    return f"; did you mean {near[0]}?" if near else ""


def _parser(prog: str) -> argparse.ArgumentParser:
    return parsers(prog)[0]


def parsers(prog: str) -> tuple[argparse.ArgumentParser, Any]:
    """The parser of the command, and its action that holds the parsers of the subcommands."""
    parser = _Parser(
        prog=prog, description="Migrate code away from TensorFlow's loss-scale classes."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_migrate(commands)
    commands.add_parser("rules", help="list the rules", description="List the rules.")
    explain = commands.add_parser(
        "explain",
        help="explain rules, with examples",
        description="Show what rules do and why, with code before and after.",
    )
    explain.add_argument(
        "codes",
        nargs="+",
        metavar="CODE",
        help="rule codes such as LS301, or prefixes such as LS3",
    )
    explain.add_argument("--all", action="store_true", help="show all examples, not only two")
    return parser, commands


_EPILOG = """\
examples:
  %(prog)s                       show a diff of this directory
  %(prog)s --to shim --write     move to the shim, same behavior
  %(prog)s --keras 3 --write     move to the API of Keras 3
  %(prog)s --check --select LS3  report what some rules find
  %(prog)s --report html:a.html  write a page with all findings

exit status:
  0    nothing is left to do
  1    changes are needed, or findings are left after writing
  2    wrong usage, or a file could not be processed
  130  interrupted

Options can also be set in [tool.tf-lossscale] in pyproject.toml; the command line wins.
"""


def _add_migrate(commands: Any) -> None:
    yes_or_no = argparse.BooleanOptionalAction
    migrate = commands.add_parser(
        "migrate",
        usage="%(prog)s [OPTIONS] [PATH ...]",
        help="rewrite files and trees; default: show a diff, write nothing",
        description="Rewrite legacy loss-scale code. Without options: show a diff, write nothing.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        add_help=False,
    )
    migrate.set_defaults(parser=migrate)
    migrate.add_argument(
        "paths",
        nargs="*",
        metavar="PATH",
        help="files and directories, or - for stdin (default: .)",
    )

    add = migrate.add_argument_group("target").add_argument
    add("--to", choices=["shim", "final"], help="API to migrate to (default: final)")
    add(
        "--keras",
        choices=["auto", "2", "3"],
        help="Keras version to target (default: auto, from the project or the installed "
        "TensorFlow; if unknown, both)",
    )

    add = migrate.add_argument_group("edits").add_argument
    add("--write", action="store_true", help="write the changes to the files")
    add("--check", action="store_true", help="report only; print no diff")
    add("--unsafe", action=yes_or_no, help="also apply edits that can change behavior")
    add("--mark", action=yes_or_no, help="add a # TODO(CODE) comment at each manual finding")
    add("--allow-dirty", action=yes_or_no, help="write even if there are uncommitted changes")

    add = migrate.add_argument_group("rules and files").add_argument
    add(
        "--select",
        action="append",
        metavar="CODE,...",
        help="use only these rules; prefixes such as LS3 are accepted",
    )
    add(
        "--ignore",
        action="append",
        metavar="CODE,...",
        help="skip these rules; prefixes such as LS3 are accepted",
    )
    add("--exclude", action="append", metavar="GLOB", help="skip matching paths; repeatable")
    add(
        "--follow-links-outside",
        action="store_true",
        help="follow symbolic links that leave the given paths",
    )
    add("--stdin-filename", metavar="FILE", help="file name to report for stdin")

    add = migrate.add_argument_group("reports").add_argument
    add(
        "--report",
        action="append",
        metavar="FORMAT[:FILE]",
        help="text, json, sarif, github or html, to a file or stdout; repeatable (default: text)",
    )
    add("--statistics", action="store_true", help="also report the counts of each rule")
    add(
        "--color",
        choices=["auto", "always", "never"],
        default="auto",
        help="colors in the diff and the text report (default: auto, on terminals)",
    )
    add(
        "-v",
        "--verbose",
        action="count",
        default=0,
        help="report why files were left unchanged; -vv: show tracebacks of internal errors",
    )

    add = migrate.add_argument_group("other options").add_argument
    add("--jobs", type=_jobs, metavar="N", help="worker processes (default: one per core)")
    add(
        "--time-limit",
        type=_positive,
        default=60.0,
        metavar="SECONDS",
        help="give up on files that take longer (default: 60)",
    )
    add(
        "--size-limit",
        type=_positive,
        default=32.0,
        metavar="MB",
        help="reject larger files (default: 32)",
    )
    add(
        "--no-settings",
        dest="settings",
        action="store_false",
        help="ignore the settings in pyproject.toml",
    )
    add("-h", "--help", action="help", help="show this help")


def _jobs(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number, 1 or more")
    return number


def _positive(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} must be a number, more than 0")
    return number
