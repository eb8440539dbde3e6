"""How Keras 3 optimizers add up the gradients of replicas."""

import contextlib
from typing import Any, Iterator, Sequence

from tf_lossscale._versions.keras import KerasFamily
from tf_lossscale._versions.overridden_methods import overridden

__all__ = [
    "keras_3_backend",
    "keras_3_can_be_given_sums",
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


def keras_3_backend(family: KerasFamily) -> str:
    """Returns what Keras 3 calculates with: "tensorflow", "jax", "torch" and so on."""
    return str(family.keras.config.backend())


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
        and not any(getattr(each, "overwrite_with_gradient", False) for each in variables)
    )


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
