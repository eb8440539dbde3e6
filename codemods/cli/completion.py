"""Shell completion: `tf-lossscale --print-completion bash`, with the package `shtab`.

The subcommands that do not belong to the codemods have parsers of their own, made when they run;
what is completed for them is listed here, and a test compares it with their help.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from . import command

__all__ = ["OTHER_OPTIONS", "SHELLS", "completion"]

SHELLS = ("bash", "zsh", "tcsh")
OTHER_OPTIONS = {
    "run": ("--replace", "--record", "--no-norm"),
    "compare": (),
    "checkpoint": (),
    "doctor": (),
}
"""The options of the other subcommands."""
_MISSING = "--print-completion needs shtab: pip install tf-lossscale[completion]"


def completion(shell: str, prog: str) -> int:
    """Prints the completion script for a shell; returns the exit status."""
    try:
        import shtab
    except ImportError:
        print(f"{prog}: error: {_MISSING}", file=sys.stderr)
        return 2
    print(shtab.complete(_parser(prog, shtab.FILE), shell))
    return 0


def _parser(prog: str, file: Any) -> argparse.ArgumentParser:
    """A parser for every subcommand, in which arguments are marked as files."""
    from ..rules.codes import codes

    parser, commands = command.parsers(prog)
    parser.add_argument("--version", action="store_true", help="show the version")
    for name, options in OTHER_OPTIONS.items():
        other = commands.add_parser(name, help=name)
        for option in options:
            other.add_argument(option, action="store_true")
        other.add_argument("paths", nargs="*").complete = file
    for subparser in commands.choices.values():
        for action in subparser._actions:
            if action.dest in ("paths", "stdin_filename"):
                action.complete = file
            elif action.dest == "codes":
                action.choices = [one.code for one in codes()]
    return parser
