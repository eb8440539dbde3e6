"""Variables, operations and hooks for watching a program without changing what it computes.

The monitor and the recorder use them in users' programs. The variables are in no collection,
checkpoint, strategy or optimizer, and the operations do not change random numbers.
"""

import contextlib
import functools
import threading
from typing import Any, Callable, Iterator, List, Sequence

from tf_lossscale._versions.base import do_not_convert, first_module, has, tf, tf1
from tf_lossscale._versions.graphs import in_eager_mode
from tf_lossscale._versions.releases import Since

__all__ = [
    "RawVariable",
    "add_control_input",
    "after_each_call",
    "before_each_run",
    "host_call",
    "remote_target",
    "runs_stateful_operations",
    "without_changing_seeds",
]

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


# Where seeds count all operations, one that only watches a program would change its random numbers.
_SEEDS_COUNT_OPERATIONS = not has(Since.SEEDS_COUNT_RANDOM_OPERATIONS)
_UNCOUNTED = "_tfls_uncounted_operations"


@contextlib.contextmanager
def without_changing_seeds() -> Iterator[None]:
    """Keeps the operations created within the block from changing the seeds of later ones."""
    if not _SEEDS_COUNT_OPERATIONS or tf.executing_eagerly():
        yield
        return
    _exclude_uncounted()
    graphs = _graphs()
    before = [_counted(graph) for graph in graphs]
    try:
        yield
    finally:
        for graph, count in zip(graphs, before):
            added = _counted(graph) - count  # less what a nested block has excluded already
            setattr(graph, _UNCOUNTED, getattr(graph, _UNCOUNTED, 0) + added)


def _counted(graph: Any) -> int:
    return int(graph._next_id_counter - getattr(graph, _UNCOUNTED, 0))


def _graphs() -> List[Any]:
    """Returns the current graph and those around it."""
    graphs, graph = [], tf1.get_default_graph()
    while graph is not None:
        graphs.append(graph)
        graph = getattr(graph, "outer_graph", None)
    return graphs


def _exclude_uncounted() -> None:
    # TensorFlow takes the seeds from this private property, and uses it for nothing else.
    if isinstance(tf1.Graph._last_id, property) and tf1.Graph._last_id.fget is not _counted:
        tf1.Graph._last_id = property(_counted)


def host_call(function: Callable[..., Any], inputs: Sequence[Any], name: str) -> Any:
    """Returns an int64 scalar that `function` computes from arrays each time it runs, on the CPU.

    Args:
      function: takes an array for each input and returns an `np.int64`.
      inputs: tensors.
      name: name of the operation.
    """
    with tf1.device("/device:CPU:0"):  # it has no other kernel
        result = tf1.numpy_function(function, list(inputs), tf.int64, name=name)
    result.set_shape([])
    return result


def add_control_input(operation: Any, before: Any) -> None:
    """Makes an operation of a graph wait for another one, even one that was created later."""
    operation._add_control_input(before)


def runs_stateful_operations(graph: Any) -> bool:
    """Returns whether a graph, like that of a function, runs stateful operations in any case."""
    return bool(getattr(graph, "_add_control_dependencies", False))


def after_each_call(then: Callable[[], None]) -> Callable[[], None]:
    """Calls `then` after each eager call of any `tf.function`.

    There is no public hook, but all such functions have the same class.

    Args:
      then: takes no arguments.

    Returns:
      A function that ends this.
    """
    cls: Any = type(tf.function(lambda: None))
    original = cls.__call__

    @functools.wraps(original)
    def call(function: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(function, *args, **kwargs)
        if tf.executing_eagerly():
            then()
        return result

    ours = do_not_convert(call)
    cls.__call__ = ours

    def undo() -> None:
        if cls.__call__ is ours:
            cls.__call__ = original

    return undo


_session: Any = first_module("tensorflow.python.client.session")


def before_each_run(first: Callable[[Any], None]) -> Callable[[], None]:
    """Calls `first` with the Session before each run, and in `make_callable`.

    There is no public hook. Every run first calls this private method, which passes on new
    operations of the graph.

    Args:
      first: takes the Session; an error that it raises ends the run.

    Returns:
      A function that ends this.
    """
    cls = _session.BaseSession
    original = cls._extend_graph

    @functools.wraps(original)
    def extend(session: Any) -> Any:
        first(session)
        return original(session)

    cls._extend_graph = extend

    def undo() -> None:
        if cls._extend_graph is extend:
            cls._extend_graph = original

    return undo


def remote_target(session: Any) -> str:
    """Returns the address of the server that a Session runs on; empty if it is this process."""
    target = session.sess_str
    return target.decode() if isinstance(target, bytes) else str(target)
