"""Modules for the namespaces that TensorFlow no longer has, such as `tf.contrib`."""

import importlib
import importlib.abc
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, List, Optional

from tf_lossscale import _namespace, _paths
from tf_lossscale._install.api_modules import namespaces_below, private_below

__all__ = ["SyntheticNamespace", "awaiting_spec"]


class SyntheticNamespace(ModuleType):
    """A module whose attributes are our symbols, which are loaded on first use.

    Args:
      name: its full name in import statements.
      namespace: the namespace that it stands for.
    """

    def __init__(self, name: str, namespace: str) -> None:
        super().__init__(name, f"`tf.{namespace}`, supplied by tf_lossscale.")
        self.__path__: List[str] = []  # makes it a package, so that its submodules can be imported
        self.__spec__ = ModuleSpec(name, _Loader(self), is_package=True)
        self._namespace = namespace
        shown = _paths.VIEWS.get(namespace) or _paths.PRIVATE.get(namespace, namespace)
        self._symbols = _paths.NAMESPACES.get(shown, {})
        self.__all__ = dir(self)

    def __getattr__(self, name: str) -> Any:
        symbol = self._symbols.get(name)
        if symbol is not None:
            value = _namespace.load(symbol)
            setattr(self, name, value)
            return value
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(self.refuse(name))

    def __dir__(self) -> List[str]:
        below = namespaces_below(self._namespace)
        return sorted([*self._symbols, *(below or private_below(self._namespace))])

    def refuse(self, name: str) -> str:
        """Returns the error message for a name that is not supplied."""
        return (
            f"tf.{self._namespace}.{name} is not in this TensorFlow "
            f"({getattr(sys.modules.get('tensorflow'), '__version__', 'version unknown')}), and "
            f"tf-lossscale does not supply it. Of tf.{self._namespace} it supplies: "
            + ", ".join(dir(self))
            + "."
        )


class _Loader(importlib.abc.Loader):
    """Returns the existing module when a namespace is looked up or reloaded."""

    def __init__(self, namespace: SyntheticNamespace) -> None:
        self._namespace = namespace

    def create_module(self, spec: ModuleSpec) -> Optional[ModuleType]:
        return self._namespace

    def exec_module(self, module: ModuleType) -> None:
        pass


def awaiting_spec(name: str) -> ModuleSpec:
    """Returns the spec of a namespace that is supplied once `import tensorflow` has completed.

    Args:
      name: its full name in import statements.
    """
    return ModuleSpec(name, _AwaitingLoader(), is_package=True)


class _AwaitingLoader(importlib.abc.Loader):
    """Waits for the thread that imports TensorFlow, and returns the namespace added by then."""

    def create_module(self, spec: ModuleSpec) -> Optional[ModuleType]:
        importlib.import_module("tensorflow")
        module = sys.modules.get(spec.name)
        if not isinstance(module, SyntheticNamespace):  # or this thread is importing TensorFlow
            raise ModuleNotFoundError(f"No module named {spec.name!r}", name=spec.name)
        self._own_spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._own_spec  # Python replaced it by the spec with this loader
