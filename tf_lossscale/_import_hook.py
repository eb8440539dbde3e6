"""The only import hook of this package, which notifies subscribers of imported modules.

`install()` subscribes in order to add symbols to the modules of TensorFlow's API, and the Keras
classes to be registered with each Keras. The hook is in `sys.meta_path` while it has subscribers.
"""

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any, Iterable, List, Optional, Sequence

if TYPE_CHECKING:
    from importlib.abc import Loader
else:
    Loader = object  # of the base class, our loaders need nothing, and its import takes 10 ms


class Subscriber:
    """Base class of objects that are notified of imports, and may supply modules."""

    def is_of_interest(self, name: str) -> bool:
        """Returns whether `imported` should be called for the module of this full name."""
        raise NotImplementedError("a subscriber defines which modules it waits for")

    def imported(self, name: str, module: ModuleType) -> None:
        """Called with a module of interest once its code has run."""
        raise NotImplementedError("a subscriber handles the modules that it waits for")

    def pause(self) -> None:
        """Called when `uninstall()` unsubscribes it, because it subscribed after `install()`."""

    def resume(self) -> None:
        """Called when `install()` subscribes it again, after `uninstall()` had unsubscribed it."""

    def spec(self, name: str) -> Optional[ModuleSpec]:
        """Returns the spec of a module that we supply, or None; raises ImportError to refuse it."""

    def missing(self, name: str) -> Optional[ModuleSpec]:
        """Returns the spec of a module of interest that no other finder has found; or None."""


class _Finder:
    """Finds no module itself: calls the other finders, and wraps the loaders that they return."""

    def __init__(self) -> None:
        self.subscribers: List[Subscriber] = []

    def find_spec(
        self, name: str, path: Optional[Sequence[str]], target: Optional[ModuleType] = None
    ) -> Optional[ModuleSpec]:
        """Returns our spec of a module, or another finder's spec with a loader that notifies.

        None for a module that no subscriber supplies or waits for: the other finders then load it
        as they do without us.
        """
        current = subscribers()
        supplied = _first(subscriber.spec(name) for subscriber in current)
        if supplied is not None:
            return supplied
        interested = [subscriber for subscriber in current if subscriber.is_of_interest(name)]
        if not interested:
            return None
        others = [
            finder
            for finder in sys.meta_path
            if finder is not self and hasattr(finder, "find_spec")
        ]
        spec = _first(finder.find_spec(name, path, target) for finder in others)
        if spec is None:
            return _first(subscriber.missing(name) for subscriber in interested)
        if spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


def _first(
    specs: Iterable[Optional[ModuleSpec]],
) -> Optional[ModuleSpec]:
    """Returns the first spec that is not None; the specs after it are not looked for."""
    return next((spec for spec in specs if spec is not None), None)


class _Loader(Loader):
    """Loads a module with its own loader, and then notifies the subscribers."""

    def __init__(self, loader: Any) -> None:
        self.loader = loader

    def create_module(self, spec: ModuleSpec) -> Optional[ModuleType]:
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Runs the code of the module, and then calls `imported` of who waits for it."""
        spec = module.__spec__
        # The module sees the loader that it has without us: it may use it to find its files.
        module.__loader__ = self.loader
        if spec is not None:
            spec.loader = self.loader
        self.loader.exec_module(module)
        name = spec.name if spec is not None else module.__name__
        for subscriber in subscribers():
            if subscriber.is_of_interest(name):
                # Some of TensorFlow's modules replace themselves by a wrapper in `sys.modules`.
                subscriber.imported(name, sys.modules.get(name, module))


_finder = _Finder()


def subscribe(subscriber: Subscriber) -> None:
    """Notifies `subscriber` of modules that are imported from now on."""
    _finder.subscribers.append(subscriber)
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)


def unsubscribe(subscriber: Subscriber) -> None:
    """Stops notifying `subscriber`; does nothing if it is not subscribed."""
    if subscriber in _finder.subscribers:
        _finder.subscribers.remove(subscriber)
    if not _finder.subscribers and _finder in sys.meta_path:
        sys.meta_path.remove(_finder)


def remove_finder_of_run() -> None:
    """Removes the finder by which `tf-lossscale run` installs at the first import of TensorFlow."""
    for finder in list(sys.meta_path):
        if getattr(finder, "installs_tf_lossscale", False):
            sys.meta_path.remove(finder)


def subscribers() -> List[Subscriber]:
    return list(_finder.subscribers)


def is_loaded(name: str) -> bool:
    """Returns whether the import of a module has completed."""
    module = sys.modules.get(name)
    spec = getattr(module, "__spec__", None)
    return module is not None and not getattr(spec, "_initializing", False)
