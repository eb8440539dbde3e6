"""Operations that call Python when they run, without an effect on anything else in the graph."""

import contextlib
import functools
import weakref
from typing import Any, Callable, Iterator, MutableMapping, Sequence

from tf_lossscale._versions.base import TF_VERSION, first_module, tf, tf1

__all__ = ["add_control_input", "host_call", "runs_stateful_operations", "uncounted"]


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


_uncounted: "MutableMapping[Any, int]" = weakref.WeakKeyDictionary()
"""By graph, the number of operations that seeds do not count."""


@contextlib.contextmanager
def uncounted() -> Iterator[None]:
    """Keeps the operations created in the block from changing the seeds of later operations.

    TensorFlow 1.15 derives the seed of an operation from the number of operations before it.
    """
    if TF_VERSION >= (2, 0) or tf.executing_eagerly():
        yield
        return
    _take_over_seeds()
    graph = tf1.get_default_graph()
    before = graph._last_id
    try:
        yield
    finally:
        _uncounted[graph] = _uncounted.get(graph, 0) + graph._last_id - before


def _take_over_seeds() -> None:
    module: Any = first_module("tensorflow.python.framework.random_seed")
    original = module.get_seed
    if hasattr(original, "tf_lossscale"):
        return

    @functools.wraps(original)
    def get_seed(op_seed: Any) -> Any:
        graph: Any = tf1.get_default_graph()
        counted_too_many = 0 if tf.executing_eagerly() else _uncounted.get(graph, 0)
        if op_seed is None and counted_too_many and graph.seed is not None:
            if hasattr(graph, "_seed_used"):
                graph._seed_used = True
            op_seed = graph._last_id - counted_too_many
        return original(op_seed)

    get_seed.tf_lossscale = True  # type: ignore[attr-defined]
    module.get_seed = get_seed
