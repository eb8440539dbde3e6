"""Hooks of the recorder into runs, variables and seeds, which change nothing that is computed."""

import functools
from typing import Any, Callable, Iterable, Sequence, Tuple

from tf_lossscale._types import Class, Function, Graph, Method, Operation, Session, Tensor, Variable
from tf_lossscale._versions.base import do_not_convert, first_module, tf
from tf_lossscale._versions.interventions import (
    CALLS_OF_FUNCTIONS,
    NEW_SEEDS,
    RUNS_OF_SESSIONS,
    VARIABLES,
    Intervention,
    Replacements,
)


def seed_tensorflow(seed: int) -> None:
    """Sets the seed of eager mode, and of each graph that is created from now on.

    `tf.random.set_seed` would seed one of them only; and in TensorFlow 1.15, eager mode cannot be
    enabled any more once the default graph exists, which it would create.
    """
    context = first_module("tensorflow.python.eager.context")

    def seed_context(context: Any, *_: object, **__: object) -> None:
        context._set_global_seed(seed)

    if context._context is not None:
        seed_context(context._context)

    def seed_graph(graph: Graph, *_: object, **__: object) -> None:
        if type(graph) is tf.Graph:  # a function's graph takes the seed from around it
            graph.seed = seed

    seeds = ((context.Context, seed_context), (tf.Graph, seed_graph))
    _add_hooks(NEW_SEEDS, [(cls, "__init__", hook) for cls, hook in seeds], after=True)


def after_each_call(then: Callable[[], None]) -> Callable[[], None]:
    """Calls `then` after each eager call of any `tf.function`; returns what ends this."""
    return _around_calls(then, after=True)


def before_each_call(then: Callable[[], None]) -> Callable[[], None]:
    """Calls `then` before each eager call of any `tf.function`; returns what ends this."""
    return _around_calls(then, after=False)


def _around_calls(then: Callable[[], None], after: bool) -> Callable[[], None]:
    """Calls `then` before or after each eager call of a `tf.function`; returns what ends this."""

    # There is no public hook, but all such functions have the same class. A concrete function can
    # be called by itself, too.
    def hook(*_: object, **__: object) -> None:
        if tf.executing_eagerly():
            then()

    concrete = first_module(
        "tensorflow.python.eager.polymorphic_function.concrete_function",
        "tensorflow.python.eager.polymorphic_function.monomorphic_function",
        "tensorflow.python.eager.function",
    ).ConcreteFunction
    classes = (type(tf.function(lambda: None)), concrete)
    return _add_hooks(CALLS_OF_FUNCTIONS, [(cls, "__call__", hook) for cls in classes], after)


def before_sessions(
    run: Callable[[Session], None], close: Callable[[Session], None]
) -> Callable[[], None]:
    """Calls functions with the Session before each run and its closing; returns what ends this.

    There is no public hook. Every run first calls a private method, which passes on new operations
    of the graph; the callables that Keras makes in graph mode call it only once. An error that
    `run` raises ends the run.
    """
    cls = _session_class()
    return _add_hooks(
        RUNS_OF_SESSIONS,
        [
            (cls, "_extend_graph", run),
            (cls._Callable, "__call__", lambda function, *_, **__: run(function._session)),
            (cls, "close", close),
        ],
    )


def before_runs(then: Callable[[Session, Sequence[Operation]], None]) -> Callable[[], None]:
    """Calls `then` with the Session and the operations that it is going to run, before it does.

    Returns what ends this. There is no public hook.
    """

    def run(
        session: Session,
        _: object,
        targets: Iterable[Operation],
        fetches: Iterable[Tensor],
        *others: object,
    ) -> None:
        then(session, [*targets, *(fetch.op for fetch in fetches)])

    def make(function: Function, session: Session, options: Any) -> None:
        function._tfls_names = [*options.target, *options.fetch]

    def call(function: Function, *_: object, **__: object) -> None:
        names = [name.split(":")[0] for name in getattr(function, "_tfls_names", ())]
        session = function._session
        then(session, [session.graph.get_operation_by_name(name) for name in names])

    cls = _session_class()
    return _add_hooks(
        RUNS_OF_SESSIONS,
        [
            (cls, "_do_run", run),
            (cls._Callable, "__init__", make),
            (cls._Callable, "__call__", call),
        ],
    )


def _session_class() -> Class:
    return first_module("tensorflow.python.client.session").BaseSession


def around_variables(
    made: Callable[[Variable], None], read: Callable[[], None]
) -> Callable[[], None]:
    """Calls `made` with each variable that is made, and `read` before variables may be read.

    Outside of Sessions: when a tape begins, and when a function that is traced reads one. Returns
    what ends this. There are no public hooks. Eager operations read variables in C++.
    """
    variables = first_module("tensorflow.python.ops.resource_variable_ops")
    tapes = first_module("tensorflow.python.eager.tape")

    def before(*_: object, **__: object) -> None:
        read()

    def after(variable: Variable, *_: object, **__: object) -> None:
        # An assignment returns another object, of this class, for the same variable.
        if not isinstance(variable, variables._UnreadVariable):
            made(variable)

    hook = (variables.BaseResourceVariable, "__init__", after)
    undo_made = _add_hooks(VARIABLES, [hook], after=True)
    reads = [(tapes, name, before) for name in ("push_new_tape", "variable_accessed")]
    undo_read = _add_hooks(VARIABLES, reads)

    def undo() -> None:
        undo_made()
        undo_read()

    return undo


def before_assignments(then: Callable[[Variable], None]) -> Callable[[], None]:
    """Calls `then` with the handle of each variable that is assigned to in eager mode.

    Returns what ends this. An optimizer of TensorFlow changes its variables in another way, but
    some of Keras assign to them.
    """
    module = first_module("tensorflow.python.ops.gen_resource_variable_ops")

    def assigned(*args: object, **kwargs: object) -> None:
        if tf.executing_eagerly():
            then(args[0] if args else kwargs["resource"])

    return _add_hooks(VARIABLES, [(module, "assign_variable_op", assigned)])


_Hook = Callable[..., None]


def _add_hooks(
    intervention: Intervention, hooks: Sequence[Tuple[Any, str, _Hook]], after: bool = False
) -> Callable[[], None]:
    """Calls functions with the arguments of each call of methods, before or after it.

    Args:
      intervention: what the hooks are for.
      hooks: the owner of each method, a class or a module; the name of the method; the function.
      after: whether the functions are called after the methods, and only if these raise no error.

    Returns:
      A function that ends this. Other hooks of the same methods are left alone.
    """
    replacements = Replacements(intervention)

    def hooked(original: Method, hook: _Hook) -> Method:
        @functools.wraps(original)
        def method(*args: object, **kwargs: object) -> Any:
            if replacements.is_active and not after:
                hook(*args, **kwargs)
            result = original(*args, **kwargs)
            if replacements.is_active and after:
                hook(*args, **kwargs)
            return result

        return do_not_convert(method)

    for owner, name, hook in hooks:
        replacements.replace(owner, name, hooked(getattr(owner, name), hook))
    return replacements.undo
