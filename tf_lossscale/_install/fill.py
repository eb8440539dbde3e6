"""Adds missing symbols to a module of TensorFlow's or Keras's API."""

from typing import Any

from tf_lossscale import _namespace, _paths
from tf_lossscale._install.api_modules import join, namespace_of, namespaces_below
from tf_lossscale._install.compile_stand_ins import is_stand_in, stand_in
from tf_lossscale._install.record import Record, forget
from tf_lossscale._install.synthetic_namespace import SyntheticNamespace
from tf_lossscale._versions.originals import COMPILERS, Compiler

__all__ = ["fill"]


def fill(record: Record, module_name: str, module: Any) -> None:
    """Adds missing symbols to a module, or lets its `compile` wrap optimizers in our class.

    A namespace that is missing entirely, such as `tf.contrib`, becomes a `SyntheticNamespace`.

    Args:
      record: records the changes.
      module_name: its full name.
      module: a module of an API tree, or one with a `compile`.
    """
    if module_name in COMPILERS:
        _wrap_in_ours(record, module, COMPILERS[module_name])
        return
    namespace = namespace_of(module_name)
    if namespace is None or isinstance(module, SyntheticNamespace):
        return
    present = set(dir(module))
    for child in namespaces_below(namespace):
        if child not in present:
            _supply(record, module, module_name + "." + child, join(namespace, child))
    symbols = _paths.NAMESPACES.get(_paths.VIEWS.get(namespace, namespace), {})
    record.note(module, symbols)
    for name, symbol in symbols.items():
        if name in present:
            if record.replace or _is_of_keras_3(module, symbol):
                _bind_symbol(record, module, module_name, symbol)
        elif symbol.legacy:
            _bind_symbol(record, module, module_name, symbol)


def _wrap_in_ours(record: Record, module: Any, compiler: Compiler) -> None:
    """Lets `compile` wrap optimizers in our class, if that is at the public path."""
    name = compiler.attribute_of(module)
    value = getattr(module, name, None)
    always = record.replace or compiler.keras_3
    if value is not None and not is_stand_in(value, always):
        new = stand_in(value, always)
        if new is not None:
            record.bind(module, name, new)


def _is_of_keras_3(module: Any, symbol: _paths.Symbol) -> bool:
    """Whether a symbol is present, but is Keras 3's class, which lacks the methods of Keras 2's."""
    is_optimizer = symbol.implementation == "_keras.final:LossScaleOptimizer"
    return is_optimizer and not hasattr(getattr(module, symbol.name), "get_scaled_loss")


def _supply(record: Record, parent: Any, module_name: str, namespace: str) -> None:
    """Adds a synthetic namespace, and those below it, to `parent`."""
    module = SyntheticNamespace(module_name, namespace)
    record.register(module_name, module)
    record.bind(parent, module_name.rpartition(".")[2], module)
    for child in namespaces_below(namespace):
        _supply(record, module, module_name + "." + child, join(namespace, child))


def _bind_symbol(record: Record, module: Any, module_name: str, symbol: _paths.Symbol) -> None:
    if module_name.split(".")[0] in ("keras", "tf_keras"):
        # Our classes import Keras, which may be partly imported now: load them on first use.
        _bind_lazily(record, module, symbol)
    else:
        record.bind(module, symbol.name, _namespace.load(symbol))


def _bind_lazily(record: Record, module: Any, symbol: _paths.Symbol) -> None:
    record.remember(module, symbol.name)
    forget(module, symbol.name)
    earlier = vars(module).get("__getattr__")

    def module_getattr(name: str) -> Any:
        if name == symbol.name:
            value = _namespace.load(symbol)
            record.bound.append((name, value))  # a wrapper of the module caches it
            return value
        if earlier is not None:
            return earlier(name)
        raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")

    record.bind(module, "__getattr__", module_getattr)
