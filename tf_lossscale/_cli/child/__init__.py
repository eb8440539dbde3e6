"""Lets `tf-lossscale run` install the legacy paths in a script and in its child processes.

Python imports a module named `sitecustomize` from its path when it starts. This folder contains
one, and `run` adds the folder to `PYTHONPATH`. For a fast start that module does not import this
package, so `sitecustomize.py` repeats the few lines that it needs.
"""

import os
import sys
from typing import Any, MutableMapping

from tf_lossscale import _import_hook

__all__ = ["SEED", "announce", "seed_if_asked"]

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


SEED = "TF_LOSSSCALE_SEED"


def seed_if_asked() -> None:
    """Seeds TensorFlow when it is imported, if the environment asks for it."""
    if SEED in os.environ:
        _import_hook.subscribe(_Seeds(int(os.environ[SEED])))


class _Seeds(_import_hook.Subscriber):
    def __init__(self, seed: int) -> None:
        self._seed = seed

    def is_of_interest(self, name: str) -> bool:
        return name == "tensorflow"

    def imported(self, name: str, module: Any) -> None:
        from tf_lossscale._versions.watching import seed_tensorflow

        seed_tensorflow(self._seed)
