"""Conditionals that cost less than `tf.cond` in a Session's graph.

`tf.cond` creates a switch for every tensor that a branch uses: for each gradient, and with Adam for
three variables more. With many small variables that is most of the overhead of a loss-scale
optimizer. One switch is enough: an operation with a control dependency on a dead operation is dead,
too, so here the branch has a control dependency on its side of the switch. `tf.cond` of control
flow v1 treats operations without inputs in the same way.

In a function, a step keeps `tf.cond` as TensorFlow lowers it. Called as one operation, a branch
would cost less there, but Grappler would not optimize it, and the last bits of some optimizers
would differ from TensorFlow's classes.
"""

import contextlib
from typing import Any, Callable, Optional

from tf_lossscale._types import Operation, Tensor, ToOperation, Variable
from tf_lossscale._versions.base import tf, tf1
from tf_lossscale._versions.graphs import disable_lowering, in_xla_context


def branch(
    condition: Tensor,
    then: ToOperation,
    otherwise: Optional[ToOperation] = None,
    only_tests: bool = False,
) -> Tensor:
    """Runs `then` if `condition`, a bool tensor of shape `[]`, is true, else `otherwise`.

    Both return an operation to wait for, None in eager mode; `then` may return a bool tensor of
    shape `[]` instead. The result is that tensor, or any value of `then` in eager mode; True
    otherwise. `only_tests`: the branch changes no variable, so that it may run unoptimized.
    """
    if tf.executing_eagerly():
        if condition:
            return then()
        if otherwise is not None:
            otherwise()
        return tf.constant(True)
    # XLA may compile functions, and needs proper conditionals; and control dependencies are not
    # always passed on to the threads in which a strategy runs its replicas.
    needs_conditional = in_xla_context() or tf.distribute.has_strategy()
    if not (needs_conditional or tf1.get_default_graph().building_function):
        return _gated(condition, then, otherwise)
    # The name of a conditional is part of checkpoint keys: with control flow v1, optimizers make
    # their non-slot variables inside it, such as `cond/beta1_power`.
    result = tf.cond(condition, lambda: _flag(then()), lambda: _after(otherwise and otherwise()))
    # Without lowering, a conditional and all that is in it run on one device.
    devices = tf.config.experimental.list_logical_devices() if only_tests else []
    if len(devices) == 1 and not needs_conditional:
        disable_lowering(result)
    return result


def gate(condition: Tensor, otherwise: ToOperation) -> Tensor:
    """Runs `otherwise` if `condition` is false, in a graph, without a name in a v1 collection.

    `otherwise` returns an operation to wait for. It must create all its operations itself, which no
    replica of a strategy does. Returns a bool tensor that is available afterwards.
    """
    if tf1.get_default_graph().building_function:
        return tf.cond(condition, lambda: tf.constant(True), lambda: _after(otherwise()))
    return _gated(condition, lambda: None, otherwise)


def _gated(condition: Tensor, then: ToOperation, otherwise: Optional[ToOperation]) -> Tensor:
    """Builds a conditional with one switch, in the graph of a Session; returns what `branch` does.

    Both functions are built in the current graph. Their operations wait for one end of the switch,
    so that a Session runs those of one branch only. They must create them all themselves: an
    operation from outside would run in any case. Names begin with `cond/`, as with `tf.cond`.
    """
    with tf1.name_scope(None, "cond") as scope:
        switch = tf.raw_ops.Switch(data=condition, pred=condition)
        skips, runs = tf.identity(switch.output_false), tf.identity(switch.output_true)

    # Variables created by `then` get the names that `tf.cond` gives them: within its scope with
    # control flow v1, outside it with v2. Operations are always within it, where they do not change
    # the names of others, such as the `group_deps` of a program.
    def create_outside(create: Callable[..., Variable], **arguments: Any) -> Variable:
        current = f"{tf1.get_default_graph().get_name_scope()}/"
        inner = current[len(scope) :] if current.startswith(scope) else ""
        with tf1.name_scope(inner or None):
            return create(**arguments)

    is_v2 = tf1.control_flow_v2_enabled()
    naming = tf1.variable_creator_scope(create_outside) if is_v2 else contextlib.nullcontext()
    with tf1.name_scope(scope):
        with naming, tf.control_dependencies([runs]):
            result = then()
        with tf.control_dependencies([runs]):
            done = _flag(result)
        with tf.control_dependencies([skips]):
            skipped = _after(otherwise and otherwise())
        return tf.raw_ops.Merge(inputs=[skipped, done]).output


def _after(operation: Optional[Operation]) -> Tensor:
    with tf.control_dependencies([] if operation is None else [operation]):
        return tf.constant(True)


def _flag(result: Optional[Operation]) -> Tensor:
    return result if isinstance(result, tf.Tensor) else _after(result)
