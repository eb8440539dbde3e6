"""One step of a wrapped Keras optimizer: applied by all replicas, or by none."""

import functools
from typing import Any, Callable, List, Optional, Sequence

from tf_lossscale._core.conditional import branch
from tf_lossscale._core.finite import all_finite
from tf_lossscale._core.replicas import all_replicas_agree
from tf_lossscale._keras.transformed import LateCheck
from tf_lossscale._versions.base import do_not_convert, tf, tf1
from tf_lossscale._versions.replicas import supports_merge_call

__all__ = ["StepArguments", "reduce_sum", "step"]


class StepArguments:
    """Arguments of a step that a strategy must not look into.

    Attributes:
      variables: the variables that the step changes.
      name: name for the operation, or None.
      aggregate: whether the gradients are still to be added up over the replicas.
    """

    def __init__(self, variables: Sequence[Any], name: Optional[str], aggregate: bool) -> None:
        self.variables = variables
        self.name = name
        self.aggregate = aggregate


@do_not_convert
def reduce_sum(gradients: Sequence[Any]) -> List[Any]:
    """Returns the gradients added up over all replicas, in a replica context."""
    context = tf.distribute.get_replica_context()
    # One call for all, as optimizers do it: the values travel packed.
    return list(context.all_reduce(tf.distribute.ReduceOp.SUM, list(gradients)))


@do_not_convert
def step(
    state: Any,
    iterations: Callable[[], Any],
    gradients: Sequence[Any],
    apply: Callable[..., Any],
    args: Sequence[Any],
    same_on_replicas: bool = True,
    late_check: Optional[LateCheck] = None,
) -> Any:
    """Applies unscaled gradients if they are finite, and moves the loss scale.

    Args:
      state: the loss scale; a fixed one applies everything.
      iterations: returns the variable that a skipped step advances too, or None.
      gradients: what is tested: tensors, `IndexedSlices` and None, as they will be applied.
      apply: `apply(*args)` applies them, in a replica context.
      args: the arguments.
      same_on_replicas: whether all replicas have the same gradients here, and so find the same.
      late_check: tests what `apply` makes of the gradients, and leaves the weights alone if that
        is not finite; None if it applies them as they are.

    Returns:
      An operation in a graph; None in eager mode.
    """
    if not state.dynamic:
        return _group(apply(*args))
    finite = all_finite(gradients)
    if not same_on_replicas:
        finite = all_replicas_agree(finite)

    def everywhere(run: Callable[..., Any]) -> Any:
        _take_name_of_first_conditional()
        if late_check is None:
            applied, really = branch(finite, run), finite
        else:
            applied = branch(finite, functools.partial(_tested_again, late_check, run))
            really = tf.logical_and(finite, applied)
        always_counts = late_check is not None and late_check.always_counts
        counted = _count_skipped(iterations, finite if always_counts else really)
        with tf1.control_dependencies([each for each in [applied] if _is_in_graph(each)]):
            updated = state.advance(really)
        return _group(applied, counted, updated)

    if not tf.distribute.has_strategy() or not supports_merge_call():
        return everywhere(lambda: apply(*args))

    def in_cross_replica(strategy: Any, flags: Any, *args: Any) -> Any:
        nonlocal finite
        finite = strategy.experimental_local_results(flags)[0]

        def run() -> Any:
            done = strategy.extended.call_for_each_replica(apply, args=args)
            return _group(*strategy.experimental_local_results(done))

        return everywhere(run)

    context = tf.distribute.get_replica_context()
    return context.merge_call(in_cross_replica, args=(finite, *args))


def _take_name_of_first_conditional() -> None:
    """Lets variables that are made in the branch have the names that the original gives them.

    The original moves its loss scale in a conditional first, so that these are named after the
    second one (`cond_1/Adam/iter`).
    """
    if not tf.executing_eagerly():
        tf1.get_default_graph().unique_name("cond")


def _tested_again(late_check: LateCheck, run: Callable[..., Any]) -> Any:
    with late_check.checking() as was_finite:
        done = run()
    with tf1.control_dependencies([done] if _is_in_graph(done) else []):
        return tf.identity(was_finite())


def _count_skipped(iterations: Callable[[], Any], finite: Any) -> Any:
    if tf.executing_eagerly() and finite:
        return None
    counter = iterations()
    if counter is None:
        return None
    return counter.assign_add(tf.cast(tf.logical_not(finite), counter.dtype))


def _is_in_graph(value: Any) -> bool:
    return value is not None and not tf.executing_eagerly()


def _group(*results: Any) -> Any:
    if tf.executing_eagerly():
        return None
    flat = tf.nest.flatten(list(results))
    return tf.group(*[each for each in flat if each is not None])
