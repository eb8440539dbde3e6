"""Which classes are loss-scale optimizers already: ours, TensorFlow's, and those of every Keras."""

from typing import Any

from tf_lossscale._versions.base import tf1

__all__ = ["loss_scale_class"]

_KERAS_AND_CONTRIB = ("LossScaleOptimizer", "BaseLossScaleOptimizer")
_PACKAGES = frozenset({"tf_lossscale", "tensorflow", "tensorflow_core", "keras", "tf_keras"})


def loss_scale_class(optimizer: Any) -> str:
    """Returns the name of the loss-scale class that `optimizer` is an instance of, or ''.

    The classes are known by name and package, because looking them up would import a Keras. A
    user's own class that merely has such a name is an optimizer like any other.

    Args:
      optimizer: any object.

    Returns:
      `LossScaleOptimizer`, `MixedPrecisionLossScaleOptimizer`, or the empty string.
    """
    for base in type(optimizer).__mro__:
        name = base.__name__
        if name == "MixedPrecisionLossScaleOptimizer" and isinstance(
            optimizer, tf1.train.Optimizer
        ):
            return name
        if name.startswith(_KERAS_AND_CONTRIB) and base.__module__.split(".")[0] in _PACKAGES:
            return "LossScaleOptimizer"
    return ""
