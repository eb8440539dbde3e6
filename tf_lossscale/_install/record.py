"""Records what `install()` changes, so that `uninstall()` can undo it."""

import sys
from types import ModuleType
from typing import Any, Dict, Iterable, List, Set, Tuple

from tf_lossscale._import_hook import subscribers
from tf_lossscale._install.namespaces import is_of_interest, is_private
from tf_lossscale._versions.originals import (
    attribute_dicts,
    forget_replaced,
    is_lazy_loader,
    note_replaced,
)

__all__ = ["Record", "forget"]

_MISSING = object()


class Record:
    """The changes of one installation, from `install()` to `uninstall()`.

    Attributes:
      replace: whether our symbols replace those that this TensorFlow still has.
      bound: name and value of each attribute that was set.
      modules: maps the full name to each module that we put into `sys.modules`.
      tensorflow_is_there: whether `import tensorflow` has completed.
      early: maps the full name to each module of interest that was imported before that.
      subscribers: the subscribers that the import hook had before.
    """

    def __init__(self) -> None:
        self.replace = False
        self.bound: List[Tuple[str, Any]] = []
        self.modules: Dict[str, Any] = {}
        self.tensorflow_is_there = False
        self.early: Dict[str, Any] = {}
        self.subscribers = subscribers()
        self._attributes: List[Tuple[Any, str, Any]] = []
        self._seen: Set[int] = set()
        self._theirs: Set[Tuple[int, str]] = set()

    def note(self, module: Any, names: Iterable[str]) -> None:
        """Remembers which of `names` a module had when it was first seen.

        Some of our symbols are TensorFlow's objects under another path, so the value of an
        attribute does not show whether we set it.
        """
        for attributes in attribute_dicts(module):
            if id(attributes) not in self._seen:
                self._seen.add(id(attributes))
                self._theirs.update((id(attributes), name) for name in names if name in attributes)

    def bind(self, owner: Any, name: str, value: Any) -> None:
        """Sets an attribute and remembers what it was."""
        self.remember(owner, name)
        self.bound.append((name, value))
        setattr(owner, name, value)

    def remember(self, owner: Any, name: str) -> None:
        """Remembers the value of an attribute before it is changed."""
        found = [attributes[name] for attributes in attribute_dicts(owner) if name in attributes]
        self._attributes.append((owner, name, found[-1] if found else _MISSING))
        if found:
            note_replaced(owner, name, found[-1])

    def register(self, name: str, module: ModuleType) -> None:
        """Makes `import name` find the module."""
        self.modules[name] = module
        sys.modules[name] = module

    def undo(self) -> None:
        """Undoes all changes, in reverse order."""
        for owner, name, old in reversed(self._attributes):
            if old is _MISSING:
                forget(owner, name)
            else:
                setattr(owner, name, old)
        self._sweep()
        for name, module in self.modules.items():
            if sys.modules.get(name) is module:
                del sys.modules[name]
        forget_replaced()

    def _sweep(self) -> None:
        """Removes the copies of our symbols that wrappers of API modules have cached."""
        for name, module in list(sys.modules.items()):
            if not isinstance(module, ModuleType) or not is_of_interest(name):
                continue
            if is_lazy_loader(module) or is_private(name):
                continue  # ours are removed as a whole; TensorFlow's have none of our symbols
            for attributes in attribute_dicts(module):
                for bound, value in self.bound:
                    is_theirs = (id(attributes), bound) in self._theirs
                    if not is_theirs and attributes.get(bound, _MISSING) is value:
                        del attributes[bound]


def forget(owner: Any, name: str) -> None:
    """Removes an attribute of an API module, also from the cache of its wrapper."""
    for attributes in attribute_dicts(owner):
        attributes.pop(name, None)
