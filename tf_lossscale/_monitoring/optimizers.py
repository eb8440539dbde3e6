"""What the monitor has to know of each of our loss-scale optimizers."""

from typing import Any

from tf_lossscale._contrib.managers import ExponentialUpdateLossScaleManager
from tf_lossscale._contrib.optimizer import LossScaleOptimizer
from tf_lossscale._core.loss_scales import DynamicLossScale, is_fixed
from tf_lossscale._core.same_class import is_our, loss_scale_class
from tf_lossscale._keras.wrapper import LossScaleWrapper
from tf_lossscale._v1.optimizer import MixedPrecisionLossScaleOptimizer
from tf_lossscale._versions.base import tf

__all__ = ["check", "current_scale", "has_minimum", "name_of"]


def check(optimizer: Any) -> None:
    """Checks that an optimizer is one of ours, which can skip a step.

    Raises:
      TypeError: it is not one of our loss-scale optimizers.
      ValueError: its loss scale never skips a step.
    """
    ours = (LossScaleOptimizer, MixedPrecisionLossScaleOptimizer, LossScaleWrapper)
    if not any(is_our(cls, optimizer) for cls in ours):
        raise TypeError(_refusal(optimizer))
    if isinstance(optimizer, LossScaleOptimizer):
        return
    if isinstance(optimizer, LossScaleWrapper):
        fixed = not optimizer.dynamic
    else:
        fixed = is_fixed(optimizer._loss_scale)
    if fixed:
        raise ValueError(
            f"A {type(optimizer).__name__} with a fixed loss scale applies every step, so there "
            "are no skipped steps to count. Use a dynamic loss scale, or test the gradients of a "
            "step with tf_lossscale.monitoring.find_nonfinite(grads_and_vars)."
        )


def _refusal(optimizer: Any) -> str:
    cls = type(optimizer)
    name = f"{cls.__module__}.{cls.__name__}"
    if loss_scale_class(optimizer):
        return (
            f"Monitor counts the steps of tf_lossscale's optimizers, but {name} is TensorFlow's or "
            "Keras's own class. Create the optimizer under the same path of tf_lossscale (such as "
            "tfls.keras.mixed_precision.LossScaleOptimizer), or run the program with "
            "`tf-lossscale run --replace`."
        )
    return (
        f"Monitor takes a loss-scale optimizer of tf_lossscale, but got: {name}. Pass the "
        "optimizer that scales the loss: for a Keras model that was compiled under mixed_float16, "
        "model.optimizer; for a wrapper around a loss-scale optimizer, the latter."
    )


def current_scale(optimizer: Any) -> Any:
    """Returns the loss scale: a float32 tensor of shape `[]`."""
    if isinstance(optimizer, LossScaleWrapper):
        scale = optimizer.loss_scale
    else:
        scale = optimizer._current_loss_scale()
    return tf.convert_to_tensor(scale)


def name_of(optimizer: Any) -> str:
    """Returns the name of the inner optimizer; in Keras 3, that of ours is always the same."""
    if isinstance(optimizer, LossScaleWrapper):
        inner = optimizer.inner_optimizer
        return str(getattr(inner, "name", None) or inner._name)
    try:
        return str(optimizer.get_name())
    except AttributeError:  # an inner optimizer that is not TensorFlow's
        return type(optimizer).__name__


def has_minimum(optimizer: Any) -> bool:
    """Returns whether the loss scale shrinks down to 1 and not below."""
    if isinstance(optimizer, LossScaleWrapper):
        return bool(optimizer.dynamic)
    if isinstance(optimizer, LossScaleOptimizer):
        return isinstance(optimizer._loss_scale_manager, ExponentialUpdateLossScaleManager)
    return isinstance(optimizer._loss_scale, DynamicLossScale)
