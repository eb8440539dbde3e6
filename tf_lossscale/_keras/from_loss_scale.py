"""`from_loss_scale`: the final class for a legacy loss scale that is known at run time only."""

from typing import Any

from tf_lossscale._keras.arguments import experimental_loss_scale
from tf_lossscale._keras.final import LossScaleOptimizer

__all__ = ["from_loss_scale"]


def from_loss_scale(optimizer: Any, loss_scale: Any) -> Any:
    """Returns `optimizer` in a final `LossScaleOptimizer` that scales as `loss_scale` says.

    Args:
      optimizer: a Keras optimizer.
      loss_scale: `"dynamic"`, a number, a `FixedLossScale`, a `DynamicLossScale` whose multiplier
        is 2, or None, which scales nothing.

    Returns:
      The wrapped optimizer; `optimizer` itself for None.

    Raises:
      TypeError: `optimizer` cannot be wrapped.
      ValueError: `optimizer` is wrapped already; `loss_scale` is nothing of the above.
    """
    if loss_scale is None:
        return optimizer
    try:
        scale = experimental_loss_scale(loss_scale)
    except TypeError as error:
        raise ValueError(f"Invalid value passed to loss_scale. {error}") from error
    if isinstance(scale, float):
        return LossScaleOptimizer(optimizer, dynamic=False, initial_scale=scale)
    return LossScaleOptimizer(
        optimizer,
        initial_scale=scale.initial_loss_scale,
        dynamic_growth_steps=scale.increment_period,
    )
