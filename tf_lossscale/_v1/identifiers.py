"""What users may write where a loss scale is asked for."""

from typing import Any

from tf_lossscale._v1.loss_scales import DynamicLossScale, FixedLossScale, LossScale
from tf_lossscale._versions import tf

__all__ = ["as_loss_scale", "is_fixed", "is_loss_scale"]


def is_loss_scale(value: Any) -> bool:
    """Returns whether `value` is a loss scale, ours or that of the installed TensorFlow."""
    return isinstance(value, LossScale) or _is_installed(value, "LossScale")


def is_fixed(loss_scale: Any) -> bool:
    """Returns whether every step is applied: it is a `FixedLossScale`, ours or the installed one.

    A subclass with an `update` of its own may have another opinion, and is asked.
    """
    for fixed in (FixedLossScale, _installed("FixedLossScale")):
        if fixed is not None and isinstance(loss_scale, fixed):
            return type(loss_scale).update in (fixed.update, FixedLossScale.update)
    return False


def as_loss_scale(identifier: Any) -> Any:
    """Returns the loss scale that `identifier` names.

    Args:
      identifier: a loss scale (returned as it is), a Python int or float (fixed), the string
        `"dynamic"`, or None (returned as it is).

    Raises:
      ValueError: it is anything else, or a number below 1.
    """
    if identifier is None or is_loss_scale(identifier):
        return identifier
    if isinstance(identifier, (int, float)):
        return FixedLossScale(identifier)
    if isinstance(identifier, str) and identifier == "dynamic":
        return DynamicLossScale()
    raise ValueError(
        f"Could not interpret loss scale identifier: {identifier}. It must be 'dynamic', a Python "
        "int or float, or a LossScale."
    )


def _is_installed(value: Any, name: str) -> bool:
    original = _installed(name)
    return original is not None and isinstance(value, original)


def _installed(name: str) -> Any:
    return getattr(tf.compat.v1.train.experimental, name, None)
