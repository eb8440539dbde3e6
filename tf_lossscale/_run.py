"""Runs an unmodified script with the legacy paths in place, as `python SCRIPT` would run it."""

import os
import sys
from types import ModuleType, TracebackType
from typing import List, Optional, Sequence

from tf_lossscale import _drop_in
from tf_lossscale._child import VARIABLE, WITH_REPLACE, WITHOUT_REPLACE

__all__ = ["run_script"]

_CHILD_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_child")


def run_script(script: str, arguments: Sequence[str], replace: bool = False) -> int:
    """Runs `script` as the main program of this process.

    Args:
      script: path of a Python file.
      arguments: its command-line arguments.
      replace: whether ours go over what this TensorFlow still has (`install(replace=True)`).

    Returns:
      The exit status: 0 at the end of the script, 1 after an exception, whose traceback has been
      printed. A script that cannot be read gives 2, as it does in Python.

    Raises:
      SystemExit: the script's own.
    """
    try:
        with open(script, "rb") as source:
            text = source.read()
    except OSError as error:
        print(f"tf-lossscale: can't open file {script!r}: {error.strerror}", file=sys.stderr)
        return 2
    _tell_children(replace)
    _drop_in.install(replace=replace)

    main = ModuleType("__main__")
    main.__file__ = script
    main.__spec__ = None  # so a spawned worker imports the script again by its path
    vars(main)["__builtins__"] = vars(sys.modules["__main__"])["__builtins__"]
    sys.argv[:] = [script, *arguments]
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    sys.modules["__main__"] = main
    try:
        exec(compile(text, script, "exec"), vars(main))
    except SystemExit:
        raise
    except BaseException as error:
        shown = error.with_traceback(_without_us(error.__traceback__))
        sys.excepthook(type(shown), shown, shown.__traceback__)
        return 130 if isinstance(error, KeyboardInterrupt) else 1
    return 0


def _without_us(traceback: Optional[TracebackType]) -> Optional[TracebackType]:
    """The traceback as the script would have it: without the frame of this module."""
    while traceback is not None and traceback.tb_frame.f_code.co_filename == __file__:
        traceback = traceback.tb_next
    return traceback


def _tell_children(replace: bool) -> None:
    """Arranges that Python processes that the script starts have the legacy paths too."""
    os.environ[VARIABLE] = WITH_REPLACE if replace else WITHOUT_REPLACE
    folders: List[str] = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if _CHILD_FOLDER not in folders:
        os.environ["PYTHONPATH"] = os.pathsep.join(
            [_CHILD_FOLDER, *[folder for folder in folders if folder]]
        )
