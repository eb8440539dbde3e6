"""Operations that call Python when they run, without an effect on anything else in the graph."""

from typing import Any, Callable, Sequence

from tf_lossscale._versions.base import tf, tf1

__all__ = ["add_control_input", "host_call", "runs_stateful_operations"]


def host_call(function: Callable[..., Any], inputs: Sequence[Any], name: str) -> Any:
    """Returns an int64 scalar that `function` computes from arrays each time it runs, on the CPU.

    Args:
      function: takes an array for each input and returns an `np.int64`.
      inputs: tensors.
      name: name of the operation.
    """
    with tf1.device("/device:CPU:0"):  # there is no other kernel
        result = tf1.numpy_function(function, list(inputs), tf.int64, name=name)
    result.set_shape([])
    return result


def add_control_input(operation: Any, before: Any) -> None:
    """Makes an operation of a graph wait for another, which may have been created after it."""
    operation._add_control_input(before)


def runs_stateful_operations(graph: Any) -> bool:
    """Returns whether a graph runs each stateful operation, as functions do, needed or not."""
    return bool(getattr(graph, "_add_control_dependencies", False))
