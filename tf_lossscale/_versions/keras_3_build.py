"""When Keras 3's loss-scale optimizers get their variables."""

import sys
from typing import Any, Sequence

from tf_lossscale._versions.base import tf

__all__ = ["build_as_apply_does", "calculates_with_tensorflow"]


def build_as_apply_does(optimizer: Any, variables: Sequence[Any]) -> None:
    """Builds an optimizer that is not built yet, as its own `apply` would at its beginning.

    Args:
      optimizer: a loss-scale optimizer of Keras 3, or ours.
      variables: the variables that it will change.
    """
    if optimizer.built or not variables:
        return
    if type(optimizer).__module__.startswith("tf_lossscale.") or hasattr(optimizer, "_state"):
        with tf.init_scope():
            optimizer.build(variables)
        return
    backend = sys.modules["keras.src.backend"]
    with backend.name_scope(optimizer.name, caller=optimizer):
        optimizer.build(variables)
    optimizer.built = True


def calculates_with_tensorflow() -> bool:
    """Returns whether the backend of the loaded Keras 3 is TensorFlow."""
    return bool(sys.modules["keras"].config.backend() == "tensorflow")
