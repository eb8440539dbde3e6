"""Operations that run in some steps only, for less than `tf.cond` takes in a Session's graph.

`tf.cond` sends every tensor that a branch uses through a switch of its own: the gradients, and for
Adam three variables beside each, which is most of what a loss-scale optimizer adds to a step on
many small variables. One switch is enough. An operation that must wait for a dead one is dead
itself, so here the branch waits for the side of that switch that it belongs to. This is how
`tf.cond` of control flow v1 itself treats operations without inputs.

In a function the same cost goes where there is one device only: the conditional is kept whole then,
and the branch called like a function, instead of being taken apart into switches.
"""

from typing import Any, Callable

from tf_lossscale._versions.base import tf, tf1
from tf_lossscale._versions.graphs import disable_lowering, in_xla_context

__all__ = ["branch"]


def branch(condition: Any, then: Callable[[], Any]) -> Any:
    """Makes and runs `then` where `condition` holds.

    Args:
      condition: bool tensor of shape `[]`.
      then: returns a bool tensor of shape `[]`, or anything else to wait for: an operation, or None
        in eager mode.

    Returns:
      What `then` returned where it ran, if that is a bool tensor; True otherwise. In eager mode
      what is not a tensor is returned as it is.
    """
    if tf.executing_eagerly():
        return then() if condition else tf.constant(True)
    if _in_plain_graph():
        return _gated(condition, then)
    # The name of a conditional is part of checkpoint keys: with control flow v1, optimizers make
    # their non-slot variables inside it, such as `cond/beta1_power`.
    result = tf.cond(condition, lambda: _flag(then()), lambda: tf.constant(True))
    if _on_one_device():
        disable_lowering(result)
    return result


def _on_one_device() -> bool:
    # A conditional that is kept whole runs on one device, with all that is in it.
    if in_xla_context() or tf.distribute.has_strategy():
        return False
    return len(tf.config.experimental.list_logical_devices()) == 1


def _in_plain_graph() -> bool:
    # Functions may be compiled by XLA, which wants its conditionals whole; and the threads in which
    # a strategy runs its replicas do not all hand on what new operations have to wait for.
    in_function = tf1.get_default_graph().building_function
    return not (in_function or in_xla_context() or tf.distribute.has_strategy())


def _gated(condition: Any, then: Callable[[], Any]) -> Any:
    with tf1.name_scope(None, "cond") as scope:
        switch = tf.raw_ops.Switch(data=condition, pred=condition)
        skips, runs = tf.identity(switch.output_false), tf.identity(switch.output_true)
    # Variables that `then` makes are named as `tf.cond` would have it: in its scope with control
    # flow v1, and at the root with v2.
    naming = tf1.name_scope(None if tf1.control_flow_v2_enabled() else scope)
    with naming, tf.control_dependencies([runs]):
        result = then()
    with tf1.name_scope(scope):
        with tf.control_dependencies([runs]):
            done = _flag(result)
        with tf.control_dependencies([skips]):
            skipped = tf.constant(True)
        return tf.raw_ops.Merge(inputs=[skipped, done]).output


def _flag(result: Any) -> Any:
    if isinstance(result, tf.Tensor):
        return result
    with tf.control_dependencies([] if result is None else [result]):
        return tf.constant(True)
