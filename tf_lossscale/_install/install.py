"""`install()` and `uninstall()`: the legacy paths back under `tensorflow` itself.

Missing symbols are added to each module of the API once it has been imported: to modules that are
loaded already at once, to others by an import hook. So no lazy part of TensorFlow is loaded.
"""

import sys
import threading
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, List, Optional

from tf_lossscale import _import_hook
from tf_lossscale._install.fill import Record, fill
from tf_lossscale._install.namespaces import (
    SyntheticNamespace,
    awaiting_spec,
    is_of_interest,
    is_private,
)
from tf_lossscale._versions.originals import is_lazy_loader

__all__ = ["install", "uninstall"]

_record: Optional[Record] = None
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
      replace: whether ours go over what this TensorFlow still has as well. So
        `tf.compat.v1.tpu.CrossShardOptimizer`, which runs on TPUs only, is replaced by one that
        runs on GPUs and CPUs; and what `compile` wraps under `mixed_float16` is our class.

    On Keras 3 `tf.keras.mixed_precision.LossScaleOptimizer` is ours in any case, and so is what
    `compile` wraps there: Keras 3's own class lacks Keras 2's methods.
    """
    global _record
    with _lock:
        if _record is not None and (_record.replace or not replace):
            return
        if _record is None:
            _record = Record()
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
    """Undoes `install()`: the paths that it added are gone, those that it replaced are back.

    Some API modules of TensorFlow 2.4 to 2.8 cache their attributes permanently: a name that was
    added to one of these and used stays there.
    """
    global _record
    with _lock:
        for finder in list(sys.meta_path):
            # The finder of `tf-lossscale run`, which installs at the first import of TensorFlow.
            if getattr(finder, "installs_tf_lossscale", False):
                sys.meta_path.remove(finder)
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


class _Installer(_import_hook.Subscriber):
    """Fills modules of interest, and supplies those that no other finder has."""

    def is_of_interest(self, name: str) -> bool:
        return is_of_interest(name)

    def imported(self, name: str, module: Any) -> None:
        record = _record
        if record is None:
            return
        if name == "tensorflow":
            _fill_all(record)
            return
        # `import tensorflow` changes its modules until it completes, so these have to wait. First
        # remember the module, then look whether it must wait: the import may complete in
        # another thread in between.
        record.early[name] = module
        if record.tensorflow_is_there:
            record.early.pop(name, None)
            fill(record, name, module)

    def spec(self, name: str) -> Optional[ModuleSpec]:
        """Returns the spec of a namespace that we supply, if it is looked up again."""
        module = None if _record is None else _record.modules.get(name)
        return module.__spec__ if isinstance(module, SyntheticNamespace) else None

    def refusal(self, name: str) -> Optional[str]:
        """Returns why a module below a namespace of ours cannot be imported, or None."""
        if _record is None or is_private(name):
            return None
        parent, _, child = name.rpartition(".")
        supplied = _record.modules.get(parent)
        return supplied.refuse(child) if isinstance(supplied, SyntheticNamespace) else None

    def missing(self, name: str) -> Optional[ModuleSpec]:
        """Returns the spec of a module that no other finder has, or None.

        This is either a module without a public name, or a namespace that we may supply once
        another thread has finished `import tensorflow`: `import tensorflow.contrib` does not
        wait for a parent module that is already in `sys.modules`.
        """
        if _record is not None and is_private(name):
            return _supply_private(_record, name)
        if _record is None or _record.tensorflow_is_there or "tensorflow" not in sys.modules:
            return None
        return awaiting_spec(name) if name.startswith("tensorflow.") else None


_installer = _Installer()


def _fill_all(record: Record) -> None:
    record.tensorflow_is_there = True
    # Their code has run, although in another thread their import may not be complete yet.
    for name, module in list(record.early.items()):
        fill(record, name, module)
    record.early.clear()
    for name, module in list(sys.modules.items()):
        # The hook will see modules that are still being imported.
        complete = name == "tensorflow" or _import_hook.is_loaded(name)
        if not complete or not isinstance(module, ModuleType) or not is_of_interest(name):
            continue
        if not is_lazy_loader(module):
            fill(record, name, module)


def _supply_private(record: Record, module_name: str) -> Optional[ModuleSpec]:
    """Creates a module that has no public name, and returns its spec."""
    parent_name, _, name = module_name.rpartition(".")
    module = SyntheticNamespace(module_name, module_name.partition(".")[2])
    record.register(module_name, module)
    # Python will set it as an attribute of its parent when its import completes.
    record.remember(sys.modules[parent_name], name)
    return module.__spec__
