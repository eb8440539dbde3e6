"""The one import hook of this package: subscribers see modules as they are imported.

`install()` subscribes to fill the modules of TensorFlow's API, and the registration of our Keras
class to see each Keras. The hook is in `sys.meta_path` while there are subscribers.
"""

import importlib.abc
import importlib.machinery
import sys
from types import ModuleType
from typing import Any, List, Optional, Sequence

__all__ = ["Subscriber", "is_loaded", "subscribe", "subscribers", "unsubscribe"]


class Subscriber:
    """Base class of what wants to know about imports."""

    def is_of_interest(self, name: str) -> bool:
        """Returns whether `imported` is to be called with the module of this full name."""
        raise NotImplementedError("a subscriber names the modules that it waits for")

    def imported(self, name: str, module: Any) -> None:
        """Called with a module of interest once its code has run."""
        raise NotImplementedError("a subscriber uses the modules that it waits for")

    def resume(self) -> None:
        """Called when `install()` subscribes it again, after `uninstall()` had unsubscribed it."""

    def spec(self, name: str) -> Optional[importlib.machinery.ModuleSpec]:
        """Returns the spec of a module of ours, which goes before those of other finders."""

    def refusal(self, name: str) -> Optional[str]:
        """Returns the message of the ImportError for a module that must not be looked for."""

    def missing(self, name: str) -> Optional[importlib.machinery.ModuleSpec]:
        """Returns the spec of a module of interest that no other finder has."""


class _Finder(importlib.abc.MetaPathFinder):
    """Finds nothing itself: it lets the other finders find, and wraps their loaders."""

    def __init__(self) -> None:
        self.subscribers: List[Subscriber] = []

    def find_spec(
        self, name: str, path: Optional[Sequence[str]], target: Optional[ModuleType] = None
    ) -> Optional[importlib.machinery.ModuleSpec]:
        """Returns the spec that the other finders have, with our loader around theirs."""
        subscribers = list(self.subscribers)
        for each in subscribers:
            ours = each.spec(name)
            if ours is not None:
                return ours
            message = each.refusal(name)
            if message is not None:
                # No ModuleNotFoundError: `from tensorflow.contrib import name` would swallow it
                # and say less itself. Programs that try and fall back catch ImportError.
                raise ImportError(message, name=name)
        interested = [each for each in subscribers if each.is_of_interest(name)]
        if not interested:
            return None
        for finder in list(sys.meta_path):
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _Loader(spec.loader)
                return spec
        specs = (each.missing(name) for each in interested)
        return next((spec for spec in specs if spec is not None), None)


class _Loader(importlib.abc.Loader):
    """Loads a module as its own loader does, and tells the subscribers then."""

    def __init__(self, loader: Any) -> None:
        self.loader = loader

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
        for each in subscribers():
            if each.is_of_interest(name):
                # Some of TensorFlow's modules put a wrapper in their own place.
                each.imported(name, sys.modules.get(name, module))


_finder = _Finder()


def subscribe(subscriber: Subscriber) -> None:
    """Lets `subscriber` see what is imported from now on; those already imported it must look up.

    Args:
      subscriber: anything that is not subscribed yet.
    """
    _finder.subscribers.append(subscriber)
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)


def unsubscribe(subscriber: Subscriber) -> None:
    """Stops what `subscribe` started, if it was."""
    if subscriber in _finder.subscribers:
        _finder.subscribers.remove(subscriber)
    if not _finder.subscribers and _finder in sys.meta_path:
        sys.meta_path.remove(_finder)


def subscribers() -> List[Subscriber]:
    """Returns all that are subscribed, in the order in which they came."""
    return list(_finder.subscribers)


def is_loaded(name: str) -> bool:
    """Returns whether a module has been imported to its end."""
    module = sys.modules.get(name)
    if module is None:
        return False
    return not getattr(getattr(module, "__spec__", None), "_initializing", False)
