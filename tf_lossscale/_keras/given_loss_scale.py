"""The loss scale that holds the state of an experimental optimizer."""

import weakref
from typing import Any, Dict

from tf_lossscale._v1.identifiers import behaves_as
from tf_lossscale._v1.loss_scales import DynamicLossScale, FixedLossScale
from tf_lossscale._versions.base import do_not_convert, tf, tf1

__all__ = ["fixed_loss_scale", "given_away", "own_loss_scale"]

_MESSAGE = (
    "A DynamicLossScale was read, or given to another optimizer, after it was given to a Keras "
    "optimizer. Each of these optimizers has a loss scale of its own, as since TensorFlow 2.4; up "
    "to 2.3 they shared it, so a program from 2.3 can have other numbers. To silence this, read "
    "`optimizer.loss_scale`, and give each optimizer a DynamicLossScale of its own."
)
_given: "weakref.WeakSet[Any]" = weakref.WeakSet()
_warning_classes: Dict[Any, Any] = {}
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
    cls = type(loss_scale)
    if cls not in _warning_classes:
        _warning_classes[cls] = _warning_class(cls, behaves_as(loss_scale))
    loss_scale.__class__ = _warning_classes[cls]


def _warning_class(cls: Any, behaves_as: Any) -> Any:
    """Returns a subclass of `cls` whose instances warn when they are called."""

    def __call__(self: Any) -> Any:
        if self in _given:  # not so if the program made another instance of the class
            _warn(self)
        return cls.__call__(self)

    def __reduce_ex__(self: Any, protocol: Any) -> Any:
        _, _, *state = cls.__reduce_ex__(self, protocol)
        return (cls.__new__, (cls,), *state)  # a copy has not been given away

    body = {
        "__call__": do_not_convert(__call__),
        "__doc__": cls.__doc__,
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "__reduce_ex__": __reduce_ex__,
        "_behaves_as": behaves_as,
    }
    return type(cls)(cls.__name__, (cls,), body)


def _warn(loss_scale: Any) -> None:
    if loss_scale not in _warned:
        _warned.add(loss_scale)
        tf1.logging.warning(_MESSAGE)
