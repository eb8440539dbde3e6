"""Runs at the start of every Python process that is started below `tf-lossscale run` or `record`.

Python imports a module with this name when it starts. In the environment in which `run` was
started, the legacy paths are installed as soon as a module is imported that has such paths. For
`record`, nothing is installed. In any other environment this file has no effect. Python 2 must be
able to parse it, so types are comments.
"""

import os
import sys

MYPY = False
if MYPY:
    from types import ModuleType  # noqa: F401  all are used in comments
    from typing import Any, List, Optional  # noqa: F401

# The variables that `tf_lossscale._cli.child` and `tf_lossscale._recorder.request` set.
MODE = "TF_LOSSSCALE_INSTALL"
PATH = "PYTHONPATH"
RECORD = "TF_LOSSSCALE_RECORD"
SEED = "TF_LOSSSCALE_SEED"
HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = "tf_lossscale"
LEGACY_ROOTS = ("tensorflow", "tensorflow_core", "keras", "tf_keras")


class _InstallAtFirstImport(object):  # noqa: UP004  for Python 2
    """Finds this package, and installs the legacy paths when a module first needs them.

    It then stays on `sys.meta_path` without effect: if it were removed while another thread
    iterates over that list, the other thread would skip a finder.
    """

    installs_tf_lossscale = True  # by this attribute `uninstall()` recognizes it

    def __init__(self, mode):
        # type: (str) -> None
        self._mode = mode
        self._installed = False

    def find_spec(self, name, path=None, target=None):
        # type: (str, Any, Optional[ModuleType]) -> Any
        """Returns the spec of this package, and those of modules that have legacy paths.

        Python holds the global import lock during this call, so nothing may be imported here: if
        another thread were importing the same module, both would wait forever.
        """
        if name == PACKAGE:
            return self._own_spec()
        seeds = name == "numpy" and SEED in os.environ
        if not seeds and (self._installed or name not in LEGACY_ROOTS):
            return None
        finders = list(sys.meta_path)
        if self not in finders:
            return None
        spec = _first_spec(finders[finders.index(self) + 1 :], name, path, target)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            spec.loader = _InstallingLoader(self, spec.loader)
        return spec

    def install(self, name):
        # type: (str) -> Any
        """Installs the legacy paths; returns the loader with which `install()` loads `name`."""
        import tf_lossscale
        from tf_lossscale import _import_hook

        if RECORD in os.environ:
            from tf_lossscale._recorder import request

            request.at_first_import()
        if SEED in os.environ:
            from tf_lossscale._cli.child import Seeds

            _import_hook.subscribe(Seeds(int(os.environ[SEED])))
        self._installed = True
        if self._mode != "record":
            tf_lossscale.install(replace=self._mode == "replace")
            if RECORD in os.environ and request.requested().path is not None:
                _import_hook.subscribe(request.ListsChanges())
        # The search for this module is past the position of the finder that `install()` added.
        finders = list(sys.meta_path)
        if self in finders:
            finders = finders[: finders.index(self)]
        spec = _first_spec(finders, name, None, None)
        return None if spec is None else spec.loader

    def _own_spec(self):
        # type: () -> Any
        """Returns the spec of the package of `run`, which may be a checkout not on `sys.path`."""
        # Another thread may be importing `importlib.util`; this module is built in.
        from _frozen_importlib_external import spec_from_file_location

        folder = os.path.dirname(os.path.dirname(HERE))
        return spec_from_file_location(
            PACKAGE, os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
        )


class _InstallingLoader(object):  # noqa: UP004  for Python 2
    """Loads a module with the loader that Python would have used, and prepares it.

    Before it creates a module, it installs the legacy paths. Any later would be too late: once the
    module is in `sys.modules`, another thread that imports a module below it does not wait. NumPy
    is seeded after it has run.
    """

    def __init__(self, finder, loader):
        # type: (_InstallAtFirstImport, Any) -> None
        self._finder = finder
        self._loader = loader

    def __getattr__(self, name):
        # type: (str) -> Any
        return getattr(self._loader, name)

    def create_module(self, spec):
        # type: (Any) -> Any
        loader = self._finder.install(spec.name) if spec.name != "numpy" else None
        if loader is not None:
            self._loader = loader
        return self._loader.create_module(spec)

    def exec_module(self, module):
        # type: (ModuleType) -> None
        spec = module.__spec__
        assert spec is not None
        module.__loader__ = spec.loader = self._loader
        self._loader.exec_module(module)
        if spec.name == "numpy":
            module.random.seed(int(os.environ[SEED]))


def _first_spec(finders, name, path, target):
    # type: (List[Any], str, Any, Optional[ModuleType]) -> Any
    for finder in finders:
        spec = finder.find_spec(name, path, target) if hasattr(finder, "find_spec") else None
        if spec is not None:
            return spec
    return None


def _begin():
    # type: () -> None
    """Puts the finder that installs first, in the Python environment in which `run` was started.

    In any other, it removes all traces of `run` from the variables that its children inherit.
    """
    sys.path[:] = [folder for folder in sys.path if folder != HERE]
    sys.path_importer_cache.pop(HERE, None)
    mode, _, identity = os.environ.get(MODE, "").partition(os.pathsep)
    # Identifies the Python environment, and thus the packages it has, as in `run_python`.
    tag = getattr(getattr(sys, "implementation", None), "cache_tag", None)
    if identity == os.pathsep.join([str(tag), getattr(sys, "abiflags", ""), sys.prefix]):
        if SEED in os.environ:
            import random

            random.seed(int(os.environ[SEED]))
        sys.meta_path.insert(0, _InstallAtFirstImport(mode))
        if RECORD in os.environ:
            from tf_lossscale._recorder import request

            request.start_at_once()
        return
    for name in (MODE, RECORD, SEED):
        os.environ.pop(name, None)
    folders = os.environ.get(PATH, "").split(os.pathsep)
    if HERE in folders:
        folders.remove(HERE)
        if folders:
            os.environ[PATH] = os.pathsep.join(folders)
        else:
            del os.environ[PATH]


_begin()
# Import the user's own module of this name, or raise the ImportError that Python expects if there
# is none. Python 2 clears a module without references, so keep one.
_this = sys.modules.pop(__name__)
__import__("sitecustomize")
