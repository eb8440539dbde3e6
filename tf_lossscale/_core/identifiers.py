"""Conversion of the values that users may pass as a loss scale."""

from typing import Any

from tf_lossscale._core.loss_scales import DynamicLossScale, FixedLossScale, LossScale
from tf_lossscale._core.same_class import behaves_as
from tf_lossscale._versions.base import tf1
from tf_lossscale._versions.originals import original

__all__ = ["as_loss_scale", "is_fixed", "is_loss_scale", "is_standard"]


def is_loss_scale(value: Any) -> bool:
    """Returns whether `value` is a `LossScale`, ours or the installed TensorFlow's."""
    return isinstance(value, LossScale) or _is_installed(value, "LossScale")


def is_fixed(loss_scale: Any) -> bool:
    """Returns whether every step is applied: a `FixedLossScale`, ours or TensorFlow's.

    A subclass with its own `update` may skip steps, so it does not count.
    """
    for fixed in (FixedLossScale, _installed("FixedLossScale")):
        if fixed is not None and isinstance(loss_scale, fixed):
            return type(loss_scale).update in (fixed.update, FixedLossScale.update)
    return False


def is_standard(loss_scale: Any, name: str) -> bool:
    """Returns whether a loss scale is of one of the two classes, and does not override its methods.

    The Keras optimizers keep the state of such a loss scale themselves, and never call it.

    Args:
      loss_scale: a loss scale, ours or the installed TensorFlow's.
      name: `FixedLossScale` or `DynamicLossScale`.
    """
    ours = {"FixedLossScale": FixedLossScale, "DynamicLossScale": DynamicLossScale}[name]
    installed = _installed(name)
    cls = behaves_as(loss_scale)
    return any(
        known is not None
        and known in cls.__mro__
        and all(getattr(cls, each) is getattr(known, each) for each in ("__call__", "update"))
        for known in (ours, installed)
    )


def as_loss_scale(identifier: Any) -> Any:
    """Converts `identifier` to a loss scale.

    Args:
      identifier: a loss scale (returned unchanged), a Python int or float (fixed), the string
        `"dynamic"`, or None (returned unchanged).

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
    return original(tf1.train.experimental, name)
