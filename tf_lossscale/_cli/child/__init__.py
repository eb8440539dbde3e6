"""Runs an unmodified script with the legacy paths installed, exactly like `python SCRIPT`.

This process is replaced by that command, so Python itself sets up everything for the script. Python
imports a module named `sitecustomize` from its path when it starts, also in the processes that the
script starts. This folder contains one, which installs the legacy paths, records and monitors, as
environment variables say, and is added to `PYTHONPATH`. For a fast start that module does not
import this package, so `sitecustomize.py` repeats the few lines that it needs.
"""

import os
import subprocess
import sys
from types import ModuleType
from typing import Dict, List, Optional, Sequence

from tf_lossscale import _import_hook

_FOLDER = os.path.dirname(os.path.abspath(__file__))

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


def can_run() -> bool:
    """Returns whether a script would get what its environment asks for; prints why if not."""
    if sys.flags.ignore_environment or sys.flags.no_site:
        print(
            "tf-lossscale: this command does not work with the Python options -E, -I and -S. Omit "
            "them, or call tf_lossscale.install() or tf_lossscale.recording.start() in the script.",
            file=sys.stderr,
        )
        return False
    return True


def command_for(arguments: Sequence[str]) -> List[str]:
    """Returns the command line of `python ARGUMENTS`, with the options of this interpreter."""
    return [sys.executable, *_interpreter_options(), *arguments]


def environment_for(mode: str, seed: Optional[int]) -> Dict[str, str]:
    """Returns the environment in which `python` runs a script.

    The `mode` is `"install"`, `"replace"`, or `"record"`, which installs nothing.
    """
    # Processes of another Python version or virtual environment undo this when they start.
    tag = str(sys.implementation.cache_tag)
    identity = [mode, tag, getattr(sys, "abiflags", ""), sys.prefix]
    # The old value is kept unchanged: an empty entry in it means the working directory.
    path = os.environ.get("PYTHONPATH", "")
    if _FOLDER not in path.split(os.pathsep):
        path = _FOLDER + os.pathsep + path if path else _FOLDER
    changed = {"TF_LOSSSCALE_INSTALL": os.pathsep.join(identity), "PYTHONPATH": path}
    if seed is not None:
        changed["TF_LOSSSCALE_SEED"] = str(seed)
        # The order of sets of strings.
        changed["PYTHONHASHSEED"] = os.environ.get("PYTHONHASHSEED", str(seed))
    return {**os.environ, **changed}


def run_python(arguments: Sequence[str], environment: Dict[str, str]) -> int:
    """Replaces this process by `python ARGUMENTS`.

    Returns the exit status of that command on Windows.
    """
    command = command_for(arguments)
    os.environ.update(environment)
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:  # one that is closed remains so for the script
            stream.flush()
    if os.name == "nt":  # there, `exec` starts a second process and ends this one at once
        return subprocess.call(command)
    os.execv(sys.executable, command)


def _interpreter_options() -> List[str]:
    """Returns the options of this interpreter, for children that shall run in the same way."""
    options = ["-" + letter * int(getattr(sys.flags, name, 0)) for name, letter in _FLAGS]
    options = [option for option in options if option != "-"]
    if getattr(sys.stdout, "write_through", False):
        options.append("-u")
    for name, value in sys._xoptions.items():
        options += ["-X", name if value is True else f"{name}={value}"]
    # The values of `-W`, without those from the environment or other options.
    given = list(sys.warnoptions)
    implied = [option for option in os.environ.get("PYTHONWARNINGS", "").split(",") if option]
    if sys.flags.dev_mode:
        implied.append("default")
    if sys.flags.bytes_warning:
        implied.append(("default", "error")[sys.flags.bytes_warning > 1] + "::BytesWarning")
    for option in implied:
        if option in given:
            given.remove(option)
    for warning in given:
        options += ["-W", warning]
    return options


class Seeds(_import_hook.Subscriber):
    """Seeds TensorFlow when it is imported."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def is_of_interest(self, name: str) -> bool:
        return name == "tensorflow"

    def imported(self, name: str, module: ModuleType) -> None:
        from tf_lossscale._versions.hooks import seed_tensorflow

        seed_tensorflow(self._seed)
