"""Lets `tf-lossscale run` install the legacy paths in a script and in its child processes.

Python imports a module named `sitecustomize` from its path when it starts. This folder contains
one, and `run` adds the folder to `PYTHONPATH`. For a fast start that module does not import this
package, so `sitecustomize.py` repeats the few lines that it needs.
"""

import os
import sys
from typing import MutableMapping

__all__ = ["announce"]

_MODE = "TF_LOSSSCALE_INSTALL"
_PATH = "PYTHONPATH"
_FOLDER = os.path.dirname(os.path.abspath(__file__))


def announce(environment: MutableMapping[str, str], replace: bool) -> None:
    """Lets Python processes with this environment install the legacy paths.

    Processes of another Python version or virtual environment undo this when they start, and then
    behave as without it.

    Args:
      environment: the environment variables, which are changed in place.
      replace: the argument of `tf_lossscale.install`.
    """
    mode = "replace" if replace else "install"
    environment[_MODE] = os.pathsep.join([mode, identity()])
    # The old value is kept unchanged: an empty entry in it means the working directory.
    path = environment.get(_PATH, "")
    if _FOLDER not in path.split(os.pathsep):
        environment[_PATH] = _FOLDER + os.pathsep + path if path else _FOLDER


def identity() -> str:
    """Returns a string that identifies the Python environment, and thus the packages it has."""
    tag = sys.implementation.cache_tag
    return os.pathsep.join([str(tag), getattr(sys, "abiflags", ""), sys.prefix])
