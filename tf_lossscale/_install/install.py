"""`install()` and `uninstall()`: the legacy paths back under `tensorflow` itself.

Missing symbols are added to each module of the API once it has been imported: to modules that are
loaded already at once, to others by an import hook. So no lazy part of TensorFlow is loaded.
"""

import functools
import sys
import threading
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, List, NamedTuple, Optional, Set

from tf_lossscale import _import_hook, _namespace, _paths
from tf_lossscale._install import namespaces
from tf_lossscale._install.namespaces import SyntheticNamespace, is_of_interest, is_private
from tf_lossscale._types import Model
from tf_lossscale._versions.interventions import (
    COMPILERS,
    INSTALLED,
    Attributes,
    SuppliedModules,
    hook_compile,
    is_compile_hooked,
    unhook_compile,
)
from tf_lossscale._versions.originals import is_lazy_loader

_record: "Optional[_Record]" = None
_paused: List[_import_hook.Subscriber] = []
"""Subscribers that the last `uninstall()` unsubscribed; the next `install()` resumes them."""
_lock = threading.RLock()  # not taken in the import hook, which runs under import locks


def install(replace: bool = False) -> None:
    """Puts every legacy path that this TensorFlow lacks back under `tensorflow`.

    Attributes (`tf.contrib.mixed_precision`) and importable modules (`from
    tensorflow.contrib.mixed_precision import LossScaleOptimizer`) both work afterwards, whether
    TensorFlow was imported before or not; it is not imported for this. A second call changes
    nothing. Processes that are forked inherit it; a spawned one gets it where its main module calls
    `install()` too, or where the program was started by `tf-lossscale run`.

    Args:
      replace: whether our classes also replace what this TensorFlow still has. So
        `tf.compat.v1.tpu.CrossShardOptimizer`, which runs on TPUs only, is replaced by one that
        runs on GPUs and CPUs; and what `compile` wraps under `mixed_float16` is our class.

    On Keras 3 `tf.keras.mixed_precision.LossScaleOptimizer` is our class in any case, and so is
    what `compile` wraps there: Keras 3's own class lacks Keras 2's methods.
    """
    global _record
    with _lock:
        if _record is not None and (_record.replace or not replace):
            return
        if _record is None:
            _record = _Record()
            _import_hook.subscribe(_installer)
            for subscriber in _paused:
                _import_hook.subscribe(subscriber)
                subscriber.resume()
            _paused.clear()
        _record.replace = replace
        # While TensorFlow is being imported, its modules are incomplete: then the hook fills them.
        if _import_hook.is_loaded("tensorflow"):
            _fill_all(_record)


def uninstall() -> None:
    """Undoes `install()`: removes the paths that it added, and restores the replaced ones.

    From then on, `compile` uses Keras's own class, also under a policy that this package has set.
    The next policy that it sets brings the shim's class back.
    """
    global _record
    with _lock:
        _import_hook.remove_finder_of_run()
        unhook_compile()
        if _record is not None:
            _import_hook.unsubscribe(_installer)
            _record.undo()
            # If our Keras class was loaded during this installation, no Keras should read files as
            # it any more.
            for subscriber in _import_hook.subscribers():
                if subscriber not in _record.subscribers:
                    _import_hook.unsubscribe(subscriber)
                    subscriber.pause()
                    _paused.append(subscriber)
            _record = None


class Changes(NamedTuple):
    """The public paths that `install()` has changed so far, such as `tf.contrib`."""

    supplied: List[str]
    replaced: List[str]


def changes() -> Changes:
    """Returns what is installed under `tensorflow` now; modules that are loaded later may add."""
    supplied: Set[str] = set()
    replaced_names: Set[str] = set()
    if is_compile_hooked(INSTALLED):
        replaced_names.add("the class that Model.compile wraps optimizers in")
    for owner, name, is_new in [] if _record is None else _record.attributes.changed():
        module = getattr(owner, "__name__", "")
        namespace = namespaces.namespace_of(module)
        # The modules below the top one, such as `tensorflow._api.v2`, lack what is loaded lazily.
        is_below_top = namespace == "" and module != "tensorflow"
        is_synthetic = isinstance(owner, SyntheticNamespace)
        if namespace is None or is_below_top or is_synthetic or name.startswith("__"):
            continue
        names = supplied if is_new else replaced_names
        names.add("tf." + namespaces.join(namespace, name))
    return Changes(_without_copies(supplied), _without_copies(replaced_names))


def _without_copies(paths: Set[str]) -> List[str]:
    """Returns paths in order, without paths of `tf.compat` that repeat another one."""
    copies = {
        f"tf.compat.{version}.{path[len('tf.') :]}" for path in paths for version in ("v1", "v2")
    }
    return sorted(paths - copies)


class _Installer(_import_hook.Subscriber):
    """Fills modules of interest, and supplies those that no other finder has."""

    def is_of_interest(self, name: str) -> bool:
        return is_of_interest(name)

    def imported(self, name: str, module: ModuleType) -> None:
        record = _record
        if record is not None and name == "tensorflow":
            _fill_all(record)
        elif record is not None:
            # `import tensorflow` changes its modules until it completes, so these have to wait.
            # First remember the module, then look whether it must wait: the import may complete
            # in another thread in between.
            record.early.add(name)
            if record.tensorflow_is_there:
                _fill(record, name, module)

    def spec(self, name: str) -> Optional[ModuleSpec]:
        if _record is None:
            return None
        parent, _, child = name.rpartition(".")
        if name in _record.modules:
            return _record.modules[name].__spec__
        if parent in _record.modules and not is_private(name):
            # Not ModuleNotFoundError: `from tensorflow.contrib import name` would replace its
            # message by a less helpful one. Programs with a fallback catch ImportError.
            raise ImportError(_record.modules[parent].refuse(child), name=name)
        return None

    def missing(self, name: str) -> Optional[ModuleSpec]:
        """Finds a module without a public name, or a namespace that may have to be waited for.

        We may supply it once another thread has finished `import tensorflow`: `import
        tensorflow.contrib` does not wait for a parent module that is already in `sys.modules`.
        """
        if _record is None:
            return None
        parent, _, child = name.rpartition(".")
        if is_private(name):
            module = SyntheticNamespace(name)
            _record.modules.add(module)
            # Python will set it as an attribute of its parent when its import completes.
            _record.attributes.remember(sys.modules[parent], child)
            return module.__spec__
        is_importing = "tensorflow" in sys.modules and not _record.tensorflow_is_there
        if is_importing and name.startswith("tensorflow."):
            return ModuleSpec(name, namespaces.AwaitingLoader(), is_package=True)
        return None


_installer = _Installer()


def _fill_all(record: "_Record") -> None:
    record.tensorflow_is_there = True
    for name, module in list(sys.modules.items()):
        # The hook will see modules that are still being imported. The code of early ones has run,
        # although in another thread their import may not be complete yet.
        complete = name == "tensorflow" or name in record.early or _import_hook.is_loaded(name)
        is_api = isinstance(module, ModuleType) and is_of_interest(name)
        if complete and is_api and not is_lazy_loader(module):
            _fill(record, name, module)


class _Record:
    """The changes of one installation, from `install()` to `uninstall()`."""

    def __init__(self) -> None:
        self.replace = False
        self.attributes = Attributes()
        self.modules = SuppliedModules()
        self.tensorflow_is_there = False  # whether `import tensorflow` has completed
        self.early: Set[str] = set()  # the modules of interest that were imported before that
        self.subscribers = _import_hook.subscribers()  # those that the import hook had before

    def undo(self) -> None:
        """Restores the attributes of TensorFlow's modules, and removes the modules of the shim."""
        loaded = list(sys.modules.items())
        self.attributes.undo([module for name, module in loaded if _may_cache(name, module)])
        self.modules.undo()


def _may_cache(name: str, module: Any) -> bool:
    """Whether a module may have a copy of a symbol of the shim: the wrapper of an API module."""
    if not isinstance(module, ModuleType) or is_lazy_loader(module):
        return False
    return is_of_interest(name) and not is_private(name)


def _fill(record: _Record, module_name: str, module: ModuleType) -> None:
    """Adds missing symbols to a module, or lets its `compile` wrap optimizers in our class."""
    if module_name in COMPILERS:
        # The class at the public path is our class then, and programs test for it.
        if record.replace or _has_class_of_keras_3(module):
            hook_compile(module, INSTALLED, _scaling_of_compile)
    elif not isinstance(module, SyntheticNamespace):
        namespace = namespaces.namespace_of(module_name)
        if namespace is None:
            _fill_private(record, module_name, module)
        else:
            _fill_namespace(record, module_name, module, namespace)


def _has_class_of_keras_3(module: ModuleType) -> bool:
    return hasattr(module, "BaseTrainer") or hasattr(module, "Trainer")


def _scaling_of_compile(model: Model, always: bool) -> Any:
    # Imported when a model is compiled, because it imports TensorFlow and Keras.
    from tf_lossscale._keras import policy_marks

    return policy_marks.scaling_of(model, always)


def _fill_namespace(record: _Record, module_name: str, module: ModuleType, namespace: str) -> None:
    """Adds the symbols that a module of the API lacks, and replaces those that are to be replaced.

    In a Keras they are loaded when they are first read: our classes import Keras, which may be in
    the middle of its own import.
    """
    present = set(dir(module))
    _supply(record, module, module_name, namespace, present)
    symbols = _paths.NAMESPACES.get(_paths.VIEWS.get(namespace, namespace), {})
    record.attributes.note(module, symbols)
    added = {}
    for name, symbol in symbols.items():
        is_replaced = name in present and (record.replace or _is_of_keras_3(module, symbol))
        if is_replaced or (symbol.legacy and name not in present):
            added[name] = functools.partial(_namespace.load, symbol)
    if module_name.split(".")[0] in ("keras", "tf_keras"):
        if added:
            record.attributes.bind_lazily(module, added)
        return
    for name, load in added.items():
        record.attributes.bind(module, name, load())


def _fill_private(record: _Record, module_name: str, module: ModuleType) -> None:
    """Adds what a module without a public name had in another version."""
    symbols = namespaces.private_symbols(module_name)
    missing = {
        name: functools.partial(_namespace.load, symbol)
        for name, symbol in symbols.items()
        if name not in vars(module)
    }
    if missing:
        record.attributes.bind_lazily(module, missing)


def _is_of_keras_3(module: ModuleType, symbol: _paths.Symbol) -> bool:
    """Whether a symbol is present, but is Keras 3's class, which lacks the methods of Keras 2's."""
    is_optimizer = symbol.implementation == "_keras.final:LossScaleOptimizer"
    return is_optimizer and not hasattr(getattr(module, symbol.name), "get_scaled_loss")


def _supply(
    record: _Record, parent: ModuleType, name: str, namespace: str, present: Set[str]
) -> None:
    """Adds the namespaces below one to its module `parent`, except those that are present."""
    for child in namespaces.namespaces_below(namespace):
        if child not in present:
            below = namespaces.join(namespace, child)
            module = SyntheticNamespace(f"{name}.{child}", below)
            record.modules.add(module)
            record.attributes.bind(parent, child, module)
            _supply(record, module, module.__name__, below, set())
