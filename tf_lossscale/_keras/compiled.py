"""Helpers for `compile`, which may wrap an optimizer in our class."""

from typing import Any, Optional

from tf_lossscale._keras.arguments import unmark_wrapped
from tf_lossscale._keras.policy import experimental_policy_of
from tf_lossscale._versions.keras import WRAPPERS_ARE_MARKED, keras_family, policy_of_layer
from tf_lossscale._versions.keras_optimizers import keras_3_backend

__all__ = ["experimental_policy", "forget_earlier_wrapper", "takes"]


def takes(optimizer: Any) -> bool:
    """Returns whether our class can wrap this optimizer.

    Args:
      optimizer: a Keras optimizer, possibly on a Keras 3 backend other than TensorFlow; or the
        class in which Keras wraps a `tf.compat.v1.train.Optimizer`.
    """
    family = keras_family(optimizer)
    if family is None:
        return False
    return family.kind != "keras3" or keras_3_backend(family) == "tensorflow"


def forget_earlier_wrapper(optimizer: Any) -> None:
    """Allows a second `compile` to wrap the same optimizer again where Keras's own class does.

    Args:
      optimizer: the optimizer that was passed to `compile`.
    """
    family = keras_family(optimizer)
    if family is not None and (family.kind == "keras3" or not WRAPPERS_ARE_MARKED):
        unmark_wrapped(optimizer)


def experimental_policy(model: Any) -> Optional[Any]:
    """Returns the experimental policy (of our class) that a model was made under, or None.

    Args:
      model: the model whose `compile` is running, or None.
    """
    return experimental_policy_of(policy_of_layer(model))
