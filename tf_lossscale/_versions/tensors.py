"""The types of tensors, for which TensorFlow has no public names."""

import abc
from typing import Any

from tf_lossscale._types import Class
from tf_lossscale._versions.base import first_module

_ops: Any = first_module("tensorflow.python.framework.ops")
EagerTensor: Any = _ops.EagerTensor


def _abstract_tensor() -> Any:
    """Returns the class that TensorFlow tests for: `tf.is_tensor` is true of its instances."""
    types = first_module("tensorflow.python.types.core", "tensorflow.python.framework.tensor_like")
    # `tf.get_static_value` reads a `Value`, which eager tensors are from TensorFlow 2.15 on.
    for name in ("Value", "Tensor", "_TensorLike"):
        if issubclass(EagerTensor, getattr(types, name, ())):
            return getattr(types, name)
    raise ImportError(f"tensorflow: no base class of EagerTensor in {types.__name__}")


AbstractTensor: Any = _abstract_tensor()


class _PackedIntoLists(abc.ABC):  # noqa: B024 - classes are registered with it
    """What TensorFlow 1.15 takes for a tensor in a list: a registered class with these two."""

    dtype = property()
    name = property()


if hasattr(_ops, "register_dense_tensor_like_type"):
    _ops.register_dense_tensor_like_type(_PackedIntoLists)


def pack_into_lists(cls: Class) -> None:
    """Lets TensorFlow convert lists that contain instances of `cls`, which derives from the above.

    Later versions than 1.15 test for `AbstractTensor`.
    """
    _PackedIntoLists.register(cls)
