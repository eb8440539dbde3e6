"""Variables that TensorFlow does not track: in no collection, checkpoint, strategy or optimizer."""

import threading
from typing import Any, Sequence

from tf_lossscale._versions.base import tf, tf1
from tf_lossscale._versions.graphs import in_eager_mode

__all__ = ["RawVariable"]

_lock = threading.Lock()
_made = 0


class RawVariable:
    """A variable, initially 0, in the outermost graph or in eager mode.

    It is not a `tf.Variable`, which would join collections, and be copied for each replica of a
    strategy.

    Attributes:
      handle: the resource; functions capture it.
      eager: whether it was created in eager mode.
      is_initialized: bool tensor; None in eager mode.

    Args:
      shape: its shape.
      dtype: its dtype, a `tf.DType`.
    """

    def __init__(self, shape: Sequence[int], dtype: Any = tf.int64) -> None:
        global _made
        with _lock:
            _made += 1
            name = f"tf_lossscale_variable_{_made}"
        self._shape = list(shape)
        self._dtype = dtype
        with tf.init_scope():
            self.eager = bool(tf.executing_eagerly())
            self.handle = tf.raw_ops.VarHandleOp(
                dtype=dtype, shape=self._shape, container="", shared_name=name
            )
            self.is_initialized: Any = None
            if self.eager:
                self.initialize()
            else:
                self.is_initialized = tf.raw_ops.VarIsInitializedOp(resource=self.handle)

    def initialize(self) -> Any:
        """Sets it to 0; returns the operation, None in eager mode."""
        return self.assign(tf.zeros(self._shape, self._dtype))

    def read(self) -> Any:
        """Returns its value."""
        value = tf.raw_ops.ReadVariableOp(resource=self.handle, dtype=self._dtype)
        if not tf.executing_eagerly():
            value.set_shape(self._shape)
        return value

    def numpy(self) -> Any:
        """Returns the array of its value, wherever this is called; only if it is `eager`."""
        with in_eager_mode():
            return self.read().numpy()

    def assign(self, value: Any) -> Any:
        """Sets it; returns the operation, None in eager mode."""
        return tf.raw_ops.AssignVariableOp(resource=self.handle, value=value)

    def assign_add(self, numbers: Any) -> Any:
        """Adds to it; returns the operation, None in eager mode.

        Args:
          numbers: a number, a list or a tensor, of its shape.
        """
        value = tf.convert_to_tensor(numbers, self._dtype)
        return tf.raw_ops.AssignAddVariableOp(resource=self.handle, value=value)

    def update(self, index: Any, value: Any) -> Any:
        """Sets `[index]` of it; returns the operation, None in eager mode.

        Args:
          index: int64 tensor of shape `[]`.
          value: the new value of that element or row.
        """
        return tf.raw_ops.ResourceScatterUpdate(resource=self.handle, indices=index, updates=value)

    def capture(self) -> None:
        """Creates the input of the current function for this variable now, not on first use."""
        if not tf.executing_eagerly():
            graph = tf1.get_default_graph()
            if hasattr(graph, "capture"):
                graph.capture(self.handle)
