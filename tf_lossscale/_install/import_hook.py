"""Calls a function with each module of interest as soon as it has been imported."""

import importlib.abc
import importlib.machinery
import sys
from types import ModuleType
from typing import Any, Callable, Optional, Sequence

__all__ = ["is_loaded", "start", "stop"]


class _Finder(importlib.abc.MetaPathFinder):
    """Finds nothing itself: it lets the other finders find, and puts itself between."""

    def __init__(
        self,
        wanted: Callable[[str], bool],
        imported: Callable[[str, Any], None],
        supplied: Callable[[str], Optional[importlib.machinery.ModuleSpec]],
        refusal: Callable[[str], Optional[str]],
        missing: Callable[[str], Optional[importlib.machinery.ModuleSpec]],
    ) -> None:
        self.wanted = wanted
        self.imported = imported
        self.supplied = supplied
        self.refusal = refusal
        self.missing = missing

    def find_spec(
        self, name: str, path: Optional[Sequence[str]], target: Optional[ModuleType] = None
    ) -> Optional[importlib.machinery.ModuleSpec]:
        """Returns the spec that the other finders have, with our loader around theirs."""
        ours = self.supplied(name)
        if ours is not None:
            return ours
        message = self.refusal(name)
        if message is not None:
            # No ModuleNotFoundError: `from tensorflow.contrib import name` would swallow it and say
            # less itself. Programs that try and fall back catch ImportError.
            raise ImportError(message, name=name)
        if not self.wanted(name):
            return None
        for finder in list(sys.meta_path):
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _Loader(spec.loader, self.imported)
                return spec
        return self.missing(name)


class _Loader(importlib.abc.Loader):
    def __init__(self, loader: Any, imported: Callable[[str, Any], None]) -> None:
        self.loader = loader
        self.imported = imported

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> Optional[ModuleType]:
        create: Optional[ModuleType] = self.loader.create_module(spec)
        return create

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        # The module sees the loader that it would have without us: it may ask it for its files.
        module.__loader__ = self.loader
        if spec is not None:
            spec.loader = self.loader
        self.loader.exec_module(module)
        name = spec.name if spec is not None else module.__name__
        # Some of TensorFlow's modules put a wrapper in their own place.
        self.imported(name, sys.modules.get(name, module))


_finder: Optional[_Finder] = None


def start(
    wanted: Callable[[str], bool],
    imported: Callable[[str, Any], None],
    supplied: Callable[[str], Optional[importlib.machinery.ModuleSpec]],
    refusal: Callable[[str], Optional[str]],
    missing: Callable[[str], Optional[importlib.machinery.ModuleSpec]],
) -> None:
    """Starts to watch imports.

    Args:
      wanted: says of a module's full name whether it is of interest.
      imported: called with the name and the module, once its code has run.
      supplied: returns the spec of a module that is ours, or None.
      refusal: returns the message of the ImportError for a module that must not be looked for.
      missing: returns the spec of a module of interest that no other finder has, or None.
    """
    global _finder
    stop()
    _finder = _Finder(wanted, imported, supplied, refusal, missing)
    sys.meta_path.insert(0, _finder)


def stop() -> None:
    """Stops to watch imports."""
    global _finder
    if _finder is not None and _finder in sys.meta_path:
        sys.meta_path.remove(_finder)
    _finder = None


def is_loaded(name: str) -> bool:
    """Returns whether a module has been imported to its end."""
    module = sys.modules.get(name)
    if module is None:
        return False
    return not getattr(getattr(module, "__spec__", None), "_initializing", False)
