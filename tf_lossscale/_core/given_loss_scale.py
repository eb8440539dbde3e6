"""What becomes of the `LossScale` object that a program gives to a Keras optimizer.

It depends on the TensorFlow, as with the originals. Up to 2.3 the object itself is the scale:
`optimizer.loss_scale` returns it, and code for later versions reads it as a tensor. From 2.4 on the
optimizer has a scale of its own, and the object warns when it is read.
"""

import operator
import weakref
from typing import Any, Optional

import numpy as np

from tf_lossscale._core.loss_scales import DynamicLossScale, FixedLossScale, LossScale
from tf_lossscale._core.same_class import behaves_as, change_class
from tf_lossscale._versions.base import do_not_convert, tf, tf1

__all__ = ["fixed_loss_scale", "given_away", "own_loss_scale", "read_as_tensor"]

_MESSAGE = (
    "A DynamicLossScale was read, or given to another optimizer, after it was given to a Keras "
    "optimizer. Each of these optimizers has a loss scale of its own, as since TensorFlow 2.4; up "
    "to 2.3 they shared it, so a program from 2.3 can have other numbers. To silence this, read "
    "`optimizer.loss_scale`, and give each optimizer a DynamicLossScale of its own."
)
_given: "weakref.WeakSet[Any]" = weakref.WeakSet()
_warned: "weakref.WeakSet[Any]" = weakref.WeakSet()
_BINARY = ("add", "floordiv", "mod", "mul", "pow", "sub", "truediv")
_COMPARISONS = ("ge", "gt", "le", "lt")
_OF_TENSORS = ("device", "dtype", "eval", "get_shape", "graph", "ndim", "numpy", "op", "shape")


def own_loss_scale(loss_scale: Any) -> DynamicLossScale:
    """Returns a `DynamicLossScale` with the same settings, at its initial scale."""
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
    """Lets `loss_scale` warn once, when it is read or given to a second optimizer."""
    if loss_scale in _given:
        _warn(loss_scale)
        return
    _given.add(loss_scale)
    change_class(loss_scale, _WarnsWhenRead, overrides=True)


class _WarnsWhenRead:
    """A `DynamicLossScale`, ours or TensorFlow's, whose state an optimizer does not use."""

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


def read_as_tensor(loss_scale: Any) -> Any:
    """Returns `loss_scale` itself, which from now on also converts to a tensor."""
    if not isinstance(loss_scale, _ReadsAsTensor):
        change_class(loss_scale, _ReadsAsTensor, overrides=False)
    return loss_scale


class _ReadsAsTensor:
    """The operators and conversions of a tensor, for an object that returns it when called."""

    # The operators of NumPy arrays give way to the ones here.
    __array_priority__ = 100

    def __call__(self) -> Any:
        raise NotImplementedError("the class of the loss scale, an earlier base, defines this")

    def __array__(self, dtype: Optional[Any] = None) -> Any:
        return np.asarray(self().numpy(), dtype)

    def __float__(self) -> float:
        return float(self())

    def __int__(self) -> int:
        return int(self())

    def __format__(self, spec: str) -> str:
        return format(float(self), spec) if spec else str(self)

    def __neg__(self) -> Any:
        return -self()

    def __abs__(self) -> Any:
        return abs(self())

    def __eq__(self, other: Any) -> Any:
        return self is other if _is_no_number(other) else self() == other

    def __ne__(self, other: Any) -> Any:
        return self is not other if _is_no_number(other) else self() != other

    def __reduce_ex__(self, protocol: Any) -> Any:
        # `pickle` finds the class that the program knows, and not the one made here.
        reduced: Any = super().__reduce_ex__(protocol)
        _, _, *state = reduced
        return (_made_again, (behaves_as(self),), *state)

    def __getattr__(self, name: str) -> Any:
        if name in _OF_TENSORS:
            return getattr(self(), name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _as_graph_element(self) -> Any:
        # `Session.run` calls it. The graph may be finalized, where no operation can be added.
        variable = vars(self).get("_current_loss_scale")
        if variable is None:
            return self()
        return variable._as_graph_element()


def _is_no_number(other: Any) -> bool:
    # Loss scales are compared by identity, and with None and strings, by programs for 2.3.
    return other is None or isinstance(other, (str, LossScale))


def _made_again(cls: Any) -> Any:
    return read_as_tensor(cls.__new__(cls))


def _operator(name: str, swapped: bool = False) -> Any:
    function = getattr(operator, name)

    def method(self: Any, other: Any) -> Any:
        return function(other, self()) if swapped else function(self(), other)

    return do_not_convert(method)


for _name in _BINARY:
    setattr(_ReadsAsTensor, f"__{_name}__", _operator(_name))
    setattr(_ReadsAsTensor, f"__r{_name}__", _operator(_name, swapped=True))
for _name in _COMPARISONS:
    setattr(_ReadsAsTensor, f"__{_name}__", _operator(_name))


def _to_tensor(
    value: Any, dtype: Optional[Any] = None, name: Optional[str] = None, as_ref: bool = False
) -> Any:
    return tf.convert_to_tensor(value(), dtype=dtype, name=name)


tf.register_tensor_conversion_function(_ReadsAsTensor, _to_tensor)
