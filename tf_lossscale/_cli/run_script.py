"""Runs an unmodified script with the legacy paths installed, exactly like `python SCRIPT`.

This process is replaced by that command, so Python itself sets up everything for the script. The
legacy paths are installed by the `sitecustomize` of `tf_lossscale._cli.child`.
"""

import os
import subprocess
import sys
from typing import List, Optional, Sequence

from tf_lossscale._cli import child
from tf_lossscale._recorder import record_file, session
from tf_lossscale._recorder.record_file import RecordingError

__all__ = ["run_python"]

# The names in `sys.flags`, and the options that set them. Python 3.7 has no `safe_path`.
_FLAGS = (
    ("bytes_warning", "b"),
    ("debug", "d"),
    ("dont_write_bytecode", "B"),
    ("inspect", "i"),
    ("no_user_site", "s"),
    ("optimize", "O"),
    ("quiet", "q"),
    ("safe_path", "P"),
    ("verbose", "v"),
)


def run_python(
    arguments: Sequence[str],
    replace: bool = False,
    record: Optional[str] = None,
    norm: bool = True,
    seed: Optional[int] = None,
) -> int:
    """Replaces this process by `python ARGUMENTS`.

    Returns:
      The exit status. On POSIX systems the process is replaced, so this returns only the status 2,
      if this Python ignores the environment and so would not install the legacy paths.
    """
    if sys.flags.ignore_environment or sys.flags.no_site:
        print(
            "tf-lossscale: `run` does not work with the Python options -E, -I and -S. Omit them, "
            "or call tf_lossscale.install() in the script.",
            file=sys.stderr,
        )
        return 2
    if record is not None:
        try:
            held = record_file.hold(record)
        except OSError as error:
            reason = error.strerror or error
            print(f"tf-lossscale: {record} cannot be written: {reason}.", file=sys.stderr)
            return 2
        except RecordingError as error:
            print(f"tf-lossscale: {error}", file=sys.stderr)
            return 2
        session.announce(os.environ, record, norm, record_file.hand_over(held))
    child.announce(os.environ, replace)
    if seed is not None:
        os.environ[child.SEED] = str(seed)
        os.environ.setdefault("PYTHONHASHSEED", str(seed))  # the order of sets of strings
    command = [sys.executable, *_interpreter_options(), *arguments]
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:  # one that is closed remains so for the script
            stream.flush()
    if os.name == "nt":  # there, `exec` starts a second process and ends this one at once
        return subprocess.call(command)
    os.execv(sys.executable, command)


def _interpreter_options() -> List[str]:
    """Returns the interpreter options of this Python process."""
    options = ["-" + letter * int(getattr(sys.flags, name, 0)) for name, letter in _FLAGS]
    options = [option for option in options if option != "-"]
    if getattr(sys.stdout, "write_through", False):
        options.append("-u")
    for name, value in sys._xoptions.items():
        options += ["-X", name if value is True else f"{name}={value}"]
    for warning in _warning_options():
        options += ["-W", warning]
    return options


def _warning_options() -> List[str]:
    """Returns the values of `-W`, without those from the environment or other options."""
    given = list(sys.warnoptions)
    implied = [each for each in os.environ.get("PYTHONWARNINGS", "").split(",") if each]
    if sys.flags.dev_mode:
        implied.append("default")
    if sys.flags.bytes_warning:
        implied.append(("default", "error")[sys.flags.bytes_warning > 1] + "::BytesWarning")
    for each in implied:
        if each in given:
            given.remove(each)
    return given
