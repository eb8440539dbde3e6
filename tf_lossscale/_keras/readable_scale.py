"""The `loss_scale` of the experimental class, which is a tensor and can also be called.

Programs for TensorFlow up to 2.3 call it, and those for later versions use it as a tensor. A call
returns the scale of the moment of the call. As a tensor it has the value that it was read with.

Two objects do both, because a tensor of a graph and an eager tensor differ. The class of the former
is Python's, so each tensor can be made an instance of a subclass that can be called. The latter is
of a C type that has no subclasses, so a `ScaleReading` stands for it. Up to TensorFlow 2.3 the
property returns the `LossScale` itself, as there, which converts to a tensor of its current value.
"""

import copy
import functools
import operator
from typing import Any, Dict, List, Optional, Tuple

import numpy as np

from tf_lossscale._core.loss_scales import LossScale
from tf_lossscale._core.same_class import behaves_as, change_class
from tf_lossscale._types import (
    Array,
    Class,
    DType,
    LossScaleObject,
    Method,
    ReadScale,
    ScaleState,
    Tensor,
)
from tf_lossscale._versions.base import do_not_convert, tf
from tf_lossscale._versions.callers import called_for_a_value
from tf_lossscale._versions.tensors import (
    AbstractTensor,
    EagerTensor,
    pack_into_lists,
)


def readable(state: ScaleState) -> Tensor:
    """Returns the current value of `state`, which is called for it, as an object that does both."""
    if tf.executing_eagerly():
        return ScaleReading(state(), state)
    # The copy has no other owner: a user's `LossScale` may keep the tensor that it returns.
    tensor = tf.identity(state())
    graph_tensor: Class = type(tensor)
    tensor.__class__ = _callable_class(graph_tensor)
    tensor._tfls_state = state
    return tensor


@functools.lru_cache(maxsize=None)
def _callable_class(cls: Class) -> Class:
    """Returns a subclass of a class of graph tensors, which returns the current scale if called."""
    body = {"__call__": _current_scale, "__doc__": cls.__doc__, "__module__": cls.__module__}
    return type(cls)(cls.__name__, (cls,), body)


@do_not_convert
def _current_scale(tensor: Tensor) -> Tensor:
    """Returns the current loss scale: a float32 tensor of shape `[]`."""
    return tensor if called_for_a_value() else tensor._tfls_state()


class _OfTensor:
    """Descriptor of an attribute of the tensor that an object stands for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else getattr(instance._tfls_tensor(), self._name)


def _method_of_tensor(name: str) -> Method:
    """Returns a special method that calls the tensor's method of this name."""

    def method(self: Any, *args: object, **kwargs: object) -> Any:
        plain = [arg._tensor if isinstance(arg, ScaleReading) else arg for arg in args]
        return getattr(self._tfls_tensor(), name)(*plain, **kwargs)

    method.__name__ = name
    return method


class _ReadsAsTensor(AbstractTensor):
    """The operators and conversions of a tensor, which `_tfls_tensor` returns."""

    _tfls_tensor: ReadScale

    # The operators of NumPy arrays give way to the ones here.
    __array_priority__ = 100

    dtype = _OfTensor("dtype")
    numpy = _OfTensor("numpy")
    shape = _OfTensor("shape")

    def __array__(self, dtype: Optional[DType] = None, copy: Optional[bool] = None) -> Array:
        return np.array(self._tfls_tensor().numpy(), dtype)

    def __complex__(self) -> complex:
        return complex(self._tfls_tensor())

    def __float__(self) -> float:
        return float(self._tfls_tensor())

    def __index__(self) -> int:
        return operator.index(self._tfls_tensor())

    def __int__(self) -> int:
        return int(self._tfls_tensor())

    def __round__(self, digits: Optional[int] = None) -> Any:
        return round(float(self), digits)  # tensors have no such method


for _name in tf.Tensor.OVERLOADABLE_OPERATORS:
    if _name not in ("__eq__", "__ne__"):  # a `LossScale` is also compared with other objects
        setattr(_ReadsAsTensor, _name, _method_of_tensor(_name))


class ScaleReading(_ReadsAsTensor):
    """A loss scale that was read in eager mode: a tensor that returns the current scale if called.

    It has the attributes and operators of the eager tensor, and converts to it. `isinstance(x,
    tf.Tensor)` is False: TensorFlow's own code passes objects of that class to C.
    """

    def __init__(self, tensor: Tensor, state: ReadScale) -> None:
        self._tensor = tensor
        self._state = state

    @do_not_convert
    def __call__(self) -> Tensor:
        """Returns the current loss scale: a float32 tensor of shape `[]`."""
        return self._tensor if called_for_a_value() else self._state()

    def _tfls_tensor(self) -> Tensor:
        return self._tensor

    def __getattr__(self, name: str) -> Any:
        if "_tensor" not in vars(self):
            raise AttributeError(name)  # while Python makes an instance without `__init__`
        return getattr(self._tensor, name)

    def __dir__(self) -> List[str]:
        return dir(self._tensor)

    # Copies belong to no optimizer. Nor do copies of a `LossScale`.

    def __copy__(self) -> "ScaleReading":
        return ScaleReading(self._tensor, self._state)

    def __deepcopy__(self, memo: Dict[int, object]) -> "ScaleReading":
        return _copied(copy.deepcopy(self._tensor, memo), copy.deepcopy(self(), memo))

    def __reduce__(self) -> Tuple[Any, ...]:
        return _copied, (self._tensor, self())


def _copied(tensor: Tensor, current: Tensor) -> ScaleReading:
    return ScaleReading(tensor, lambda: current)


# Python looks these up in the class. TensorFlow may lack some: `__tf_tracing_type__` is of 2.7.
_SPECIAL = (
    *("__bool__", "__eq__", "__format__", "__hash__", "__iter__", "__len__", "__ne__"),
    *("__repr__", "__str__", "__dlpack__", "__dlpack_device__"),
    *("__tf_tensor__", "__tf_tracing_type__"),
)
for _name in _SPECIAL:
    if hasattr(EagerTensor, _name):
        setattr(ScaleReading, _name, _method_of_tensor(_name))


def _to_tensor(
    value: Any, dtype: Optional[DType] = None, name: Optional[str] = None, as_ref: bool = False
) -> Tensor:
    tensor = tf.convert_to_tensor(value._tfls_tensor(), dtype=dtype, name=name)
    # In functions, TensorFlow up to 2.12 ignores `dtype` if it converts an eager tensor. It tries a
    # preferred one first, and none after a ValueError.
    if dtype is not None and dtype != tensor.dtype:
        raise ValueError(f"The loss scale is a {tensor.dtype.name}, not a {dtype.name}: cast it.")
    return tensor


tf.register_tensor_conversion_function(_ReadsAsTensor, _to_tensor)
pack_into_lists(_ReadsAsTensor)


def read_as_tensor(loss_scale: LossScaleObject) -> LossScaleObject:
    """Returns `loss_scale` itself, which from now on also converts to a tensor."""
    if not isinstance(loss_scale, _LossScaleReadsAsTensor):
        change_class(loss_scale, _LossScaleReadsAsTensor, overrides=False)
    return loss_scale


_OF_TENSORS = ("device", "eval", "get_shape", "graph", "ndim", "op", "set_shape")


class _LossScaleReadsAsTensor(_ReadsAsTensor):
    """A `LossScale` of the shim or of TensorFlow: it can be called, and reads as a tensor."""

    __call__: Any  # of the class of the loss scale, an earlier base
    __iter__ = None  # otherwise Python would iterate with `__getitem__`

    def _tfls_tensor(self) -> Tensor:
        return self()

    def __format__(self, spec: str) -> str:
        return format(float(self), spec) if spec else str(self)

    def __eq__(self, other: Any) -> Any:
        return self is other if _is_no_number(other) else self() == other

    def __ne__(self, other: Any) -> Any:
        return self is not other if _is_no_number(other) else self() != other

    def __reduce_ex__(self, protocol: Any) -> Any:
        # `pickle` finds the class that the program knows, and not the one made here.
        return (_made_again, (behaves_as(self),), *super().__reduce_ex__(protocol)[2:])

    def __getattr__(self, name: str) -> Any:
        if name in _OF_TENSORS:
            return getattr(self(), name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _as_graph_element(self) -> Tensor:
        # `Session.run` calls it. The graph may be finalized, where no operation can be added.
        variable = vars(self).get("_current_loss_scale")
        element = None if variable is None else variable._as_graph_element()
        return self() if element is None else element


def _is_no_number(other: object) -> bool:
    # Loss scales are compared by identity, and with None and strings, by programs for 2.3.
    return other is None or isinstance(other, (str, LossScale))


def _made_again(cls: Class) -> object:
    return read_as_tensor(cls.__new__(cls))
