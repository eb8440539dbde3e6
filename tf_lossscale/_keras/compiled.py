"""What `compile` needs to know to wrap an optimizer in our class."""

from typing import Any, Optional

from tf_lossscale._keras.arguments import unmark_wrapped
from tf_lossscale._keras.policy import experimental_policy_of
from tf_lossscale._versions.keras import WRAPPERS_ARE_MARKED, keras_family, policy_of_layer
from tf_lossscale._versions.keras_3 import keras_3_backend

__all__ = ["experimental_policy", "forget_earlier_wrapper", "takes"]


def takes(optimizer: Any) -> bool:
    """Returns whether our class wraps this optimizer.

    Args:
      optimizer: of Keras, or a `tf.compat.v1.train.Optimizer` that Keras has wrapped in a class of
        its own; on Keras 3, one whose variables may be those of another backend.
    """
    family = keras_family(optimizer)
    if family is None:
        return False
    return family.kind != "keras3" or keras_3_backend(family) == "tensorflow"


def forget_earlier_wrapper(optimizer: Any) -> None:
    """Lets a second `compile` wrap the same optimizer anew where Keras's own class does.

    Args:
      optimizer: what `compile` was given.
    """
    family = keras_family(optimizer)
    if family is not None and (family.kind == "keras3" or not WRAPPERS_ARE_MARKED):
        unmark_wrapped(optimizer)


def experimental_policy(model: Any) -> Optional[Any]:
    """Returns the experimental policy of ours that a model was made under, or None.

    Args:
      model: the model whose `compile` is running, or None.
    """
    return experimental_policy_of(policy_of_layer(model))
