"""Variables, operations and hooks for watching a program without changing what it computes.

The monitor and the recorder use them in users' programs, and read the settings of optimizers.
"""

import contextlib
import functools
import itertools
import numbers
import operator
from typing import Any, Callable, Dict, Iterator, Optional, Sequence, Tuple, Union

import numpy as np

from tf_lossscale._versions.base import do_not_convert, first_module, has, tf, tf1
from tf_lossscale._versions.graphs import graphs_around, in_eager_mode
from tf_lossscale._versions.keras import keras_family
from tf_lossscale._versions.releases import Since

_counter = itertools.count(1)


class RawVariable:
    """A variable, initially 0, in the outermost graph or in eager mode.

    The methods that set it return the operation, None in eager mode. It is not a `tf.Variable`,
    which would join collections, and be copied for each replica of a strategy.
    """

    def __init__(self, shape: Sequence[int], dtype: Any = tf.int64) -> None:
        name = f"tf_lossscale_variable_{next(_counter)}"
        self._shape = list(shape)
        self._dtype = dtype
        with tf.init_scope():
            self.eager = bool(tf.executing_eagerly())
            self.handle = tf.raw_ops.VarHandleOp(
                dtype=dtype, shape=self._shape, container="", shared_name=name
            )
            if self.eager:
                self.initialize()
            else:  # now, because the graph may be finalized later
                self._is_initialized, self._read = self.is_initialized(), self.read()

    def is_initialized(self) -> Any:
        return tf.raw_ops.VarIsInitializedOp(resource=self.handle)

    def initialize(self) -> Any:
        zeros = tf.zeros(self._shape, self._dtype)
        return tf.raw_ops.AssignVariableOp(resource=self.handle, value=zeros)

    def read(self) -> Any:
        value = tf.raw_ops.ReadVariableOp(resource=self.handle, dtype=self._dtype)
        if not tf.executing_eagerly():
            value.set_shape(self._shape)
        return value

    def value(self, session: Any) -> Any:
        """Returns its value as an array, in eager mode or read by the Session of its graph."""
        if self.eager:
            with in_eager_mode():
                return self.read().numpy()
        is_initialized = session.run(self._is_initialized)
        return session.run(self._read) if is_initialized else np.zeros(self._shape, np.int64)

    def assign_add(self, value: Any) -> Any:
        value = tf.convert_to_tensor(value, self._dtype)
        return tf.raw_ops.AssignAddVariableOp(resource=self.handle, value=value)

    def update(self, index: Any, value: Any) -> Any:
        return tf.raw_ops.ResourceScatterUpdate(resource=self.handle, indices=index, updates=value)

    def capture(self) -> None:
        """Creates the input of the current function for this variable now, not on first use."""
        if not tf.executing_eagerly():
            graph = tf1.get_default_graph()
            if hasattr(graph, "capture"):
                graph.capture(self.handle)


_UNCOUNTED = "_tfls_uncounted_operations"


@contextlib.contextmanager
def unnoticed(scope: str) -> Iterator[None]:
    """Keeps the operations within the block from changing names and random numbers of others.

    Their scope has a slash at its end, which makes it an absolute name.
    """
    if tf.executing_eagerly():
        yield
        return
    graphs = [] if has(Since.SEEDS_COUNT_RANDOM_OPERATIONS) else list(graphs_around())
    # TensorFlow takes the seeds from this private property, and uses it for nothing else.
    if graphs and tf1.Graph._last_id.fget is not _counted:
        tf1.Graph._last_id = property(_counted)
    before = [_counted(graph) for graph in graphs]
    try:
        with tf1.name_scope(scope):
            yield
    finally:
        for graph, count in zip(graphs, before):
            added = _counted(graph) - count  # less what a nested block has excluded already
            setattr(graph, _UNCOUNTED, getattr(graph, _UNCOUNTED, 0) + added)


def _counted(graph: Any) -> int:
    return int(graph._next_id_counter - getattr(graph, _UNCOUNTED, 0))


def seed_tensorflow(seed: int) -> None:
    """Sets the seed of eager mode, and of each graph that is created from now on.

    `tf.random.set_seed` would seed one of them only; and in TensorFlow 1.15, eager mode cannot be
    enabled any more once the default graph exists, which it would create.
    """
    context = first_module("tensorflow.python.eager.context")
    seed_context = operator.methodcaller("_set_global_seed", seed)
    if context._context is not None:
        seed_context(context._context)

    def seed_graph(graph: Any) -> None:
        if type(graph) is tf.Graph:  # that of a function takes the seed from around it
            graph.seed = seed

    seeds = ((context.Context, seed_context), (tf.Graph, seed_graph))
    _add_hooks([(cls, "__init__", hook) for cls, hook in seeds], after=True)


def variable_name(variable: Any) -> str:
    """Returns the name of a variable, in Keras 3 with the names of its layers."""
    # Not `hasattr(variable, ...)`, which a distributed variable looks up in one copy of it: that
    # creates operations.
    name = variable.path if hasattr(type(variable), "path") else variable.name
    return str(name).split(":")[0]


def add_control_input(operation: Any, before: Any) -> None:
    """Makes an operation of a graph wait for another one, even one that was created later."""
    operation._add_control_input(before)


def runs_stateful_operations(graph: Any) -> bool:
    """Returns whether a graph, like that of a function, runs stateful operations in any case."""
    return bool(getattr(graph, "_add_control_dependencies", False))


def after_each_call(then: Callable[[], None]) -> Callable[[], None]:
    """Calls `then` after each eager call of any `tf.function`; returns what ends this.

    There is no public hook, but all such functions have the same class. A concrete function can be
    called by itself, too.
    """

    def after(_: Any) -> None:
        if tf.executing_eagerly():
            then()

    concrete = first_module(
        "tensorflow.python.eager.polymorphic_function.concrete_function",
        "tensorflow.python.eager.polymorphic_function.monomorphic_function",
        "tensorflow.python.eager.function",
    ).ConcreteFunction
    classes = (type(tf.function(lambda: None)), concrete)
    return _add_hooks([(cls, "__call__", after) for cls in classes], after=True)


def before_sessions(run: Callable[[Any], None], close: Callable[[Any], None]) -> Callable[[], None]:
    """Calls functions with the Session before each run and its closing; returns what ends this.

    There is no public hook. Every run first calls a private method, which passes on new operations
    of the graph; the callables that Keras makes in graph mode call it only once. An error that
    `run` raises ends the run.
    """
    cls = first_module("tensorflow.python.client.session").BaseSession
    return _add_hooks(
        [
            (cls, "_extend_graph", run),
            (cls._Callable, "__call__", lambda function: run(function._session)),
            (cls, "close", close),
        ]
    )


_Hook = Callable[[Any], None]


def _add_hooks(hooks: Sequence[Tuple[Any, str, _Hook]], after: bool = False) -> Callable[[], None]:
    """Calls functions with the object before each call of methods, or after it.

    Returns a function that restores the methods that are still ours.
    """

    def hooked(original: Any, hook: _Hook) -> Any:
        @functools.wraps(original)
        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            if not after:
                hook(self)
            result = original(self, *args, **kwargs)
            if after:
                hook(self)
            return result

        return do_not_convert(method) if after else method

    replaced = []
    for cls, name, hook in hooks:
        original = getattr(cls, name)
        ours = hooked(original, hook)
        setattr(cls, name, ours)
        replaced.append((cls, name, original, ours))

    def undo() -> None:
        for cls, name, original, ours in replaced:
            if getattr(cls, name) is ours:
                setattr(cls, name, original)

    return undo


_ATTRIBUTES = {
    # The attribute in Keras, and the one in `tf.compat.v1.train`. The public one of the learning
    # rate calls a schedule.
    "learning_rate": ("_learning_rate", "learning_rate", "_lr"),
    "momentum": ("momentum", "_momentum"),
    "nesterov": ("nesterov", "_use_nesterov"),
    "beta_1": ("beta_1", "_beta1"),
    "beta_2": ("beta_2", "_beta2"),
    "rho": ("rho", "_rho", "_decay"),
    "epsilon": ("epsilon", "_epsilon"),
    "initial_accumulator_value": ("initial_accumulator_value", "_initial_accumulator_value"),
}
_OPTIONS = ("clipnorm", "clipvalue", "global_clipnorm", "weight_decay")
"""Those of Keras that are None, 0 or not there if they are not used."""


def settings_of(optimizer: Any) -> Dict[str, Optional[Union[bool, float]]]:
    """Returns the current settings of an optimizer that are plain numbers; no schedules.

    The value is None if an option is not used. Settings whose value cannot be read, such as the
    placeholders of a graph, are left out.
    """
    found: Dict[str, Optional[Union[bool, float]]] = {}
    options = _OPTIONS if keras_family(optimizer) is not None else ()
    with tf.init_scope():
        for name in (*_ATTRIBUTES, *options):
            # A user's property or a variable without a value raises any error.
            with contextlib.suppress(Exception):
                values = (_attribute(optimizer, each) for each in _ATTRIBUTES.get(name, [name]))
                value = next((each for each in values if each is not None), None)
                is_unused = name in options and not value
                number = None if is_unused else _number(value)
                if is_unused or number is not None:
                    found[name] = number
    return found


def _attribute(optimizer: Any, name: str) -> Any:
    # `OptimizerV2` creates the variables of its settings where one is read as an attribute; their
    # place in a checkpoint would not be that of an unrecorded run.
    hyper = vars(optimizer).get("_hyper", {})
    return hyper[name] if name in hyper else getattr(optimizer, name, None)


def _number(value: Any) -> Optional[Union[bool, float]]:
    if hasattr(value, "numpy"):
        value = value.numpy()
    if isinstance(value, bool):
        return value
    is_number = isinstance(value, numbers.Real) or getattr(value, "shape", None) == ()
    return float(value) if is_number else None
