"""`tf-lossscale migrate|rules|explain`, and the completion of all subcommands in a shell."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any, Optional

from tf_lossscale._process import guarded

from .options import Parser, add_options, code_prefixes

__all__ = ["OTHER_OPTIONS", "completion", "main", "parsers"]

OTHER_OPTIONS = {
    "run": ("--replace", "--record", "--overwrite", "--no-norm", "--seed", "--monitor"),
    "record": ("--disturb", "--before", "--overwrite", "--no-norm", "--seed"),
    "show": ("--json", "--html"),
    "compare": ("--baseline", "--loss-tolerance", "--html", "--json"),
    "checkpoint": (),
    "doctor": (),
}
"""The options of the subcommands that do not belong to the codemods, for completion."""
_FILES = ("paths", "stdin_filename", "settings_file", "baseline", "write_baseline")
"""The arguments that are files, for completion."""
_MISSING = "--print-completion needs shtab: pip install tf-lossscale[completion]"
_EPILOG = """\
examples:
  %(prog)s                       show a diff of this directory
  %(prog)s --to shim --write     move to the shim, same behavior
  %(prog)s --keras 3 --write     move to the API of Keras 3
  %(prog)s --check --select LS3  report what some rules find
  %(prog)s --report html:a.html  write a page with all findings
  %(prog)s --check --baseline F  report what is not in the baseline F

exit status:
  0    nothing is left to do
  1    changes are needed, or findings are left after writing
  2    wrong usage, or a file could not be processed
  130  interrupted

Options can also be set in [tool.tf-lossscale] in pyproject.toml; the command line wins.
"""


def main(argv: Optional[Sequence[str]] = None, prog: str = "tf-lossscale") -> int:
    """Runs one subcommand.

    Args:
      argv: the subcommand and its arguments; by default the arguments of the process.
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
    """Runs the command that the words name; returns the exit status, 2 for wrong options."""
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
            sys.stdout.write(explain.listed())
        else:
            sys.stdout.write(explain.explained(sum(arguments.codes, ())))
        return 0
    except SystemExit as exit_:  # argparse has printed the help or the error
        return int(exit_.code or 0)


def _migrate(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> int:
    """Runs `migrate`; modules that only it needs are imported here, so that help stays fast."""
    from . import migrate
    from .request import Request
    from .settings import SettingsError

    try:
        request = Request.of(arguments)
    except SettingsError as error:
        print(f"{parser.prog.split()[0]}: error: {error}", file=sys.stderr)
        return 2
    except ValueError as error:
        parser.error(str(error))
    return migrate.run(request)


def parsers(prog: str) -> tuple[argparse.ArgumentParser, Any]:
    """The parser of the command, and its action that holds the parsers of the subcommands."""
    parser = Parser(
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
    migrate.add_argument("paths", nargs="*", default=["."], metavar="PATH", help=paths)
    add_options(migrate)
    commands.add_parser("rules", help="list the rules", description="List the rules.")
    explain = commands.add_parser(
        "explain",
        help="explain rules, with examples",
        description="Show what rules do and why, with code before and after.",
    )
    codes = "rule codes such as LS301, or prefixes such as LS3"
    explain.add_argument("codes", nargs="+", metavar="CODE", type=code_prefixes, help=codes)
    return parser, commands


def completion(shell: str, prog: str) -> int:
    """Prints the completion script for a shell; returns the exit status."""
    try:
        import shtab
    except ImportError:
        print(f"{prog}: error: {_MISSING}", file=sys.stderr)
        return 2
    print(shtab.complete(_completed_parser(prog, shtab.FILE), shell))
    return 0


def _completed_parser(prog: str, file: Any) -> argparse.ArgumentParser:
    """A parser for every subcommand, in which arguments are marked as files."""
    from ..rules.codes import codes

    parser, commands = parsers(prog)
    parser.add_argument("--version", action="store_true", help="show the version")
    for name, options in OTHER_OPTIONS.items():
        other = commands.add_parser(name, help=name)
        for option in options:
            other.add_argument(option, action="store_true")
        other.add_argument("paths", nargs="*").complete = file
    for subparser in commands.choices.values():
        for action in subparser._actions:
            if action.dest in _FILES:
                action.complete = file
            elif action.dest == "codes":
                action.choices = [code.code for code in codes()]
    return parser
