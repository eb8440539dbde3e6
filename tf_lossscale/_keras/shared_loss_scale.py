"""Says so where optimizers that are made with one `DynamicLossScale` do not share its state."""

import weakref
from typing import Any

from tf_lossscale._versions.base import tf1

__all__ = ["warn_if_shared"]

_MESSAGE = (
    "Several optimizers were made with one DynamicLossScale. Each has a loss scale of its own, as "
    "since TensorFlow 2.4; up to 2.3 the experimental optimizers shared it, so a program from 2.3 "
    "can have other numbers. To silence this, give each optimizer a DynamicLossScale of its own."
)
_given: "weakref.WeakSet[Any]" = weakref.WeakSet()
_warned: "weakref.WeakSet[Any]" = weakref.WeakSet()


def warn_if_shared(loss_scale: Any) -> None:
    """Logs a warning, once for each loss scale, if an earlier optimizer was given it, too.

    Args:
      loss_scale: a `DynamicLossScale` whose state the optimizer does not use.
    """
    if loss_scale in _given and loss_scale not in _warned:
        tf1.logging.warning(_MESSAGE)
        _warned.add(loss_scale)
    _given.add(loss_scale)
