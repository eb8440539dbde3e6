"""Variables that TensorFlow does not track: in no collection, checkpoint, strategy or optimizer."""

import threading
from typing import Any, Sequence

from tf_lossscale._versions.base import tf, tf1

__all__ = ["RawVariable"]

_lock = threading.Lock()
_made = 0


class RawVariable:
    """A vector of int64 numbers, initially 0, in the outermost graph or in eager mode.

    It is not a `tf.Variable`, which would join collections, and be copied for each replica of a
    strategy.

    Attributes:
      handle: the resource; functions capture it.
      eager: whether it was created in eager mode.
      is_initialized: bool tensor; None in eager mode.

    Args:
      size: its length.
    """

    def __init__(self, size: int) -> None:
        global _made
        with _lock:
            _made += 1
            name = f"tf_lossscale_variable_{_made}"
        self.size = size
        with tf.init_scope():
            self.eager = bool(tf.executing_eagerly())
            self.handle = tf.raw_ops.VarHandleOp(
                dtype=tf.int64, shape=[size], container="", shared_name=name
            )
            self.is_initialized: Any = None
            if self.eager:
                self.initialize()
            else:
                self.is_initialized = tf.raw_ops.VarIsInitializedOp(resource=self.handle)

    def initialize(self) -> Any:
        """Sets all numbers to 0; returns the operation, None in eager mode."""
        return self.assign(tf.zeros([self.size], tf.int64))

    def read(self) -> Any:
        """Returns the numbers, an int64 tensor of shape `[size]`."""
        value = tf.raw_ops.ReadVariableOp(resource=self.handle, dtype=tf.int64)
        if not tf.executing_eagerly():
            value.set_shape([self.size])
        return value

    def assign(self, value: Any) -> Any:
        """Sets the numbers; returns the operation, None in eager mode."""
        return tf.raw_ops.AssignVariableOp(resource=self.handle, value=value)

    def assign_add(self, numbers: Sequence[int]) -> Any:
        """Adds to the numbers; returns the operation, None in eager mode."""
        value = tf.constant(list(numbers), tf.int64)
        return tf.raw_ops.AssignAddVariableOp(resource=self.handle, value=value)

    def capture(self) -> None:
        """Creates the input of the current function for this variable now, not on first use."""
        if not tf.executing_eagerly():
            graph = tf1.get_default_graph()
            if hasattr(graph, "capture"):
                graph.capture(self.handle)
