"""`from_loss_scale`: the final class for a legacy loss scale that is known at run time only."""

from typing import Any

from tf_lossscale._keras.arguments import experimental_loss_scale
from tf_lossscale._keras.experimental import LossScaleOptimizer as ExperimentalLossScaleOptimizer
from tf_lossscale._keras.final import LossScaleOptimizer
from tf_lossscale._versions.keras import keras_family

__all__ = ["from_loss_scale", "of_graph_rewrite"]


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
    return _scaled_by(optimizer, scale)


def of_graph_rewrite(optimizer: Any, loss_scale: Any) -> Any:
    """Returns `optimizer` in the class that the graph rewrite wraps Keras optimizers in.

    Args:
      optimizer: a Keras optimizer.
      loss_scale: what the experimental class takes.

    Returns:
      The experimental class where the installed Keras has one, as up to TensorFlow 2.8; the final
      one later.

    Raises:
      TypeError: `optimizer` cannot be wrapped; `loss_scale` is of a class of the user's.
      ValueError: `optimizer` is wrapped already; `loss_scale` is no loss scale.
    """
    family = keras_family(optimizer)
    if family is not None and family.installed_experimental is not None:
        return ExperimentalLossScaleOptimizer(optimizer, loss_scale)
    return _scaled_by(optimizer, experimental_loss_scale(loss_scale))


def _scaled_by(optimizer: Any, scale: Any) -> Any:
    if isinstance(scale, float):
        return LossScaleOptimizer(optimizer, dynamic=False, initial_scale=scale)
    return LossScaleOptimizer(
        optimizer,
        initial_scale=scale.initial_loss_scale,
        dynamic_growth_steps=scale.increment_period,
    )
