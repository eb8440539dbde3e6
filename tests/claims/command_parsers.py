"""The parsers of `tf-lossscale`, reached as a user reaches them: by the command line."""

import argparse
import contextlib
import importlib
import io
from typing import Callable, Dict, Iterator, List, Set, Tuple
from unittest import mock

from documents import config

WITH_OPTIONS = {
    "migrate": ("migrate", "."),
    "run": ("run", "script.py"),
    "record": ("record", "x", "script.py"),
    "show": ("show", "x"),
    "compare": ("compare", "x", "y"),
    "checkpoint inspect": ("checkpoint", "inspect", "x"),
    "checkpoint convert": ("checkpoint", "convert", "x", "y", "--to", "v1"),
    "doctor": ("doctor",),
    "rules": ("rules",),
    "explain": ("explain", "LS101"),
}
"""Each sub-command, and arguments that its parser takes."""


class Accepted(BaseException):
    """A parser has taken the arguments; nothing is run."""


def entry_point() -> Callable[[List[str]], int]:
    """The function that the installed command calls."""
    script = config("setup.cfg")["options.entry_points"]["console_scripts"].strip()
    module, _, function = script.partition("=")[2].strip().partition(":")
    return getattr(importlib.import_module(module), function)


def parse(words: List[str]) -> Tuple[str, List[argparse.ArgumentParser]]:
    """What is wrong with a command line, empty if nothing is, and the parsers that read it."""
    parsers: List[argparse.ArgumentParser] = []
    original = argparse.ArgumentParser.parse_args

    def parse_args(self, args=None, namespace=None):
        parsers.append(self)
        parsed = original(self, args, namespace)
        if not hasattr(parsed, "rest"):  # else it only chooses the sub-command
            raise Accepted
        return parsed

    said = io.StringIO()
    seen = mock.patch.object(argparse.ArgumentParser, "parse_args", parse_args)
    with seen, contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        try:
            status = entry_point()(words)
        except Accepted:
            status = 0
    return ("" if not status else (said.getvalue().splitlines() or ["refused"])[-1]), parsers


def actions(command: str) -> Iterator[argparse.Action]:
    """The options of a sub-command, without those that each has."""
    error, parsers = parse(list(WITH_OPTIONS[command]))
    assert not error, error
    found, words = parsers[-1], list(WITH_OPTIONS[command])
    while True:
        below = None
        for action in found._actions:
            if isinstance(action, argparse._SubParsersAction):
                below = next(action.choices[word] for word in words if word in action.choices)
            elif action.option_strings and action.dest != "help":
                yield action
        if below is None:
            return
        found = below


def options() -> Dict[str, Set[str]]:
    """Sub-command to its options, `-h` and `--help` included."""
    return {
        command: {"-h", "--help"}
        | {option for action in actions(command) for option in action.option_strings}
        for command in WITH_OPTIONS
    }
