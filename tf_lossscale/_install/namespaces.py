"""Decides by its name whether a module may need our symbols, and supplies missing modules.

TensorFlow's public API is a tree of modules, and one process contains several such trees:
`tf.train` is `tensorflow._api.v2.train`, `import tensorflow.train` creates a second module from the
same file, `compat.v1` is a third tree, and Keras has its own, which is loaded late. So `install()`
does not walk TensorFlow's attributes; it recognizes every module of such a tree by its name
(`namespace_of`). A namespace that TensorFlow no longer has becomes a `SyntheticNamespace`.
"""

import functools
import importlib
import os
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Dict, Iterable, List, Optional, Set

from tf_lossscale import _namespace, _paths
from tf_lossscale._import_hook import Loader
from tf_lossscale._versions.interventions import COMPILERS
from tf_lossscale._versions.originals import API_ROOTS
from tf_lossscale._versions.releases import LEGACY_KERAS, LEGACY_KERAS_VALUES


def namespace_of(module_name: str) -> Optional[str]:
    """Returns which namespace a module of TensorFlow's or Keras's API is, by its name.

    The empty string is the top; None means that it has none of our symbols.

    >>> namespace_of("tensorflow._api.v2.train")
    'train'
    >>> namespace_of("keras._tf_keras.keras.mixed_precision")
    'keras.mixed_precision'
    """
    uses_tf_keras = os.environ.get(LEGACY_KERAS) in LEGACY_KERAS_VALUES
    if module_name.startswith("tf_keras") and not uses_tf_keras:
        return None  # our policies are based on `tf.keras`
    for root, namespace in API_ROOTS:
        if module_name == root:
            return namespace
        if module_name.startswith(root + "."):
            found = join(namespace, module_name[len(root) + 1 :])
            known = found in _paths.NAMESPACES or found in _paths.VIEWS or namespaces_below(found)
            return found if known else None
    return None


def namespaces_below(namespace: str) -> List[str]:
    """Returns the namespaces directly below one.

    >>> namespaces_below("contrib")
    ['mixed_precision', 'tpu']
    """
    return _below(namespace, [*_paths.NAMESPACES, *_paths.VIEWS])


def _below(namespace: str, paths: Iterable[str]) -> List[str]:
    prefix = join(namespace, "")
    return sorted({path[len(prefix) :].split(".")[0] for path in paths if path.startswith(prefix)})


def is_private(module_name: str) -> bool:
    """Returns whether a module has no public name, but exposes our symbols, or has one below it.

    >>> is_private("tensorflow.contrib.mixed_precision.python.loss_scale_manager")
    True
    >>> is_private("tensorflow.contrib.mixed_precision")
    False
    """
    return module_name in _private_modules()


def private_below(module_name: str) -> List[str]:
    """Returns the modules without a public name directly below one without a public name.

    >>> private_below("tensorflow.contrib.tpu.python")
    ['ops', 'tpu']
    """
    return _below(module_name, _paths.PRIVATE) if is_private(module_name) else []


@functools.lru_cache(maxsize=None)
def _private_modules() -> Set[str]:
    """Returns the modules of `_paths.PRIVATE`, and those above that may be missing, too."""
    found = set()
    for module_name in _paths.PRIVATE:
        while module_name not in _NEVER_SUPPLIED and not _is_public(module_name):
            found.add(module_name)
            module_name = module_name.rpartition(".")[0]
    return found


# Without these there is no Keras, or no TensorFlow.
_NEVER_SUPPLIED = ("keras", "tensorflow", "tensorflow.python")


def _is_public(module_name: str) -> bool:
    root, _, namespace = module_name.partition(".")
    return root == "tensorflow" and bool(
        namespace in _paths.NAMESPACES or namespaces_below(namespace)
    )


def is_of_interest(module_name: str) -> bool:
    """Returns whether `install()` may have to change a module, or to supply it."""
    is_api = namespace_of(module_name) is not None
    return is_api or module_name in COMPILERS or is_private(module_name)


def private_symbols(module_name: str) -> Dict[str, _paths.Symbol]:
    """Returns our symbols in a module without a public name, by the names that they have there."""
    names = _paths.PRIVATE.get(module_name, {})
    return {name: _paths.symbol_at(path) for name, path in names.items()}


def join(namespace: str, child: str) -> str:
    """Returns the path of `child` below a namespace; the empty string is the top."""
    return namespace + "." + child if namespace else child


class SyntheticNamespace(ModuleType):
    """A module whose attributes are our symbols, which are loaded on first use.

    Args:
      name: its full name.
      namespace: the namespace that it is; None if it has no public name.
    """

    def __init__(self, name: str, namespace: Optional[str] = None) -> None:
        self._shown = name if namespace is None else f"tf.{namespace}"
        super().__init__(name, f"`{self._shown}`, supplied by tf_lossscale.")
        self.__path__: List[str] = []  # makes it a package, so that its submodules can be imported
        self.__spec__ = ModuleSpec(name, _Loader(self), is_package=True)
        if namespace is None:
            self._symbols = private_symbols(name)
            self._below = private_below(name)
        else:
            self._symbols = _paths.NAMESPACES.get(_paths.VIEWS.get(namespace, namespace), {})
            self._below = namespaces_below(namespace)
        self.__all__ = dir(self)

    def __getattr__(self, name: str) -> Any:
        symbol = self._symbols.get(name)
        if symbol is not None:
            value = _namespace.load(symbol)
            setattr(self, name, value)
            return value
        raise AttributeError(name if name.startswith("__") else self.refuse(name))

    def __dir__(self) -> List[str]:
        return sorted([*self._symbols, *self._below])

    def refuse(self, name: str) -> str:
        return (
            f"{self._shown}.{name} is not in this TensorFlow "
            f"({getattr(sys.modules.get('tensorflow'), '__version__', 'version unknown')}), and "
            f"tf-lossscale does not supply it. Of {self._shown} it supplies: "
            + ", ".join(dir(self))
            + "."
        )


class _Loader(Loader):
    """Returns the existing module when a namespace is looked up or reloaded."""

    def __init__(self, namespace: SyntheticNamespace) -> None:
        self._namespace = namespace

    def create_module(self, spec: ModuleSpec) -> Optional[ModuleType]:
        return self._namespace

    def exec_module(self, module: ModuleType) -> None:
        pass


class AwaitingLoader(Loader):
    """Waits until `import tensorflow` has completed, and returns the namespace added by then."""

    def create_module(self, spec: ModuleSpec) -> Optional[ModuleType]:
        importlib.import_module("tensorflow")
        module = sys.modules.get(spec.name)
        if not isinstance(module, SyntheticNamespace):  # or this thread is importing TensorFlow
            raise ModuleNotFoundError(f"No module named {spec.name!r}", name=spec.name)
        self._own_spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._own_spec  # Python replaced it by the spec with this loader
