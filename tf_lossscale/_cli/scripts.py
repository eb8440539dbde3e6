"""The commands that run a script: `run` and `record`."""

import argparse
import contextlib
import os
from typing import Any, Dict, List, Optional, Tuple

from tf_lossscale._cli.child import can_run, environment_for, run_python
from tf_lossscale._process import ArgumentParser

_WITH_VALUE = ("--record", "--seed", "--disturb", "--before")
"""Options that are followed by their value."""
_MOST_RUNS = 100
_ARGUMENTS = (
    "The arguments are the same as for `python`: a script, a directory or zip file with a "
    "__main__.py, a module, code, or - for standard input."
)
_SCRIPT = "(SCRIPT | -m MODULE | -c CODE | -) [ARGS]"


def run(arguments: List[str], prog: str) -> int:
    """Runs a script with the legacy paths installed; ends as the script does."""
    name = prog if prog.startswith("python") else f"{prog} run"
    parser = _run_parser(name)
    own, python_arguments = split_at_script(arguments)
    parsed = parser.parse_args(own)
    _require_script(parser, python_arguments)
    if parsed.record is None and (parsed.no_norm or parsed.overwrite):
        option = "--no-norm" if parsed.no_norm else "--overwrite"
        parser.error(f"{option} needs --record FILE")
    mode = "replace" if parsed.replace else "install"
    if parsed.monitor and parsed.record is None:
        return _run_monitored(parsed, mode, python_arguments)
    return _run(parsed, mode, parsed.record, python_arguments)


def record(arguments: List[str], prog: str) -> int:
    """Records the steps of a script; installs nothing. Ends as the script does."""
    parser = _record_parser(f"{prog} record")
    before, rest = split_at_script(arguments)
    between, python_arguments = split_at_script(rest[1:])
    parsed = parser.parse_args([*before, *between])
    if not rest or rest[0] in ("-", "--") or rest[0][:2] in ("-m", "-c"):
        parser.error("the name of a FILE is required before the script")
    _require_script(parser, python_arguments)
    if parsed.before and not parsed.disturb:
        parser.error("--before needs --disturb N")
    if not parsed.disturb:
        return _run(parsed, "record", rest[0], python_arguments)
    if python_arguments[0] == "-":
        parser.error("--disturb runs the script several times; name a script instead of -")
    if not can_run():
        return 2
    from tf_lossscale._cli.disturbed import Runs

    environment = environment_for("record", parsed.seed)
    overwrite, norm = parsed.overwrite, not parsed.no_norm
    runs = Runs(rest[0], norm, overwrite, python_arguments, environment, parsed.before)
    return runs.record(parsed.disturb)


def _require_script(parser: ArgumentParser, python_arguments: List[str]) -> None:
    if python_arguments in ([], ["--"]):
        parser.error("a script, -m, -c or - is required")


def _run(
    parsed: argparse.Namespace, mode: str, path: Optional[str], python_arguments: List[str]
) -> int:
    if not can_run():
        return 2
    environment = environment_for(mode, parsed.seed)
    if path is None:
        return run_python(python_arguments, environment)
    return _run_recorded(parsed, path, python_arguments, environment)


def _run_monitored(parsed: argparse.Namespace, mode: str, python_arguments: List[str]) -> int:
    if not can_run():
        return 2
    from tf_lossscale._recorder.request import VARIABLE, Request

    request = Request(path=None, norm=True, overwrite=False, process=os.getpid())
    environment = environment_for(mode, parsed.seed)
    return run_python(python_arguments, {**environment, VARIABLE: request.text()})


def _run_recorded(
    parsed: argparse.Namespace, path: str, arguments: List[str], environment: Dict[str, str]
) -> int:
    """Locks the file of the record before the script begins; returns 2 if it cannot be written."""
    from tf_lossscale._recorder.request import VARIABLE, Request
    from tf_lossscale._records.destination import Destination, RecordingError
    from tf_lossscale._records.writing import notify

    destination = Destination(path, parsed.overwrite)
    try:
        destination.hold()
    except OSError as error:
        notify(f"{path} cannot be written: {error.strerror or error}.")
        return 2
    except RecordingError as error:
        notify(str(error))
        return 2
    request = Request(destination.path, not parsed.no_norm, parsed.overwrite, os.getpid())
    request = request._replace(descriptor=destination.hand_over())
    try:
        return run_python(arguments, {**environment, VARIABLE: request.text()})
    finally:  # the process was not replaced
        destination.discard()


def _run_parser(name: str) -> ArgumentParser:
    """Returns the parser of the options before SCRIPT; the rest is passed to Python unread."""
    parser = ArgumentParser(
        prog=name,
        usage=f"{name} [-h] [--replace] [--monitor] [--record FILE [--overwrite] [--no-norm]] "
        f"[--seed N] {_SCRIPT}",
        description="Run an unmodified legacy script with the names that this TensorFlow lacks put "
        f"back under `tensorflow`, also in the Python processes that it starts. {_ARGUMENTS}",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--replace",
        action="store_true",
        help="also replace the classes that this TensorFlow still has by the shim's classes",
    )
    parser.add_argument(
        "--monitor",
        action="store_true",
        help="print two lines at the end: how many steps were skipped or not finite, the first "
        "variable, the loss scale, and what to look at next",
    )
    parser.add_argument(
        "--record",
        metavar="FILE",
        help="also record each step, as `record` does; lists the names that were put back",
    )
    _add_options(parser)
    return parser


def _record_parser(name: str) -> ArgumentParser:
    """Returns the parser of the options around FILE; the rest is passed to Python unread."""
    parser = ArgumentParser(
        prog=name,
        usage=f"{name} [-h] [--disturb N [--before COMMAND]] [--overwrite] [--no-norm] [--seed N] "
        f"FILE {_SCRIPT}",
        description="Record each step of a script's loss-scale optimizers in FILE, for `compare` "
        "and `show`. Nothing is installed or replaced: the script runs as without it. "
        + _ARGUMENTS,
        epilog="The exit status is that of the script; 2 if FILE exists or cannot be written.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--disturb",
        metavar="N",
        type=_count,
        default=0,
        help="run the script N times more, with weights or a loss scale that are disturbed as "
        "little as rounding would, and put these records beside FILE: `compare` judges by them how "
        "much rounding matters to this program. 5 is a good choice",
    )
    parser.add_argument(
        "--before",
        metavar="COMMAND",
        help="run this shell command before each of these runs, such as one that puts back the "
        "checkpoint from which the script continues and which it overwrites",
    )
    _add_options(parser)
    return parser


def _count(text: str) -> int:
    with contextlib.suppress(ValueError):
        if 0 <= int(text) <= _MOST_RUNS:
            return int(text)
    raise argparse.ArgumentTypeError(f"{text!a} is not a whole number from 0 to {_MOST_RUNS}")


def _add_options(parser: ArgumentParser) -> None:
    """Adds the options that `run` and `record` have in common."""
    parser.add_argument(
        "--overwrite",
        action="store_true",
        help="replace the record in FILE, once the script makes its first step",
    )
    parser.add_argument(
        "--no-norm",
        action="store_true",
        help="record without a look at the gradients: no norm, and no first non-finite variable",
    )
    parser.add_argument(
        "--seed",
        metavar="N",
        type=_seed,
        help="seed Python, NumPy and TensorFlow; equal seeds give equal numbers in one version of "
        "TensorFlow only",
    )


def _seed(text: str) -> int:
    with contextlib.suppress(ValueError):
        seed = int(text)
        if 0 <= seed < 2**32:  # the range of NumPy
            return seed
    raise argparse.ArgumentTypeError(f"{text!a} is not a whole number from 0 to {2**32 - 1}")


def split_at_script(arguments: List[str]) -> Tuple[List[str], List[str]]:
    """Returns the options before the first argument of another kind, and all from that one on."""
    is_value = False
    for index, argument in enumerate(arguments):
        if is_value or argument in _WITH_VALUE:
            is_value = not is_value
            continue
        # Python also accepts `-mpackage.module` and `-cCODE`.
        is_code = argument[:2] in ("-m", "-c")
        if is_code or argument in ("-", "--") or not argument.startswith("-"):
            return arguments[:index], arguments[index:]
    return arguments, []


def options_of(arguments: List[str]) -> List[str]:
    """Returns the options of `run` or `record` themselves, without the script's options."""
    command: Any = arguments[:1]
    before, rest = split_at_script(arguments[1:])
    between = split_at_script(rest[1:])[0] if command == ["record"] else []
    return [*before, *between]
