"""One step of a wrapped Keras optimizer: all replicas apply it, or none does.

A step goes one way. The wrapper prepares a `StepRequest` in the context of one replica. `step`
decides once for all replicas, by the finite check or by a user's own loss scale. One conditional
applies the gradients or counts a skipped step. The loss scale advances: on Keras 2 before that
conditional, on Keras 3 after it, as in the original classes.

What the inner optimizer makes of finite gradients (clipping, transformers, overrides) is applied
as it is, and nothing of the inner optimizer is replaced during a step. So the norm of finite
gradients can overflow, and weights become NaN, as with the original classes.
"""

import dataclasses
import functools
from typing import Callable, List, NamedTuple, Optional, Sequence, Union

from tf_lossscale._core.conditional import branch
from tf_lossscale._core.finite import all_finite
from tf_lossscale._core.watching import Step, Watch, is_watched, watch_step, watch_unconditional
from tf_lossscale._replicas import agreement
from tf_lossscale._types import (
    Gradient,
    Gradients,
    Nest,
    Operation,
    Pairs,
    PerReplica,
    Protocol,
    ScaleState,
    Strategy,
    Tensor,
    ToOperation,
    Variable,
    Variables,
)
from tf_lossscale._versions.base import do_not_convert, tf, tf1
from tf_lossscale._versions.replicas import replica_id, supports_merge_call


class StepWrapper(Protocol):
    """What the step needs of a wrapper."""

    _state: ScaleState
    _advances_first: bool  # whether the scale advances before the gradients are applied

    def _apply_in_replica(
        self, gradients: Gradients, arguments: "StepArguments"
    ) -> Optional[Operation]:
        """Lets the inner optimizer apply gradients in one replica; returns an operation."""

    def _counter_of_skipped(self) -> Optional[Variable]:
        """Returns the variable that also counts skipped steps, if there is one."""


@dataclasses.dataclass(eq=False)
class StepArguments:
    """Arguments of a step, in an object that a strategy passes on without unpacking it."""

    variables: Variables
    name: Optional[str] = None  # of the operation
    aggregate: bool = False  # whether the gradients still have to be summed over the replicas

    @property
    def value(self) -> Variables:
        """The variables, under the name by which overrides of `_apply_gradients` read them."""
        return self.variables

    @classmethod
    def passed(
        cls, wrapped_vars: "StepArguments", name: Optional[str], aggregate: Optional[bool]
    ) -> "StepArguments":
        """Returns the arguments that an override of `_apply_gradients` passed on, or left out."""
        given = wrapped_vars if isinstance(wrapped_vars, cls) else cls(wrapped_vars.value)
        name = given.name if name is None else name
        aggregate = given.aggregate if aggregate is None else aggregate
        return cls(given.variables, name, aggregate)


class StepRequest(NamedTuple):
    """What one replica is to apply."""

    pairs: Pairs  # the gradients, or None, and their variables
    own: Sequence[Gradient]  # the gradients of this replica alone, which a user's loss scale gets
    # The gradients that must be finite: sums over the replicas, if possible.
    tested: Sequence[Gradient]
    arguments: StepArguments
    same_on_replicas: bool = True  # whether all replicas test equal gradients

    @property
    def gradients(self) -> List[Optional[Gradient]]:
        return [gradient for gradient, _ in self.pairs]

    @property
    def variables(self) -> List[Variable]:
        return [variable for gradient, variable in self.pairs if gradient is not None]


@do_not_convert
def reduce_sum(gradients: Gradients) -> List[Gradient]:
    """Returns the gradients summed over all replicas, in a replica context."""
    context = tf.distribute.get_replica_context()
    # One call for all gradients, as optimizers do it, so that they are packed into few transfers.
    return list(context.all_reduce(tf.distribute.ReduceOp.SUM, list(gradients)))


@do_not_convert
def step(wrapper: StepWrapper, request: StepRequest) -> Optional[Operation]:
    """Applies unscaled gradients, or skips the step, and updates the loss scale.

    Called in a replica context. Returns an operation in a graph, None in eager mode.
    """
    if not tf.executing_eagerly():
        wrapper.__dict__["_is_traced"] = True
    if not wrapper._state.dynamic:
        return _apply_always(wrapper, request)
    if wrapper._state.decides:
        decide = functools.partial(_apply_as_decided, wrapper, request)
        return agreement.merge(decide, list(request.own), request.gradients, request.arguments)
    return _apply_if_finite(wrapper, request)


def _apply_always(wrapper: StepWrapper, request: StepRequest) -> Optional[Operation]:
    describe = functools.partial(_described, wrapper, request)
    watched = watch_unconditional(wrapper, request.tested, describe)
    with watched.around():
        done = _group(wrapper._apply_in_replica(request.gradients, request.arguments))
    watched.finished(done, True)
    return done


def _apply_if_finite(wrapper: StepWrapper, request: StepRequest) -> Optional[Operation]:
    finite = all_finite(request.tested)
    if not request.same_on_replicas:
        finite = agreement.all_replicas_agree(finite)
    seen = list(request.tested) if is_watched(wrapper) else []
    if not tf.distribute.has_strategy() or not supports_merge_call():
        return _apply_in_this_replica(wrapper, request, finite, seen)
    in_all = functools.partial(_apply_in_all_replicas, wrapper, request)
    return agreement.merge(in_all, finite, seen, request.gradients, request.arguments)


def _apply_in_this_replica(
    wrapper: StepWrapper, request: StepRequest, finite: Tensor, seen: Sequence[PerReplica]
) -> Optional[Operation]:
    """Makes the step without a strategy, or in each replica for itself."""
    watched = Watch()
    if agreement.replica_count() == 1 or replica_id() == 0:  # it reports the step of all
        watched = watch_step(_described(wrapper, request, tf.distribute.get_strategy(), seen))

    def apply() -> Optional[Operation]:
        return wrapper._apply_in_replica(request.gradients, request.arguments)

    return _run(wrapper, finite, apply, functools.partial(wrapper._state.advance, finite), watched)


def _apply_in_all_replicas(
    wrapper: StepWrapper,
    request: StepRequest,
    strategy: Strategy,
    flags: Tensor,
    seen: Sequence[PerReplica],
    gradients: Gradients,
    arguments: StepArguments,
) -> Optional[Operation]:
    """Makes the step in a cross-replica context, with the values of all replicas."""
    finite = strategy.experimental_local_results(flags)[0]
    watched = watch_step(_described(wrapper, request, strategy, seen))

    def apply() -> Optional[Operation]:
        return agreement.call_in_replicas(
            strategy, wrapper._apply_in_replica, (gradients, arguments)
        )

    return _run(wrapper, finite, apply, functools.partial(wrapper._state.advance, finite), watched)


def _apply_as_decided(
    wrapper: StepWrapper,
    request: StepRequest,
    strategy: Strategy,
    own: Sequence[PerReplica],
    gradients: Gradients,
    arguments: StepArguments,
) -> Optional[Operation]:
    """Makes a step as a user's own loss scale decides, in a cross-replica context."""
    described = _described(wrapper, request, strategy, own)
    is_alone = strategy.num_replicas_in_sync == 1
    watched = watch_step(described._replace(are_applied=is_alone))  # before the scale is updated
    with watched.around():
        updated, should_apply = wrapper._state.loss_scale.update(list(own))
    if tf.executing_eagerly() or not isinstance(should_apply, bool):
        should_apply = agreement.all_workers_agree(should_apply)
    if should_apply is not True:  # for which the original makes no conditional
        should_apply = tf.convert_to_tensor(should_apply)

    def apply() -> Optional[Operation]:
        return agreement.call_in_replicas(
            strategy, wrapper._apply_in_replica, (gradients, arguments)
        )

    return _run(wrapper, should_apply, apply, lambda: updated, watched)


def _described(
    wrapper: StepWrapper, request: StepRequest, strategy: Strategy, gradients: Gradients
) -> Step:
    """Describes a step to those who watch it, from the gradients of all replicas."""
    tested = [strategy.experimental_local_results(gradient) for gradient in gradients]
    is_alone = strategy.num_replicas_in_sync == 1
    aggregate = request.arguments.aggregate
    return Step(
        wrapper,
        request.variables,
        tested,
        are_applied=is_alone or not aggregate,
        summed_by_caller=not (is_alone or aggregate or request.same_on_replicas),
    )


def _run(
    wrapper: StepWrapper,
    should_apply: Union[bool, Tensor],
    apply: Callable[[], Nest],
    advance: ToOperation,
    watched: Watch,
) -> Optional[Operation]:
    """Applies or skips a step that is decided, and advances the loss scale.

    Args:
      wrapper: the loss-scale optimizer.
      should_apply: a bool tensor of shape `[]`, or True, which needs no conditional.
      apply: applies the gradients in all replicas; returns operations.
      advance: updates the loss scale; returns an operation, None in eager mode.
      watched: what watchers add to the step.

    Returns:
      An operation; None in eager mode.
    """

    def skip() -> Optional[Operation]:
        counter = wrapper._counter_of_skipped()
        counted = None if counter is None else counter.assign_add(1)
        noticed = None if watched.skipped is None else watched.skipped()
        return _group(counted, noticed)

    def apply_all() -> Optional[Operation]:
        return _group(apply())

    updated = None
    with watched.around():
        if wrapper._advances_first:
            updated = advance()
        applied = apply_all() if should_apply is True else branch(should_apply, apply_all, skip)
        if not wrapper._advances_first:
            with tf1.control_dependencies([] if applied is None else [applied]):
                updated = advance()
    return _group(applied, updated, *watched.finished(applied, should_apply))


def _group(*results: Nest) -> Optional[Operation]:
    if tf.executing_eagerly():
        return None
    operations = [result for result in tf.nest.flatten(list(results)) if result is not None]
    return tf.group(*operations)
