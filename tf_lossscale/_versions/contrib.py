"""The classes of `tf.contrib.mixed_precision`, in TensorFlow 1.15, without importing `tf.contrib`.

Importing it takes seconds and logs warnings, and a program on the shim may not need it.
"""

import sys
from typing import Any, List

__all__ = ["CONTRIB_MODULES", "loaded_contrib_classes"]

CONTRIB_MODULES = tuple(
    f"{package}.contrib.mixed_precision.python.{module}"
    for package in ("tensorflow", "tensorflow_core")
    for module in ("loss_scale_manager", "loss_scale_optimizer")
)
"""The modules that define the classes, under both names of the package."""


def loaded_contrib_classes(name: str) -> List[Any]:
    """Returns the class of this name, if TensorFlow has loaded it; otherwise an empty list.

    After `install()` the modules can be ours, which load our classes when they are read.
    """
    loaded = [sys.modules[module] for module in CONTRIB_MODULES if module in sys.modules]
    found = [vars(module)[name] for module in loaded if name in vars(module)]
    return [cls for cls in found if not cls.__module__.startswith("tf_lossscale.")]
