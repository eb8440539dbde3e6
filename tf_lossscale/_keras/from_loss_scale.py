"""`from_loss_scale`: makes the final class from a legacy loss scale only known at run time."""

from typing import Any

from tf_lossscale._keras.arguments import as_final_arguments, experimental_loss_scale
from tf_lossscale._keras.experimental import LossScaleOptimizer as ExperimentalLossScaleOptimizer
from tf_lossscale._keras.final import LossScaleOptimizer
from tf_lossscale._keras.given_loss_scale import given_away
from tf_lossscale._versions.keras import keras_family

__all__ = ["from_loss_scale", "of_graph_rewrite"]


def from_loss_scale(optimizer: Any, loss_scale: Any) -> Any:
    """Wraps `optimizer` in the final `LossScaleOptimizer`, with the scaling that `loss_scale` sets.

    Args:
      optimizer: a Keras optimizer.
      loss_scale: `"dynamic"`, a number, or a `LossScale`.

    Returns:
      The wrapped optimizer. It is of the experimental class, which is a subclass of the final one,
      for a `DynamicLossScale` whose multiplier is not 2, and for a `LossScale` of your own class.

    Raises:
      TypeError: `optimizer` cannot be wrapped.
      ValueError: `optimizer` is already wrapped, or `loss_scale` is None or any other value.
    """
    scale = experimental_loss_scale(loss_scale)
    arguments = as_final_arguments(scale)
    if arguments is None:
        return ExperimentalLossScaleOptimizer(optimizer, scale)
    if arguments.get("dynamic", True):
        given_away(scale)
    return LossScaleOptimizer(optimizer, **arguments)


def of_graph_rewrite(optimizer: Any, loss_scale: Any) -> Any:
    """Wraps `optimizer` in the class that the graph rewrite uses for Keras optimizers.

    Args:
      optimizer: a Keras optimizer.
      loss_scale: a loss scale that the experimental class accepts.

    Returns:
      An instance of the experimental class if the installed Keras has one (up to TensorFlow 2.8),
      otherwise what `from_loss_scale` returns.

    Raises:
      TypeError: `optimizer` cannot be wrapped.
      ValueError: `optimizer` is already wrapped, or `loss_scale` is not a loss scale.
    """
    family = keras_family(optimizer)
    if family is not None and family.installed_experimental is not None:
        return ExperimentalLossScaleOptimizer(optimizer, loss_scale)
    return from_loss_scale(optimizer, loss_scale)
