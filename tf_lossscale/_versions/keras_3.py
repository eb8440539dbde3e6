"""How Keras 3 optimizers track variables, and sum the gradients of replicas."""

import contextlib
import importlib
from typing import Any, Iterator, Sequence

from tf_lossscale._versions.keras import KerasFamily
from tf_lossscale._versions.overridden_methods import overridden

__all__ = [
    "explain_missing_methods",
    "is_overwritten_with_gradient",
    "keras_3_backend",
    "keras_3_can_be_given_sums",
    "keras_3_does_not_track",
    "keras_3_is_given_sums",
    "keras_3_takes_sums",
]

_KERAS_3_BEFORE_THE_SUM = (
    "apply",
    "_all_reduce_sum_gradients",
    "_backend_apply_gradients",
    "_backend_update_step",
    "_clip_gradients",
)


_KERAS_3_OPTIONS = (
    "clipnorm",
    "clipvalue",
    "global_clipnorm",
    "gradient_accumulation_steps",
    "loss_scale_factor",
)


_KERAS_2_METHODS = ("get_scaled_loss", "get_unscaled_gradients", "loss_scale", "dynamic_counter")


def explain_missing_methods(cls: Any) -> None:
    """Makes the AttributeError of a Keras 2 method on Keras 3's own class say what to do.

    A program that has tested the optimizer's class calls these methods next. `hasattr` remains
    false.

    Args:
      cls: the class of an optimizer. Nothing is done if it has the methods.
    """
    if hasattr(cls, _KERAS_2_METHODS[0]) or hasattr(cls, "__getattr__"):
        return

    def __getattr__(self: Any, name: str) -> Any:
        message = f"{type(self).__name__!r} object has no attribute {name!r}"
        if name in _KERAS_2_METHODS:
            message += (
                ": it is Keras 3's own class. Wrap the optimizer in "
                "tf_lossscale.keras.mixed_precision.LossScaleOptimizer before compile(), or call "
                "tf_lossscale.install(replace=True) first, so that compile() does."
            )
        raise AttributeError(message)

    cls.__getattr__ = __getattr__


def keras_3_backend(family: KerasFamily) -> str:
    """Returns what Keras 3 calculates with: "tensorflow", "jax", "torch" and so on."""
    return str(family.keras.config.backend())


def keras_3_does_not_track() -> Any:
    """Returns a context in which Keras 3 objects do not track the variables set on them."""
    return importlib.import_module("keras.src.utils.tracking").DotNotTrackScope()


def keras_3_takes_sums(family: KerasFamily, optimizer: Any, variables: Sequence[Any]) -> bool:
    """Returns whether a Keras 3 optimizer does the same with gradients that are added up before.

    In `apply` it adds those of the replicas up last: it has accumulated and clipped each replica's
    own by then, and put gradients in the place of variables that ask for that.

    Args:
      family: the optimizer's.
      optimizer: the optimizer.
      variables: those that the gradients are for.
    """
    return (
        keras_3_can_be_given_sums(family, optimizer)
        and all(getattr(optimizer, name, None) is None for name in _KERAS_3_OPTIONS)
        and not any(is_overwritten_with_gradient(each) for each in variables)
    )


def is_overwritten_with_gradient(variable: Any) -> bool:
    """Returns whether a Keras 3 optimizer assigns the gradient to the variable, unscaled.

    Args:
      variable: a Keras variable or a TensorFlow variable.
    """
    return bool(getattr(variable, "overwrite_with_gradient", False))


def keras_3_can_be_given_sums(family: KerasFamily, optimizer: Any) -> bool:
    """Returns whether `keras_3_is_given_sums` does what it says: no class overrides these steps.

    Args:
      family: the optimizer's.
      optimizer: the optimizer.
    """
    return all(
        hasattr(family.base, name) and getattr(type(optimizer), name) is getattr(family.base, name)
        for name in _KERAS_3_BEFORE_THE_SUM
    )


@contextlib.contextmanager
def keras_3_is_given_sums(optimizer: Any) -> Iterator[None]:
    """Keeps a Keras 3 optimizer from adding the gradients of the replicas up, within the block.

    It has no argument for that.
    """
    with overridden([optimizer], "_all_reduce_sum_gradients", lambda _: list):
        yield
