"""Runs at the start of every Python process below `tf-lossscale run`, of whichever Python it is.

Python imports a module of this name when it starts. A process of the environment that `run` was
started in gets the legacy paths, as soon as it imports something that has them. Any other process
is left as it would be without this file. Python 2 must be able to read it, so types are comments.
"""

import os
import sys

MYPY = False
if MYPY:
    from types import ModuleType  # noqa: F401  all are used in comments
    from typing import Any, List, Optional  # noqa: F401

__all__ = []  # type: List[str]

# These names are in `tf_lossscale._child` as well, which is not imported here: it takes time.
MODE = "TF_LOSSSCALE_INSTALL"
PATH = "PYTHONPATH"
HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = "tf_lossscale"
LEGACY_ROOTS = ("tensorflow", "tensorflow_core", "keras", "tf_keras")


class _InstallAtFirstImport(object):  # noqa: UP004  for Python 2
    """Finds this package, and installs the legacy paths before the first module that has them.

    It stays on `sys.meta_path` afterwards and finds nothing: if it went away while another thread
    searches that list, the other thread would miss a finder.
    """

    installs_tf_lossscale = True  # by which `uninstall()` knows it

    def __init__(self, replace):
        # type: (bool) -> None
        self._replace = replace
        self._installed = False

    def find_spec(self, name, path=None, target=None):
        # type: (str, Any, Optional[ModuleType]) -> Any
        """Returns the spec of this package, and what the finders of `install()` find."""
        if name == PACKAGE:
            return self._own_spec()
        if self._installed or name not in LEGACY_ROOTS:
            return None
        import tf_lossscale

        tf_lossscale.install(replace=self._replace)
        self._installed = True
        # The search has passed the place where `install()` put its finder.
        for finder in list(sys.meta_path):
            if finder is self:
                break
            spec = finder.find_spec(name, path, target) if hasattr(finder, "find_spec") else None
            if spec is not None:
                return spec
        return None

    def _own_spec(self):
        # type: () -> Any
        """The package that `run` belongs to, which may be a checkout that is on no path."""
        from importlib.util import spec_from_file_location

        folder = os.path.dirname(HERE)
        return spec_from_file_location(
            PACKAGE, os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
        )


def _identity():
    # type: () -> str
    """Which environment this is, as `tf_lossscale._child.identity` says it."""
    tag = getattr(getattr(sys, "implementation", None), "cache_tag", None)
    return os.pathsep.join([str(tag), getattr(sys, "abiflags", ""), sys.prefix])


def _restore_environment():
    # type: () -> None
    """Takes out of the environment what `run` put into it."""
    os.environ.pop(MODE, None)
    folders = os.environ.get(PATH, "").split(os.pathsep)
    if HERE in folders:
        folders.remove(HERE)
        if folders:
            os.environ[PATH] = os.pathsep.join(folders)
        else:
            del os.environ[PATH]


def _begin():
    # type: () -> None
    sys.path[:] = [folder for folder in sys.path if folder != HERE]
    sys.path_importer_cache.pop(HERE, None)
    mode, _, identity = os.environ.get(MODE, "").partition(os.pathsep)
    if identity == _identity():
        sys.meta_path.insert(0, _InstallAtFirstImport(mode == "replace"))
    else:
        _restore_environment()


_begin()
# The user's own module of this name, or the ImportError that Python expects where there is none.
# Python 2 clears a module that nobody holds, so this one is held.
_this = sys.modules.pop(__name__)
__import__("sitecustomize")
