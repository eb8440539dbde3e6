"""One step of a wrapped Keras optimizer: all replicas apply it, or none does."""

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
from tf_lossscale._keras.late_check import run_with_late_check
from tf_lossscale._versions.base import do_not_convert, tf, tf1
from tf_lossscale._versions.keras_optimizers import update_methods
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
    own: Sequence[Any],
    summed: Sequence[Any],
    gradients: Sequence[Any],
    rest: StepArguments,
    same_on_replicas: bool = True,
    checks_late: bool = True,
) -> Any:
    """Applies unscaled gradients if they are finite, and updates the loss scale.

    With a fixed loss scale, every step is applied. One of a user's own class decides.

    Args:
      optimizer: the loss-scale optimizer, whose `_apply(gradients, rest)` applies the gradients in
        a replica context.
      own: the gradients of this replica, without None: a user's own loss scale gets them.
      summed: the gradients to test otherwise, as they will be applied, without None.
      gradients: one for each variable of `rest`, or None.
      rest: the other arguments of `_apply`.
      same_on_replicas: whether the gradients are the same on all replicas, so that each replica
        gets the same result without communication.
      checks_late: whether the weights stay unchanged if the inner optimizer makes the gradients
        non-finite.

    Returns:
      An operation in a graph; None in eager mode.
    """
    state = optimizer._state
    apply, args = optimizer._apply, (gradients, rest)
    variables = [
        variable for variable, gradient in zip(rest.variables, gradients) if gradient is not None
    ]

    def describe(strategy: Any, gradients: Any) -> Step:
        """Describes the step from the gradients of all replicas, in a cross-replica context."""
        tested = [strategy.experimental_local_results(each) for each in gradients]
        several, aggregate = replica_count() > 1, rest.aggregate
        by_caller = several and not same_on_replicas and not aggregate
        return Step(optimizer, variables, tested, not (several and aggregate), by_caller)

    tested = own if state.decides else summed
    if not state.dynamic:
        watched = watch_unconditional(optimizer, tested, describe)
        with watched.around():
            done = _group(apply(*args))
        watched.finished(done, True)
        return done
    if state.decides:
        return _step_decided_by(optimizer, tested, args, describe)
    inner = optimizer.inner_optimizer
    methods = update_methods(optimizer._family, inner) if checks_late else None
    finite = all_finite(tested)
    if not same_on_replicas:
        finite = all_replicas_agree(finite)

    def apply_and_update(run: Callable[..., Any], watched: Watch) -> Any:
        _reserve_first_conditional_name()
        with watched.around():
            if methods is None:
                applied, was_applied = branch(finite, run, watched.skipped), finite
            else:
                applied = branch(finite, lambda: run_with_late_check(inner, methods, run))
                was_applied = tf.logical_and(finite, applied)
                if watched.skipped is not None:
                    applied = branch(was_applied, lambda: None, watched.skipped)
            always_counts = methods is not None and methods.always_counts
            counted = _count_skipped(optimizer, finite if always_counts else was_applied)
            in_graph = applied is not None and not tf.executing_eagerly()
            with tf1.control_dependencies([applied] if in_graph else []):
                updated = state.advance(was_applied)
        return _group(applied, counted, updated, *watched.finished(applied, was_applied))

    seen = list(tested) if is_watched(optimizer) else []
    if not tf.distribute.has_strategy() or not supports_merge_call():
        is_first = replica_count() == 1 or replica_id() == 0  # it reports the step of all
        described = describe(tf.distribute.get_strategy(), seen)
        watched = watch_step(described) if is_first else Watch()
        return apply_and_update(lambda: apply(*args), watched)

    def in_cross_replica(strategy: Any, flags: Any, seen: Any, *args: Any) -> Any:
        nonlocal finite
        finite = strategy.experimental_local_results(flags)[0]
        watched = watch_step(describe(strategy, seen))
        return apply_and_update(lambda: _group(*call_in_replicas(strategy, apply, args)), watched)

    context = tf.distribute.get_replica_context()
    return context.merge_call(in_cross_replica, args=(finite, seen, *args))


def _step_decided_by(
    optimizer: Any,
    gradients: Sequence[Any],
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
            return _group(*call_in_replicas(strategy, optimizer._apply, args))

        _reserve_first_conditional_name()
        with watched.around():
            if should_apply is True:  # without a conditional, as with the original
                applied = run()
            else:
                applied = branch(tf.convert_to_tensor(should_apply), run, watched.skipped)
            counted = _count_skipped(optimizer, should_apply)
        return _group(applied, counted, updated, *watched.finished(applied, should_apply))

    return merge(in_cross_replica, gradients, *args)


def _reserve_first_conditional_name() -> None:
    """Gives variables that are created in the branch the same names as in the original.

    The original updates its loss scale in a first conditional, so the names of the variables start
    with that of the second one (`cond_1/Adam/iter`).
    """
    if not tf.executing_eagerly():
        tf1.get_default_graph().unique_name("cond")


def _count_skipped(optimizer: Any, finite: Any) -> Any:
    if tf.executing_eagerly() and finite:
        return None
    counter = optimizer._counter_of_skipped()
    if counter is None:
        return None
    return counter.assign_add(tf.cast(tf.logical_not(finite), counter.dtype))


def _group(*results: Any) -> Any:
    if tf.executing_eagerly():
        return None
    flat = tf.nest.flatten(list(results))
    return tf.group(*[each for each in flat if each is not None])
