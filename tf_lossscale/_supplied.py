"""The modules that stand in for namespaces that TensorFlow no longer has, such as `tf.contrib`."""

import importlib
import importlib.abc
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, List, Optional

from tf_lossscale import _namespace, _paths

# Modules of TensorFlow itself on every version, above some of `_paths.PRIVATE`.
TENSORFLOW_HAS = ("python", "python.keras", "python.keras.mixed_precision")

__all__ = ["SuppliedNamespace", "awaiting_spec", "is_private", "namespaces_below"]


def namespaces_below(namespace: str) -> List[str]:
    """Returns the namespaces directly below one.

    >>> namespaces_below("contrib")
    ['mixed_precision', 'tpu']

    Args:
      namespace: TensorFlow's path without `tf.`; the empty string for the top.
    """
    prefix = namespace + "." if namespace else ""
    return sorted(
        {
            each[len(prefix) :].split(".")[0]
            for each in [*_paths.NAMESPACES, *_paths.VIEWS]
            if each.startswith(prefix)
        }
    )


def is_private(module_name: str) -> bool:
    """Returns whether a module has no public name, but shows our symbols or leads to one that does.

    >>> is_private("tensorflow.contrib.mixed_precision.python.loss_scale_manager")
    True
    >>> is_private("tensorflow.contrib.mixed_precision")
    False

    Args:
      module_name: such as `tensorflow.contrib.tpu.python`.
    """
    root, _, namespace = module_name.partition(".")
    return root == "tensorflow" and (namespace in _paths.PRIVATE or bool(_private_below(namespace)))


def _private_below(namespace: str) -> List[str]:
    """Returns the modules without a public name directly below one without a public name."""
    prefix = namespace + "."
    below = [each[len(prefix) :] for each in _paths.PRIVATE if each.startswith(prefix)]
    if namespace in _paths.NAMESPACES or namespaces_below(namespace) or namespace in TENSORFLOW_HAS:
        return []
    return sorted({each.split(".")[0] for each in below})


class SuppliedNamespace(ModuleType):
    """A module whose attributes are our symbols, loaded at first use.

    Args:
      name: the full name that programs import it by.
      namespace: the namespace that it stands for.
    """

    def __init__(self, name: str, namespace: str) -> None:
        super().__init__(name, f"`tf.{namespace}`, supplied by tf_lossscale.")
        self.__path__: List[str] = []  # a package: its sub-modules are imported through it
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
        return sorted([*self._symbols, *(below or _private_below(self._namespace))])

    def refuse(self, name: str) -> str:
        """Returns the message for a name that is not supplied."""
        return (
            f"tf.{self._namespace}.{name} is not in this TensorFlow "
            f"({getattr(sys.modules.get('tensorflow'), '__version__', 'version unknown')}), and "
            f"tf-lossscale does not supply it. Of tf.{self._namespace} it supplies: "
            + ", ".join(dir(self))
            + "."
        )


class _Loader(importlib.abc.Loader):
    """For those who ask how a namespace is found, or load it again: it is there already."""

    def __init__(self, namespace: SuppliedNamespace) -> None:
        self._namespace = namespace

    def create_module(self, spec: ModuleSpec) -> Optional[ModuleType]:
        return self._namespace

    def exec_module(self, module: ModuleType) -> None:
        pass


def awaiting_spec(name: str) -> ModuleSpec:
    """Returns a spec of a namespace that is supplied when `import tensorflow` has ended.

    Args:
      name: the full name that programs import it by.
    """
    return ModuleSpec(name, _AwaitingLoader(), is_package=True)


class _AwaitingLoader(importlib.abc.Loader):
    """Waits for the thread that imports TensorFlow, and takes the namespace that it supplied."""

    def create_module(self, spec: ModuleSpec) -> Optional[ModuleType]:
        importlib.import_module("tensorflow")
        module = sys.modules.get(spec.name)
        if not isinstance(module, SuppliedNamespace):  # or this is the thread that imports it
            raise ModuleNotFoundError(f"No module named {spec.name!r}", name=spec.name)
        self._own_spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._own_spec  # Python has put the one of this loader there
