"""Model files find our class: it is known to each Keras that is loaded, and to those that follow.

A file names the class of its optimizer, and Keras looks that name up among the custom objects
first. So ours must be among them before the first file is read, which may be before the first
instance is made. A program may also load a second Keras (`import tf_keras`) after it has taken our
class, and no Keras is to be imported for our sake: an import hook waits for it.
"""

import importlib.abc
import importlib.machinery
import sys
from types import ModuleType
from typing import Any, Optional, Sequence, Set

from tf_lossscale._versions.keras import (
    KERAS_PACKAGES,
    loaded_keras_packages,
    register_loss_scale_optimizer,
)

__all__ = ["register_with_every_keras", "stop_waiting", "wait_again"]

_waiting: "Optional[_Waiting]" = None


def register_with_every_keras(cls: Any) -> None:
    """Lets every Keras read the optimizers of model files as `cls`.

    Args:
      cls: our final class.
    """
    loaded = loaded_keras_packages()
    for package in loaded:
        register_loss_scale_optimizer(package, cls)
    to_come = set(KERAS_PACKAGES) - set(loaded)
    if to_come:
        global _waiting
        _waiting = _Waiting(to_come, cls)
        sys.meta_path.insert(0, _waiting)


def stop_waiting() -> None:
    """Leaves alone what is imported from now on, for `uninstall()`."""
    if _waiting in sys.meta_path:
        sys.meta_path.remove(_waiting)


def wait_again() -> None:
    """Takes `stop_waiting` back, and registers with what has been imported since."""
    if _waiting is not None and _waiting not in sys.meta_path:
        register_with_every_keras(_waiting.cls)


class _Waiting(importlib.abc.MetaPathFinder):
    """Waits for packages to be imported, each once; finds nothing itself."""

    def __init__(self, packages: Set[str], cls: Any) -> None:
        self._packages = packages
        self.cls = cls

    def find_spec(
        self, name: str, path: Optional[Sequence[str]], target: Optional[ModuleType] = None
    ) -> Optional[importlib.machinery.ModuleSpec]:
        """Returns the spec that the finders after this one have, with our loader around theirs."""
        if name not in self._packages or self not in sys.meta_path:
            return None
        # Another finder that puts itself between, as that of `install()`, may ask this one again.
        self._packages.remove(name)
        for finder in sys.meta_path[sys.meta_path.index(self) + 1 :]:
            spec = finder.find_spec(name, path, target) if hasattr(finder, "find_spec") else None
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _Loader(spec.loader, self.cls)
                return spec
        self._packages.add(name)  # not installed, as of now
        return None


class _Loader(importlib.abc.Loader):
    """Loads a package as its own loader does, and registers with it then."""

    def __init__(self, loader: Any, cls: Any) -> None:
        self._loader = loader
        self._cls = cls

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> Optional[ModuleType]:
        """Makes the module as its own loader does."""
        module: Optional[ModuleType] = self._loader.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Runs the package."""
        spec = module.__spec__
        assert spec is not None
        # The package sees the loader that it would have without us: it may ask it for its files.
        module.__loader__ = spec.loader = self._loader
        self._loader.exec_module(module)
        if spec.name in loaded_keras_packages():
            register_loss_scale_optimizer(spec.name, self._cls)
