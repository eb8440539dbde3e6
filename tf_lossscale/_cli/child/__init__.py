"""How `tf-lossscale run` reaches the processes in which a script and its children run.

Python imports a module called `sitecustomize` when it starts, from its path. This folder holds one,
and `PYTHONPATH` names this folder. What is read there must not import this package, so
`sitecustomize.py` repeats the few lines that it needs.
"""

import os
import sys
from typing import MutableMapping

__all__ = ["announce"]

_MODE = "TF_LOSSSCALE_INSTALL"
_PATH = "PYTHONPATH"
_FOLDER = os.path.dirname(os.path.abspath(__file__))


def announce(environment: MutableMapping[str, str], replace: bool) -> None:
    """Lets Python processes with this environment have the legacy paths.

    Processes of another Python, or of the same in another virtual environment, undo this when they
    start: they are as they would be without it.

    Args:
      environment: the variables, which are changed.
      replace: as `tf_lossscale.install` takes it.
    """
    mode = "replace" if replace else "install"
    environment[_MODE] = os.pathsep.join([mode, identity()])
    # What was there stays letter by letter: an empty folder in it stands for the working directory.
    path = environment.get(_PATH, "")
    if _FOLDER not in path.split(os.pathsep):
        environment[_PATH] = _FOLDER + os.pathsep + path if path else _FOLDER


def identity() -> str:
    """Returns what tells environments of Python apart: they have other packages."""
    tag = sys.implementation.cache_tag
    return os.pathsep.join([str(tag), getattr(sys, "abiflags", ""), sys.prefix])
