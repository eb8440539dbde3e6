"""Where TensorFlow and Keras have the symbols that `install()` may replace, and their originals.

This module does not import TensorFlow, because `install()` runs before TensorFlow is imported.
"""

import sys
from types import ModuleType
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from tf_lossscale._types import Class

TENSORFLOW_ROOTS = (
    "tensorflow",
    "tensorflow_core",
)  # in TensorFlow 1.15, both are names of the package

API_ROOTS: Tuple[Tuple[str, str], ...] = (
    ("tensorflow._api.v1", ""),
    ("tensorflow._api.v2", ""),
    ("tensorflow_core._api.v1", ""),
    ("tensorflow.python.keras.api._v1.keras", "keras"),
    ("tensorflow.python.keras.api._v2.keras", "keras"),
    ("keras._tf_keras.keras", "keras"),
    ("keras.api._v1.keras", "keras"),
    ("keras.api._v2.keras", "keras"),
    ("keras.api.mixed_precision", "keras.mixed_precision"),  # of Keras 3.3 to 3.9; 2 has none
    ("tf_keras.api._v1.keras", "keras"),
    ("tf_keras.api._v2.keras", "keras"),
    ("tf_keras", "keras"),
    ("keras", "keras"),  # `tf.compat.v2.keras` is Keras 3 itself
    ("tensorflow_core", ""),
    ("tensorflow", ""),
)
"""The top module of each API tree, in all versions, and the namespace that it is."""


def attribute_dicts(module: ModuleType) -> List[Dict[str, object]]:
    """Returns the dictionaries that contain the attributes of an API module.

    TensorFlow 1.15 to 2.8 put some API modules behind a wrapper, which caches attributes. Deleting
    an attribute of the wrapper does not remove it from the cache.
    """
    dicts = [vars(module)]
    cache = dicts[0].get("_tfmw_attr_map")
    if isinstance(cache, dict):
        dicts.append(cache)
    wrapped = dicts[0].get("_tfmw_wrapped_module")
    return dicts if wrapped is None else dicts + attribute_dicts(wrapped)


def is_wrapper(module: ModuleType) -> bool:
    """Returns whether TensorFlow has put this API module behind a wrapper.

    What is set in one of these also becomes a name of its `__all__`.
    """
    return "_tfmw_wrapped_module" in vars(module)


def keeps_what_is_read(module: ModuleType) -> bool:
    """Returns whether nothing can remove an attribute of an API module once it has been read.

    The wrapper that TensorFlow has from 2.5 on has a cache in native code, which can be overwritten
    but not emptied. It caches what is in the module, and nothing that `__getattr__` returns.
    """
    return hasattr(type(module), "_fastdict_insert")


def is_lazy_loader(module: ModuleType) -> bool:
    """Returns whether this is a placeholder for a module, which reading an attribute loads."""
    return type(module).__name__.endswith("LazyLoader")


replaced: List[Tuple[Any, str, Any]] = []
"""Owner, name and original value of each attribute that `install()` has replaced, oldest first."""


def original(namespace: ModuleType, name: str) -> Optional[Class]:
    """Returns TensorFlow's own attribute, even if `install()` replaced it; None if it is missing.

    The namespace is an API module, the wrapper of one, or None.
    """
    if namespace is None or type(namespace).__module__.startswith("tf_lossscale."):
        return None  # there is no such namespace, or `install()` has supplied it
    # Look here first: reading the attribute may import our class, whose module may be the caller.
    # A module and its wrapper count as one owner: they share dictionaries.
    own = set(map(id, attribute_dicts(namespace)))
    for owner, attribute, value in replaced:
        if attribute == name and own & set(map(id, attribute_dicts(owner))):
            return value
    return getattr(namespace, name, None)


# TensorFlow 1.15 has `tf.contrib`. It is looked up here and never imported: an import takes seconds
# and logs warnings, and a program on the shim may not need it.
CONTRIB_MODULES = tuple(
    f"{root}.contrib.mixed_precision.python.{module}"
    for root in TENSORFLOW_ROOTS
    for module in ("loss_scale_manager", "loss_scale_optimizer")
)
"""The modules that define the classes."""


def loaded_contrib_class(name: str) -> Optional[Class]:
    """Returns the class of this name; None if `tf.contrib` is not loaded.

    After `install()` the modules can be modules of the shim. Reading their attributes would load
    our classes.
    """
    loaded = [vars(sys.modules[module]) for module in CONTRIB_MODULES if module in sys.modules]
    found = (names[name] for names in loaded if name in names)
    return next((cls for cls in found if not cls.__module__.startswith("tf_lossscale.")), None)


class Recorded(NamedTuple):
    """A class whose steps can be recorded."""

    name: str
    loss_method: str  # its first argument is the unscaled loss
    is_keras_3: bool = False  # its method takes scaled gradients and variables, not pairs

    @property
    def unscales(self) -> bool:
        """Whether it has a method that unscales the gradients of its caller."""
        return self.loss_method == "get_scaled_loss"

    @property
    def step_method(self) -> str:
        """The method that makes a step, here and in the inner optimizer."""
        return "apply" if self.is_keras_3 else "apply_gradients"


_CONTRIB = (Recorded("LossScaleOptimizer", "compute_gradients"),)
_V1 = (Recorded("MixedPrecisionLossScaleOptimizer", "compute_gradients"),)
_KERAS_2 = (
    Recorded("LossScaleOptimizer", "get_scaled_loss"),
    Recorded("LossScaleOptimizerV3", "get_scaled_loss"),
)
_KERAS_3 = (Recorded("LossScaleOptimizer", "scale_loss", is_keras_3=True),)

RECORDED_CLASSES: Dict[str, Tuple[Recorded, ...]] = {
    "tensorflow.contrib.mixed_precision.python.loss_scale_optimizer": _CONTRIB,
    "tensorflow_core.contrib.mixed_precision.python.loss_scale_optimizer": _CONTRIB,
    "tensorflow.python.training.experimental.loss_scale_optimizer": _V1,
    "tensorflow_core.python.training.experimental.loss_scale_optimizer": _V1,
    "tensorflow_core.python.keras.mixed_precision.experimental.loss_scale_optimizer": _KERAS_2,
    "tensorflow.python.keras.mixed_precision.experimental.loss_scale_optimizer": _KERAS_2,
    "tensorflow.python.keras.mixed_precision.loss_scale_optimizer": _KERAS_2,
    "keras.mixed_precision.loss_scale_optimizer": _KERAS_2,
    "keras.src.mixed_precision.loss_scale_optimizer": _KERAS_2,
    "tf_keras.src.mixed_precision.loss_scale_optimizer": _KERAS_2,
    "keras.src.optimizers.loss_scale_optimizer": _KERAS_3,
}
"""By module name, for all versions. Our own classes report their steps themselves."""
