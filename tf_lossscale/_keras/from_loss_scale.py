"""`from_loss_scale`: makes the final class from a legacy loss scale only known at run time."""

from typing import Any

from tf_lossscale._keras.arguments import experimental_loss_scale
from tf_lossscale._keras.experimental import LossScaleOptimizer as ExperimentalLossScaleOptimizer
from tf_lossscale._keras.final import LossScaleOptimizer
from tf_lossscale._keras.given_loss_scale import given_away
from tf_lossscale._versions.keras import keras_family

__all__ = ["from_loss_scale", "of_graph_rewrite"]


def from_loss_scale(optimizer: Any, loss_scale: Any) -> Any:
    """Wraps `optimizer` in the final `LossScaleOptimizer`, with the scaling that `loss_scale` sets.

    Args:
      optimizer: a Keras optimizer.
      loss_scale: `"dynamic"`, a number, a `FixedLossScale`, or a `DynamicLossScale` whose
        multiplier is 2.

    Returns:
      The wrapped optimizer.

    Raises:
      TypeError: `optimizer` cannot be wrapped.
      ValueError: `optimizer` is already wrapped, or `loss_scale` is None or any other value.
    """
    try:
        scale = experimental_loss_scale(loss_scale)
    except TypeError as error:
        raise ValueError(f"Invalid value passed to loss_scale. {error}") from error
    return _scaled_by(optimizer, scale)


def of_graph_rewrite(optimizer: Any, loss_scale: Any) -> Any:
    """Wraps `optimizer` in the class that the graph rewrite uses for Keras optimizers.

    Args:
      optimizer: a Keras optimizer.
      loss_scale: a loss scale that the experimental class accepts.

    Returns:
      An instance of the experimental class if the installed Keras has one (up to TensorFlow 2.8),
      otherwise of the final class.

    Raises:
      TypeError: `optimizer` cannot be wrapped, or `loss_scale` is of a user-defined class.
      ValueError: `optimizer` is already wrapped, or `loss_scale` is not a loss scale.
    """
    family = keras_family(optimizer)
    if family is not None and family.installed_experimental is not None:
        return ExperimentalLossScaleOptimizer(optimizer, loss_scale)
    return _scaled_by(optimizer, experimental_loss_scale(loss_scale))


def _scaled_by(optimizer: Any, scale: Any) -> Any:
    if isinstance(scale, float):
        return LossScaleOptimizer(optimizer, dynamic=False, initial_scale=scale)
    given_away(scale)
    return LossScaleOptimizer(
        optimizer,
        initial_scale=scale.initial_loss_scale,
        dynamic_growth_steps=scale.increment_period,
    )
