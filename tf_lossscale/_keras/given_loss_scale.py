"""The loss scale that holds the state of an experimental optimizer."""

import weakref
from typing import Any

from tf_lossscale._core.loss_scales import DynamicLossScale, FixedLossScale
from tf_lossscale._core.same_class import behaves_as, change_class
from tf_lossscale._versions.base import do_not_convert, tf, tf1

__all__ = ["fixed_loss_scale", "given_away", "own_loss_scale"]

_MESSAGE = (
    "A DynamicLossScale was read, or given to another optimizer, after it was given to a Keras "
    "optimizer. Each of these optimizers has a loss scale of its own, as since TensorFlow 2.4; up "
    "to 2.3 they shared it, so a program from 2.3 can have other numbers. To silence this, read "
    "`optimizer.loss_scale`, and give each optimizer a DynamicLossScale of its own."
)
_given: "weakref.WeakSet[Any]" = weakref.WeakSet()
_warned: "weakref.WeakSet[Any]" = weakref.WeakSet()


def own_loss_scale(loss_scale: Any) -> DynamicLossScale:
    """Returns a new `DynamicLossScale` for one optimizer, with the settings of `loss_scale`.

    It begins at the initial scale, as with the originals from TensorFlow 2.4 on.

    Args:
      loss_scale: a `DynamicLossScale`, ours or the installed TensorFlow's.
    """
    with tf.init_scope():  # an optimizer may be made while a function is traced
        return DynamicLossScale(
            loss_scale.initial_loss_scale, loss_scale.increment_period, loss_scale.multiplier
        )


def fixed_loss_scale(scale: float) -> FixedLossScale:
    """Returns a `FixedLossScale`, also below 1, which the Keras optimizers accept from 2.4 on."""
    loss_scale = FixedLossScale(max(scale, 1.0))
    loss_scale._loss_scale_value = scale
    return loss_scale


def given_away(loss_scale: Any) -> None:
    """Notes that an optimizer took its settings from `loss_scale`, whose state it does not use.

    A warning is logged once if `loss_scale` is given to another optimizer, or is read.

    Args:
      loss_scale: a `DynamicLossScale`, ours or the installed TensorFlow's.
    """
    if loss_scale in _given:
        _warn(loss_scale)
        return
    _given.add(loss_scale)
    change_class(loss_scale, _WarnsWhenRead, overrides=True)


class _WarnsWhenRead:
    """The method that reads a loss scale, with a warning."""

    @do_not_convert
    def __call__(self) -> Any:
        if self in _given:  # not so if the program made another instance of the class
            _warn(self)
        return super().__call__()  # type: ignore[misc]  # the class of the loss scale defines it

    def __reduce_ex__(self, protocol: Any) -> Any:
        cls = behaves_as(self)
        reduced: Any = super().__reduce_ex__(protocol)
        _, _, *state = reduced
        return (cls.__new__, (cls,), *state)  # a copy has not been given away


def _warn(loss_scale: Any) -> None:
    if loss_scale not in _warned:
        _warned.add(loss_scale)
        tf1.logging.warning(_MESSAGE)
