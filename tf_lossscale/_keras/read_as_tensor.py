"""Lets TensorFlow read a `LossScale` object as a tensor of its current value.

Up to TensorFlow 2.3 `optimizer.loss_scale` is the object that the optimizer was given. From 2.4 on
it is a tensor, and code for it must run on 2.3, too.
"""

import operator
from typing import Any, Optional

import numpy as np

from tf_lossscale._core.identifiers import is_loss_scale
from tf_lossscale._core.same_class import behaves_as, change_class
from tf_lossscale._versions.base import do_not_convert, tf

__all__ = ["read_as_tensor"]

_BINARY = ("add", "floordiv", "mod", "mul", "pow", "sub", "truediv")
_COMPARISONS = ("ge", "gt", "le", "lt")
_OF_TENSORS = ("device", "dtype", "eval", "get_shape", "graph", "ndim", "numpy", "op", "shape")


def read_as_tensor(loss_scale: Any) -> Any:
    """Returns `loss_scale` itself, which from now on also converts to a tensor.

    Args:
      loss_scale: a `LossScale`, ours or the installed TensorFlow's.
    """
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
        # Loss scales are compared by identity, and with None and strings, by programs for 2.3.
        if other is None or isinstance(other, str) or is_loss_scale(other):
            return self is other
        return self() == other

    def __ne__(self, other: Any) -> Any:
        if other is None or isinstance(other, str) or is_loss_scale(other):
            return self is not other
        return self() != other

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
