"""One step of a wrapped Keras optimizer: all replicas apply it, or none does."""

import functools
from typing import Any, Callable, List, Optional, Sequence

from tf_lossscale._core.conditional import branch
from tf_lossscale._core.finite import all_finite
from tf_lossscale._core.replicas import (
    all_replicas_agree,
    all_workers_agree,
    call_in_replicas,
    merge,
    replica_count,
)
from tf_lossscale._core.steps import Step, Watch, is_watched, watch_step, watch_unconditional
from tf_lossscale._keras.late_check import LateCheck
from tf_lossscale._versions.base import do_not_convert, tf, tf1
from tf_lossscale._versions.replicas import replica_id, supports_merge_call

__all__ = ["StepArguments", "reduce_sum", "step"]


class StepArguments:
    """Arguments of a step, in an object that a strategy passes on without unpacking it.

    Attributes:
      variables: the variables that the step changes.
      name: name for the operation, or None.
      aggregate: whether the gradients still have to be summed over the replicas.
    """

    def __init__(self, variables: Sequence[Any], name: Optional[str], aggregate: bool) -> None:
        self.variables = variables
        self.name = name
        self.aggregate = aggregate


@do_not_convert
def reduce_sum(gradients: Sequence[Any]) -> List[Any]:
    """Returns the gradients summed over all replicas, in a replica context."""
    context = tf.distribute.get_replica_context()
    # One call for all gradients, as optimizers do it, so that they are packed into few transfers.
    return list(context.all_reduce(tf.distribute.ReduceOp.SUM, list(gradients)))


@do_not_convert
def step(
    optimizer: Any,
    gradients: Sequence[Any],
    variables: Sequence[Any],
    apply: Callable[..., Any],
    args: Sequence[Any],
    same_on_replicas: bool = True,
    late_check: Optional[LateCheck] = None,
) -> Any:
    """Applies unscaled gradients if they are finite, and updates the loss scale.

    With a fixed loss scale, every step is applied. One of a user's own class decides.

    Args:
      optimizer: the loss-scale optimizer.
      gradients: the gradients to test: tensors, `IndexedSlices` and None, as they will be applied.
      variables: their variables.
      apply: called as `apply(*args)` in a replica context, to apply the gradients.
      args: its arguments, of which the last is the `StepArguments`.
      same_on_replicas: whether the gradients are the same on all replicas, so that each replica
        gets the same result without communication.
      late_check: keeps the weights unchanged if the inner optimizer makes the gradients
        non-finite; None if it does not transform them.

    Returns:
      An operation in a graph; None in eager mode.
    """
    state = optimizer._state

    def describe(strategy: Any, gradients: Any) -> Step:
        """Describes the step from the gradients of all replicas, in a cross-replica context."""
        tested = [strategy.experimental_local_results(each) for each in gradients]
        several, aggregate = replica_count() > 1, args[-1].aggregate
        by_caller = several and not same_on_replicas and not aggregate
        return Step(optimizer, variables, tested, not (several and aggregate), by_caller)

    if not state.dynamic:
        watched = watch_unconditional(optimizer, gradients, describe)
        with watched.around():
            done = _group(apply(*args))
        watched.finished(done, True)
        return done
    if state.decides:
        return _step_decided_by(optimizer, gradients, apply, args, describe)
    finite = all_finite(gradients)
    if not same_on_replicas:
        finite = all_replicas_agree(finite)

    def apply_and_update(run: Callable[..., Any], watched: Watch) -> Any:
        _reserve_first_conditional_name()
        with watched.around():
            if late_check is None:
                applied, was_applied = branch(finite, run, watched.skipped), finite
            else:
                applied = branch(finite, functools.partial(_run_with_late_check, late_check, run))
                was_applied = tf.logical_and(finite, applied)
                if watched.skipped is not None:
                    applied = branch(was_applied, _nothing, watched.skipped)
            always_counts = late_check is not None and late_check.always_counts
            counted = _count_skipped(optimizer, finite if always_counts else was_applied)
            with tf1.control_dependencies([each for each in [applied] if _is_in_graph(each)]):
                updated = state.advance(was_applied)
        return _group(applied, counted, updated, *watched.finished(applied, was_applied))

    tested = list(gradients) if is_watched(optimizer) else []
    if not tf.distribute.has_strategy() or not supports_merge_call():
        is_first = replica_count() == 1 or replica_id() == 0  # it reports the step of all
        step = describe(tf.distribute.get_strategy(), tested)
        return apply_and_update(lambda: apply(*args), watch_step(step) if is_first else Watch())

    def in_cross_replica(strategy: Any, flags: Any, tested: Any, *args: Any) -> Any:
        nonlocal finite
        finite = strategy.experimental_local_results(flags)[0]
        watched = watch_step(describe(strategy, tested))
        return apply_and_update(lambda: _group(*call_in_replicas(strategy, apply, args)), watched)

    context = tf.distribute.get_replica_context()
    return context.merge_call(in_cross_replica, args=(finite, tested, *args))


def _step_decided_by(
    optimizer: Any,
    gradients: Sequence[Any],
    apply: Callable[..., Any],
    args: Sequence[Any],
    describe: Callable[[Any, Sequence[Any]], Step],
) -> Any:
    """Makes a step as a user's own loss scale decides, which gets each replica's gradients."""

    def in_cross_replica(strategy: Any, gradients: Any, *args: Any) -> Any:
        step = describe(strategy, gradients)
        alone = strategy.num_replicas_in_sync == 1
        watched = watch_step(step._replace(are_applied=alone))  # sees the scale before its update
        with watched.around():
            updated, should_apply = optimizer._state.loss_scale.update(list(gradients))
        if tf.executing_eagerly() or not isinstance(should_apply, bool):
            should_apply = all_workers_agree(should_apply)

        def run() -> Any:
            return _group(*call_in_replicas(strategy, apply, args))

        _reserve_first_conditional_name()
        with watched.around():
            if should_apply is True:  # without a conditional, as with the original
                applied = run()
            else:
                applied = branch(tf.convert_to_tensor(should_apply), run, watched.skipped)
            counted = _count_skipped(optimizer, should_apply)
        return _group(applied, counted, updated, *watched.finished(applied, should_apply))

    return merge(in_cross_replica, gradients, *args)


def _nothing() -> None:
    pass


def _reserve_first_conditional_name() -> None:
    """Gives variables that are created in the branch the same names as in the original.

    The original updates its loss scale in a first conditional, so the names of the variables start
    with that of the second one (`cond_1/Adam/iter`).
    """
    if not tf.executing_eagerly():
        tf1.get_default_graph().unique_name("cond")


def _run_with_late_check(late_check: LateCheck, run: Callable[..., Any]) -> Any:
    with late_check.checking() as was_finite:
        done = run()
    with tf1.control_dependencies([done] if _is_in_graph(done) else []):
        return tf.identity(was_finite())


def _count_skipped(optimizer: Any, finite: Any) -> Any:
    if tf.executing_eagerly() and finite:
        return None
    counter = optimizer._counter_of_skipped()
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
