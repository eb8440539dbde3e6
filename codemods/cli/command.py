"""`tf-lossscale migrate|rules|explain`: parses the options and calls the subcommand."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any, NoReturn, Optional

from tf_lossscale._process import ArgumentParser, guarded

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
    words = list(sys.argv[1:] if argv is None else argv)
    return guarded(
        prog,
        lambda: _main(words, prog),
        tracebacks="-vv" in words or words.count("-v") > 1,
        interrupted="interrupted; no file was left half-written",
    )


def _main(words: Sequence[str], prog: str) -> int:
    parser = parsers(prog)[0]
    try:
        if not words:
            parser.print_help(sys.stderr)
            parser.exit(2, f"\n{prog}: error: a command is required\n")
        arguments = parser.parse_args(words)
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

    try:
        request = Request.of(paths, arguments, settings)
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
            known = [option for action in self._actions for option in action.option_strings]
            near = [_nearest(word.split("=")[0], known) for word in unknown]
            self.error(f"unrecognized arguments: {' '.join(unknown)}{''.join(near)}")
        return parsed, unknown

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            error.message += _nearest(str(value), list(map(str, action.choices or ())))
            raise

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {visible(message)}\nsee `{self.prog} --help`\n")


def _nearest(word: str, known: Sequence[str]) -> str:
    """The end of an error message, with the known word that is most similar, if one is."""
    import difflib

    near = difflib.get_close_matches(word, known, 1, 0.75)
    return f"; did you mean {near[0]}?" if near else ""


def parsers(prog: str) -> tuple[argparse.ArgumentParser, Any]:
    """The parser of the command, and its action that holds the parsers of the subcommands."""
    parser = _Parser(
        prog=prog, description="Migrate code away from TensorFlow's loss-scale classes."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
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
    paths = "files and directories, or - for stdin (default: .)"
    migrate.add_argument("paths", nargs="*", metavar="PATH", help=paths)
    for title, options in _OPTIONS.items():
        group = migrate.add_argument_group(title)
        for name, more in options.items():
            group.add_argument(*name.split(), **more)
    commands.add_parser("rules", help="list the rules", description="List the rules.")
    explain = commands.add_parser(
        "explain",
        help="explain rules, with examples",
        description="Show what rules do and why, with code before and after.",
    )
    codes = "rule codes such as LS301, or prefixes such as LS3"
    explain.add_argument("codes", nargs="+", metavar="CODE", help=codes)
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


def _list(metavar: str, text: str) -> dict[str, Any]:
    return {"action": "append", "metavar": metavar, "help": text}


def _limit(metavar: str, default: float, text: str) -> dict[str, Any]:
    return {"type": _positive, "default": default, "metavar": metavar, "help": text}


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
        "--select": _list("CODE,...", "use only these rules; prefixes such as LS3 are accepted"),
        "--ignore": _list("CODE,...", "skip these rules; prefixes such as LS3 are accepted"),
        "--exclude": _list("GLOB", "skip matching paths; repeatable"),
        "--follow-links-outside": _flag("follow symbolic links that leave the given paths"),
        "--stdin-filename": {"metavar": "FILE", "help": "file name to report for stdin"},
    },
    "reports": {
        "--report": _list(
            "FORMAT[:FILE]",
            "text, json, sarif, github or html, to a file or stdout; repeatable (default: text)",
        ),
        "--statistics": _flag("also report the counts of each rule"),
        "--color": {
            "choices": ["auto", "always", "never"],
            "default": "auto",
            "help": "colors in the diff and the text report (default: auto, on terminals)",
        },
        "-v --verbose": {
            "action": "count",
            "default": 0,
            "help": "report why files were left unchanged; -vv: show tracebacks of internal errors",
        },
    },
    "other options": {
        "--jobs": {
            "type": _jobs,
            "metavar": "N",
            "help": "worker processes (default: one per core)",
        },
        "--time-limit": _limit("SECONDS", 60.0, "give up on files that take longer (default: 60)"),
        "--size-limit": _limit("MB", 32.0, "reject larger files (default: 32)"),
        "--no-settings": {
            "dest": "settings",
            "action": "store_false",
            "help": "ignore the settings in pyproject.toml",
        },
        "-h --help": {"action": "help", "help": "show this help"},
    },
}
"""The options of `migrate`, by the group in which the help shows them."""
