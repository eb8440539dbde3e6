"""`tf.keras.mixed_precision.experimental.LossScaleOptimizer` of TensorFlow 2.8, on every Keras.

What becomes of a `LossScale` object that is given to it depends on the TensorFlow, as with the
originals. Up to 2.3 the object itself is the scale: `optimizer.loss_scale` returns it, and code for
later versions reads it as a tensor. From 2.4 on the optimizer has a scale of its own, and the
object warns when it is read. There `optimizer.loss_scale` is a tensor, and code for 2.3 calls it.
"""

import functools
import weakref
from typing import TYPE_CHECKING, Any, Callable, Union, cast

from tf_lossscale._core.loss_scales import DynamicLossScale, FixedLossScale, is_standard
from tf_lossscale._core.minimum import minimum_of
from tf_lossscale._core.same_class import behaves_as, change_class
from tf_lossscale._keras import final
from tf_lossscale._keras.arguments import as_final_arguments, check_inner, experimental_loss_scale
from tf_lossscale._keras.readable_scale import read_as_tensor, readable
from tf_lossscale._types import (
    DynamicLossScaleObject,
    LossScaleArgument,
    LossScaleObject,
    Optimizer,
    Tensor,
)
from tf_lossscale._versions.base import do_not_convert, has, tf, tf1
from tf_lossscale._versions.keras import KerasKind
from tf_lossscale._versions.releases import Since

if TYPE_CHECKING:
    from tf_lossscale._keras.final import LossScaleOptimizer as _Base
else:
    _Base = final.with_installed_experimental(final.LossScaleOptimizer)


class _Settable:
    """A property, except on instances that set an attribute of the same name."""

    def __init__(self, read: Any) -> None:
        self._read = read
        self.__doc__ = read.__doc__

    def __get__(self, optimizer: Optimizer, owner: Any = None) -> Any:
        return self._read.__get__(optimizer, owner)


def _takes_opt(init: Callable[..., None]) -> Callable[..., None]:
    """Accepts `opt`, which TensorFlow 1.15 calls the first argument of the constructor, as well."""

    @functools.wraps(init)
    def with_opt(self: Any, *args: object, **kwargs: object) -> None:
        if "opt" in kwargs and "optimizer" not in kwargs:
            kwargs["optimizer"] = kwargs.pop("opt")
        init(self, *args, **kwargs)

    return with_opt


@final.serialized_like_the_installed
class LossScaleOptimizer(_Base):
    """The loss-scale optimizer of TensorFlow 1.14 to 2.8, which takes a loss scale, on every Keras.

    Stands for `tf.keras.mixed_precision.experimental.LossScaleOptimizer`, TensorFlow 2.8.

    It is the final class with the constructor of TensorFlow 2.8. The loss is multiplied by the
    scale, and the gradients are divided by it. A dynamic scale skips steps with non-finite
    gradients.
    The `loss_scale` property is a tensor, which returns the current scale if it is called. Up to
    TensorFlow 2.3 it is the `LossScale` that was passed, which also converts to a tensor.

    State: as in the final class. If a `DynamicLossScale` is passed, the scale begins at its
    `initial_loss_scale`, and the object itself does not change. Up to TensorFlow 2.3 its variables
    are the scale and the counter of every optimizer that is made with it. A `LossScale` of your own
    class is used itself, on every version. On each replica, its `update()` gets the gradients of
    that replica, and decides whether they are applied.

    Examples:
      >>> import tensorflow as tf
      >>> import tf_lossscale as tfls
      >>> weight = tf.Variable(1.0)
      >>> optimizer = tfls.keras.mixed_precision.experimental.LossScaleOptimizer(
      ...     tf.keras.optimizers.SGD(0.5), "dynamic")
      >>> step = optimizer.minimize(lambda: weight * 1.0, [weight])
      >>> float(weight.numpy()), float(optimizer.loss_scale), float(optimizer.loss_scale())
      (0.5, 32768.0, 32768.0)

    Args:
      optimizer: a Keras optimizer, which must not be a loss-scale optimizer or already be wrapped
        in one. It can also be passed as `opt`, its name in TensorFlow 1.15.
      loss_scale: `"dynamic"`, a number, or a `LossScale`.

    Raises:
      TypeError: `optimizer` is not a Keras optimizer, or is a LossScaleOptimizer.
      ValueError: `optimizer` is already wrapped; or `loss_scale` is None or any other value.
    """

    role = "experimental"

    if has(Since.EXPERIMENTAL_HAS_OWN_LOSS_SCALE):

        @property
        def loss_scale(self) -> Tensor:
            """The current loss scale: a float32 tensor of shape `[]`, which can also be called."""
            return readable(self._state)

    else:

        @property
        def loss_scale(self) -> Tensor:
            """The `LossScale` that was passed, which also converts to a tensor of its value."""
            return self._state.loss_scale

        _loss_scale = loss_scale

        # TensorFlow's class has no such properties, so a subclass may set its own attributes.
        dynamic: Any = _Settable(_Base.dynamic)
        """Whether the loss scale is dynamic."""
        initial_scale: Any = _Settable(_Base.initial_scale)
        """The scale of the first step, or the fixed scale."""

    @_takes_opt
    def __init__(self, optimizer: Optimizer, loss_scale: LossScaleArgument) -> None:
        self._raise_if_strategy_unsupported()
        family = check_inner(optimizer)
        scale = experimental_loss_scale(loss_scale)
        if not has(Since.EXPERIMENTAL_HAS_OWN_LOSS_SCALE):
            if isinstance(scale, float):
                number, scale = scale, FixedLossScale(max(scale, 1.0))
                scale._loss_scale_value = number  # may be below 1, as in Keras from 2.4 on
            scale = read_as_tensor(scale)
        elif _is_dynamic(scale) and not isinstance(loss_scale, str):
            _given_away(scale)
            if family.kind is not KerasKind.KERAS_3:
                with tf.init_scope():  # an optimizer may be made while a function is traced
                    scale = _copy_of(cast(DynamicLossScaleObject, scale))
        self._wrap(optimizer, family, scale)

    def _effective_scale(self) -> Tensor:
        if type(self).loss_scale is LossScaleOptimizer.loss_scale:
            return self._state()  # a step needs no object that can also be called
        return super()._effective_scale()


def _is_dynamic(loss_scale: Union[float, LossScaleObject]) -> bool:
    return not isinstance(loss_scale, float) and is_standard(loss_scale, DynamicLossScale)


def _copy_of(loss_scale: DynamicLossScaleObject) -> LossScaleObject:
    """Returns a `DynamicLossScale` with the same arguments, at its initial scale."""
    return DynamicLossScale(
        loss_scale.initial_loss_scale,
        loss_scale.increment_period,
        loss_scale.multiplier,
        minimum_scale=minimum_of(loss_scale),
    )


def from_loss_scale(optimizer: Optimizer, loss_scale: LossScaleArgument) -> Optimizer:
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
        return LossScaleOptimizer(optimizer, scale)
    if arguments.get("dynamic", True):
        _given_away(scale)
    return final.LossScaleOptimizer(optimizer, **arguments)


_has_warned: "weakref.WeakKeyDictionary[Any, bool]" = weakref.WeakKeyDictionary()
"""By the loss scales that were given away."""


def _given_away(loss_scale: LossScaleArgument) -> None:
    """Lets `loss_scale` warn once, when it is read or given to a second optimizer."""
    if loss_scale in _has_warned:
        _warn(loss_scale)
        return
    _has_warned[loss_scale] = False
    change_class(loss_scale, _WarnsWhenRead, overrides=True)


class _WarnsWhenRead:
    """A `DynamicLossScale` of the shim or of TensorFlow, whose state an optimizer does not use."""

    @do_not_convert
    def __call__(self) -> Tensor:
        if self in _has_warned:  # not so if the program made another instance of the class
            _warn(self)
        return super().__call__()  # type: ignore[misc]  # the class of the loss scale defines it

    def __reduce_ex__(self, protocol: Any) -> Any:
        cls = behaves_as(cast(LossScaleObject, self))  # a copy has not been given away
        return (cls.__new__, (cls,), *super().__reduce_ex__(protocol)[2:])


def _warn(loss_scale: LossScaleArgument) -> None:
    if not _has_warned[loss_scale]:
        _has_warned[loss_scale] = True
        tf1.logging.warning(
            "A DynamicLossScale was read, or given to another optimizer, after it was given to a "
            "Keras optimizer. Each of these optimizers has a loss scale of its own, as since "
            "TensorFlow 2.4; up to 2.3 they shared it, so a program from 2.3 can have other "
            "numbers. To silence this, read `optimizer.loss_scale`, and give each optimizer a "
            "DynamicLossScale of its own."
        )
