"""`install()` and `uninstall()`: the legacy paths back under `tensorflow` itself.

TensorFlow's public API is a tree of modules, and there are several of it in one process:
`tf.train` is `tensorflow._api.v2.train`, `import tensorflow.train` makes a second module of the
same file, `compat.v1` a third, and Keras keeps its own tree, which is loaded late. So nothing here
walks TensorFlow's attributes. Every module of such a tree is known by its name (`namespace_of`),
and is filled up when it is imported: those that are there now, at once; later ones by an import
hook, so that no lazy part of TensorFlow is loaded for our sake. A namespace that is missing
altogether, as `tf.contrib`, becomes a module of ours (`SuppliedNamespace`).
"""

import os
import sys
import threading
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Dict, Iterable, List, Optional, Set, Tuple

from tf_lossscale import _compile, _import_hook, _namespace, _paths
from tf_lossscale._supplied import SuppliedNamespace, awaiting_spec, is_private, namespaces_below

__all__ = ["install", "namespace_of", "replaced", "uninstall"]

ROOTS: Tuple[Tuple[str, str], ...] = (
    ("tensorflow._api.v1", ""),
    ("tensorflow._api.v2", ""),
    ("tensorflow_core._api.v1", ""),
    ("tensorflow.python.keras.api._v1.keras", "keras"),
    ("tensorflow.python.keras.api._v2.keras", "keras"),
    ("keras._tf_keras.keras", "keras"),
    ("keras.api._v1.keras", "keras"),
    ("keras.api._v2.keras", "keras"),
    ("tf_keras.api._v1.keras", "keras"),
    ("tf_keras.api._v2.keras", "keras"),
    ("tf_keras", "keras"),
    ("keras", "keras"),  # `tf.compat.v2.keras` is Keras 3 itself
    ("tensorflow_core", ""),
    ("tensorflow", ""),
)
"""Names of modules that are the top of an API tree, and the namespace that they stand for."""

_MISSING = object()
_REGISTRATION = "tf_lossscale._keras.registration"  # imports TensorFlow, so it is not imported here


class _Installation:
    """What was put where, so that it can be taken away again."""

    def __init__(self) -> None:
        self.replace = False
        self.attributes: List[Tuple[Any, str, Any]] = []
        self.bound: List[Tuple[str, Any]] = []
        self.modules: Dict[str, Any] = {}
        self.seen: Set[int] = set()
        self.theirs: Set[Tuple[int, str]] = set()
        self.tensorflow_is_there = False
        self.early: Dict[str, Any] = {}
        self.finders = list(sys.meta_path)

    def note(self, module: Any, names: Iterable[str]) -> None:
        """Remembers which names a module had when it was first seen.

        Some of ours are the installed objects under another path, so that what an attribute holds
        does not tell who put it there.
        """
        for attributes in _attributes_of(module):
            if id(attributes) not in self.seen:
                self.seen.add(id(attributes))
                self.theirs.update((id(attributes), name) for name in names if name in attributes)

    def bind(self, owner: Any, name: str, value: Any) -> None:
        """Sets an attribute and remembers what it was."""
        self.remember(owner, name)
        self.bound.append((name, value))
        setattr(owner, name, value)

    def remember(self, owner: Any, name: str) -> None:
        """Notes what an attribute is, before it changes."""
        found = [each[name] for each in _attributes_of(owner) if name in each]
        self.attributes.append((owner, name, found[-1] if found else _MISSING))

    def register(self, name: str, module: ModuleType) -> None:
        """Makes `import name` find the module."""
        self.modules[name] = module
        sys.modules[name] = module

    def undo(self) -> None:
        """Takes everything away, last thing first."""
        for owner, name, old in reversed(self.attributes):
            if old is _MISSING:
                _forget(owner, name)
            else:
                setattr(owner, name, old)
        self._sweep()
        for name, module in self.modules.items():
            if sys.modules.get(name) is module:
                del sys.modules[name]

    def _sweep(self) -> None:
        """Removes the copies that wrappers of API modules keep of what they were asked for."""
        for name, module in list(sys.modules.items()):
            if not isinstance(module, ModuleType) or not _wanted(name) or _is_lazy(module):
                continue
            if is_private(name):
                continue  # ours goes as a whole, and TensorFlow's has nothing of ours
            for attributes in _attributes_of(module):
                for bound, value in self.bound:
                    is_theirs = (id(attributes), bound) in self.theirs
                    if not is_theirs and attributes.get(bound, _MISSING) is value:
                        del attributes[bound]


_installed: Optional[_Installation] = None
_lock = threading.RLock()  # not held by the import hook, which runs under the locks of imports


def install(replace: bool = False) -> None:
    """Puts every legacy path that this TensorFlow lacks back under `tensorflow`.

    Attributes (`tf.contrib.mixed_precision`) and importable modules (`from
    tensorflow.contrib.mixed_precision import LossScaleOptimizer`) both work afterwards, whether
    TensorFlow was imported before or not; it is not imported for this. A second call changes
    nothing. Processes that are forked inherit it; a spawned one gets it where its main module calls
    `install()` too, or where the program was started by `tf-lossscale run`.

    Args:
      replace: whether ours go over what this TensorFlow still has as well. So
        `tf.compat.v1.tpu.CrossShardOptimizer`, which runs on TPUs only, is replaced by one that
        runs on GPUs and CPUs; and what `compile` wraps under `mixed_float16` is our class.

    On Keras 3 `tf.keras.mixed_precision.LossScaleOptimizer` is ours in any case, and so is what
    `compile` wraps there: Keras 3's own class lacks Keras 2's methods.
    """
    global _installed
    with _lock:
        if _installed is not None and (_installed.replace or not replace):
            return
        if _installed is None:
            _installed = _Installation()
            if _REGISTRATION in sys.modules:
                sys.modules[_REGISTRATION].wait_again()
            _import_hook.start(_wanted, _imported, _supplied_spec, _refusal, _awaited_spec)
        _installed.replace = replace
        # TensorFlow's own modules are half made while it is being imported; the hook has them then.
        if _import_hook.is_loaded("tensorflow"):
            _fill_all()


def uninstall() -> None:
    """Undoes `install()`: the paths that it added are gone, those that it replaced are back.

    Some API modules of TensorFlow 2.4 to 2.8 remember for good what was once asked of them; a name
    that was added to one of these and used stays there.
    """
    global _installed
    with _lock:
        for finder in list(sys.meta_path):
            # `tf-lossscale run` installs at the first import of TensorFlow: no longer.
            if getattr(finder, "installs_tf_lossscale", False):
                sys.meta_path.remove(finder)
        if _installed is not None:
            _import_hook.stop()
            _installed.undo()
            # Our class waits for each Keras to come: no longer, if it was loaded for this
            # installation.
            came = [each for each in sys.meta_path if each not in _installed.finders]
            if any(type(each).__module__ == _REGISTRATION for each in came):
                sys.modules[_REGISTRATION].stop_waiting()
            _installed = None


def replaced(owner: Any, name: str) -> Optional[Any]:
    """Returns what stood under a path before ours was put there, or None.

    Our own code asks for it where it builds on the original.

    Args:
      owner: an API module, or what stands for one.
      name: the attribute.
    """
    # A wrapper of a module and the module itself are one owner: they share dictionaries.
    own = {id(each) for each in _attributes_of(owner)}
    for each, bound, old in [] if _installed is None else _installed.attributes:
        is_it = bound == name and old is not _MISSING
        if is_it and own.intersection(id(attributes) for attributes in _attributes_of(each)):
            return old
    return None


def namespace_of(module_name: str) -> Optional[str]:
    """Returns which namespace a module of TensorFlow's or Keras's API is, by its name.

    >>> namespace_of("tensorflow._api.v2.train")
    'train'
    >>> namespace_of("keras._tf_keras.keras.mixed_precision")
    'keras.mixed_precision'

    Args:
      module_name: such as `tensorflow._api.v2.train`.

    Returns:
      `train`; the empty string for the top; None where the module is no part of the API or holds
      nothing that concerns us.
    """
    if module_name.startswith("tf_keras") and not _tf_keras_is_in_use():
        return None  # our policies are those of `tf.keras`
    for root, namespace in ROOTS:
        if module_name == root:
            return namespace
        if module_name.startswith(root + "."):
            rest = module_name[len(root) + 1 :]
            found = namespace + "." + rest if namespace else rest
            known = found in _paths.NAMESPACES or found in _paths.VIEWS or namespaces_below(found)
            return found if known else None
    return None


def _tf_keras_is_in_use() -> bool:
    """Whether `tf.keras` is the package tf_keras."""
    return os.environ.get("TF_USE_LEGACY_KERAS") in ("1", "true", "True")


def _wanted(module_name: str) -> bool:
    """Whether a module may lack something of ours, or be missing, or has `compile`."""
    return (
        module_name in _compile.COMPILERS
        or namespace_of(module_name) is not None
        or is_private(module_name)
    )


def _imported(module_name: str, module: Any) -> None:
    """Called by the import hook with each module of interest."""
    installation = _installed
    if installation is None:
        return
    if module_name == "tensorflow":
        _fill_all()
        return
    # `import tensorflow` writes into its modules until its end: they wait for it. Noted first and
    # looked up then, because it may end in another thread meanwhile.
    installation.early[module_name] = module
    if installation.tensorflow_is_there:
        installation.early.pop(module_name, None)
        _fill(module_name, module)


def _fill_all() -> None:
    assert _installed is not None
    _installed.tensorflow_is_there = True
    # They have run, though in another thread their import may not have ended yet.
    for name, module in list(_installed.early.items()):
        _fill(name, module)
    _installed.early.clear()
    for name, module in list(sys.modules.items()):
        # What is still being imported comes back through the hook.
        complete = name == "tensorflow" or _import_hook.is_loaded(name)
        if complete and isinstance(module, ModuleType) and _wanted(name) and not _is_lazy(module):
            _fill(name, module)


def _fill(module_name: str, module: Any) -> None:
    """Adds to one module of an API tree what it lacks; lets `compile` wrap optimizers in ours."""
    if module_name in _compile.COMPILERS:
        _wrap_in_ours(module, _compile.COMPILERS[module_name])
        return
    namespace = namespace_of(module_name)
    if _installed is None or namespace is None or isinstance(module, SuppliedNamespace):
        return
    present = set(dir(module))
    for child in namespaces_below(namespace):
        if child not in present:
            _supply(module, module_name + "." + child, _join(namespace, child))
    symbols = _paths.NAMESPACES.get(_paths.VIEWS.get(namespace, namespace), {})
    _installed.note(module, symbols)
    for name, symbol in symbols.items():
        if name in present:
            if _installed.replace or _is_of_keras_3(module, symbol):
                _bind_symbol(module, module_name, symbol)
        elif symbol.legacy:
            _bind_symbol(module, module_name, symbol)


def _wrap_in_ours(module: Any, compiler: _compile.Compiler) -> None:
    """Lets `compile` wrap optimizers in our class where the public path holds that."""
    assert _installed is not None
    value = getattr(module, compiler.attribute, None)
    always = _installed.replace or compiler.keras_3
    if value is not None and not _compile.is_stand_in(value, always):
        stand_in = _compile.stand_in(value, always)
        if stand_in is not None:
            _installed.bind(module, compiler.attribute, stand_in)


def _is_of_keras_3(module: Any, symbol: _paths.Symbol) -> bool:
    """Whether a symbol is there, but Keras 3's class, which lacks the methods of Keras 2's."""
    is_optimizer = symbol.implementation == "_keras.final:LossScaleOptimizer"
    return is_optimizer and not hasattr(getattr(module, symbol.name), "get_scaled_loss")


def _supply(parent: Any, module_name: str, namespace: str) -> None:
    """Puts a namespace of ours, and those below it, under `parent`."""
    assert _installed is not None
    module = SuppliedNamespace(module_name, namespace)
    _installed.register(module_name, module)
    _installed.bind(parent, module_name.rpartition(".")[2], module)
    for child in namespaces_below(namespace):
        _supply(module, module_name + "." + child, _join(namespace, child))


def _bind_symbol(module: Any, module_name: str, symbol: _paths.Symbol) -> None:
    assert _installed is not None
    if module_name.split(".")[0] in ("keras", "tf_keras"):
        # Ours need Keras, which may be in the middle of being imported: load them at first use.
        _bind_lazily(module, symbol)
    else:
        _installed.bind(module, symbol.name, _namespace.load(symbol))


def _bind_lazily(module: Any, symbol: _paths.Symbol) -> None:
    assert _installed is not None
    _installed.remember(module, symbol.name)
    _forget(module, symbol.name)
    earlier = vars(module).get("__getattr__")

    installation = _installed

    def module_getattr(name: str) -> Any:
        if name == symbol.name:
            value = _namespace.load(symbol)
            installation.bound.append((name, value))  # a wrapper of the module keeps it
            return value
        if earlier is not None:
            return earlier(name)
        raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")

    _installed.bind(module, "__getattr__", module_getattr)


def _supplied_spec(module_name: str) -> Optional[ModuleSpec]:
    """Returns the spec of a namespace that we supply, for those who look for it again."""
    module = None if _installed is None else _installed.modules.get(module_name)
    return module.__spec__ if isinstance(module, SuppliedNamespace) else None


def _awaited_spec(module_name: str) -> Optional[ModuleSpec]:
    """Returns the spec of a module that no other finder has, or None.

    That is one without a public name, or what we may supply once another thread has imported
    TensorFlow: `import tensorflow.contrib` does not wait for one that is in `sys.modules` already.
    """
    if _installed is not None and is_private(module_name):
        return _supply_private(module_name)
    if _installed is None or _installed.tensorflow_is_there or "tensorflow" not in sys.modules:
        return None
    return awaiting_spec(module_name) if module_name.startswith("tensorflow.") else None


def _supply_private(module_name: str) -> Optional[ModuleSpec]:
    """Makes a module that has no public name, and returns its spec."""
    assert _installed is not None
    parent_name, _, name = module_name.rpartition(".")
    module = SuppliedNamespace(module_name, module_name.partition(".")[2])
    _installed.register(module_name, module)
    # The import that asks for it makes it an attribute of its parent, once it has it.
    _installed.remember(sys.modules[parent_name], name)
    return module.__spec__


def _refusal(module_name: str) -> Optional[str]:
    """Returns why a module below a namespace of ours cannot be imported, or None."""
    if _installed is None or is_private(module_name):
        return None
    parent, _, name = module_name.rpartition(".")
    supplied = _installed.modules.get(parent)
    if not isinstance(supplied, SuppliedNamespace):
        return None
    return supplied.refuse(name)


def _join(namespace: str, child: str) -> str:
    return namespace + "." + child if namespace else child


def _attributes_of(owner: Any) -> List[Dict[str, Any]]:
    # Only now, because it brings TensorFlow; what is filled is there only after TensorFlow is.
    from tf_lossscale._versions import module_dicts

    return module_dicts(owner)


def _forget(owner: Any, name: str) -> None:
    for attributes in _attributes_of(owner):
        attributes.pop(name, None)


def _is_lazy(module: Any) -> bool:
    """Whether this only stands for a module of TensorFlow that is loaded at its first use."""
    return type(module).__name__.endswith("LazyLoader")
