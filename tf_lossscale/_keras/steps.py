"""One step of a wrapped Keras optimizer: all replicas apply it, or none does.

The gradients are tested before the inner optimizer gets them, and again if it may make them
non-finite: options such as `gradient_transformers` and `global_clipnorm`, and overrides of methods
such as `_transform_gradients`, run within its step. The originals apply the NaN. There is no public
hook after them, so the method that updates the variables is replaced during the step by one that
first tests its gradients; `update_methods` lists those of each kind of optimizer. Methods such as
`update_step`, which process one gradient at a time while the variables change, are not covered.
"""

import contextlib
import dataclasses
import weakref
from typing import Any, Callable, Dict, Iterable, List, MutableMapping, Optional, Sequence

from tf_lossscale._core import replicas
from tf_lossscale._core.conditional import branch
from tf_lossscale._core.finite import all_finite
from tf_lossscale._core.scaling import Pairs, gradients_of
from tf_lossscale._core.steps import Step, Watch, is_watched, watch_step, watch_unconditional
from tf_lossscale._versions.base import do_not_convert, overridden, tf, tf1
from tf_lossscale._versions.graphs import graphs_around
from tf_lossscale._versions.keras_optimizers import UpdateMethods, update_methods
from tf_lossscale._versions.replicas import replica_id, supports_merge_call


@dataclasses.dataclass(eq=False)
class StepArguments:
    """Arguments of a step, in an object that a strategy passes on without unpacking it."""

    variables: Sequence[Any]
    name: Optional[str]
    aggregate: bool  # whether the gradients still have to be summed over the replicas


@do_not_convert
def reduce_sum(gradients: Sequence[Any]) -> List[Any]:
    context = tf.distribute.get_replica_context()
    # One call for all gradients, as optimizers do it, so that they are packed into few transfers.
    return list(context.all_reduce(tf.distribute.ReduceOp.SUM, list(gradients)))


@do_not_convert
def step(
    optimizer: Any,
    own: Sequence[Any],
    pairs: Pairs,
    name: Optional[str],
    aggregate: bool,
    same_on_replicas: bool = True,
    checks_late: bool = True,
    summed: Optional[Sequence[Any]] = None,
) -> Any:
    """Applies unscaled gradients if they are finite, and updates the loss scale.

    With a fixed loss scale, every step is applied. One of a user's own class decides. Returns an
    operation in a graph, None in eager mode.

    Args:
      optimizer: the loss-scale optimizer, whose `_apply(gradients, rest)` applies the gradients in
        a replica context.
      own: the gradients of this replica, without None: a user's own loss scale gets them.
      pairs: the gradients to apply, or None, and their variables.
      name: name for the operation, or None.
      aggregate: whether the gradients still have to be summed over the replicas.
      same_on_replicas: whether all replicas have the same gradients, and need not agree.
      checks_late: whether to test again what the inner optimizer makes of the gradients.
      summed: the gradients to test, without None, if not those of `pairs`.
    """
    state = optimizer._state
    rest = StepArguments([variable for _, variable in pairs], name, aggregate)
    apply, args = optimizer._apply, ([gradient for gradient, _ in pairs], rest)
    variables = [variable for gradient, variable in pairs if gradient is not None]

    def describe(strategy: Any, gradients: Any) -> Step:
        """Describes the step from the gradients of all replicas, in a cross-replica context."""
        tested = [strategy.experimental_local_results(each) for each in gradients]
        several = replicas.replica_count() > 1
        by_caller = several and not same_on_replicas and not aggregate
        return Step(optimizer, variables, tested, not (several and aggregate), by_caller)

    summed = gradients_of(pairs) if summed is None else summed
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
        finite = replicas.all_replicas_agree(finite)

    def apply_and_update(apply_all: Callable[..., Any], watched: Watch) -> Any:
        def run() -> Any:
            try:
                return apply_all()
            except BaseException:
                # On Keras 2, the originals update the scale before they apply the gradients.
                if tf.executing_eagerly() and optimizer._family.kind != "keras3":
                    state.advance(finite)
                raise

        _reserve_first_conditional_name()
        with watched.around():
            if methods is None:
                applied, was_applied = branch(finite, run, watched.skipped), finite
            else:
                applied = branch(finite, lambda: _run_with_late_check(inner, methods, run))
                was_applied = tf.logical_and(finite, applied)
                if watched.skipped is not None:
                    applied = branch(was_applied, lambda: None, watched.skipped)
            always_counts = methods is not None and methods.always_counts
            counted = _count_skipped(optimizer, finite if always_counts else was_applied)
            with tf1.control_dependencies([] if applied is None else [applied]):
                updated = state.advance(was_applied)
        return _group(applied, counted, updated, *watched.finished(applied, was_applied))

    seen = list(tested) if is_watched(optimizer) else []
    if not tf.distribute.has_strategy() or not supports_merge_call():
        is_first = replicas.replica_count() == 1 or replica_id() == 0  # it reports the step of all
        described = describe(tf.distribute.get_strategy(), seen)
        watched = watch_step(described) if is_first else Watch()
        return apply_and_update(lambda: apply(*args), watched)

    def in_cross_replica(strategy: Any, flags: Any, seen: Any, *args: Any) -> Any:
        nonlocal finite
        finite = strategy.experimental_local_results(flags)[0]
        watched = watch_step(describe(strategy, seen))
        return apply_and_update(
            lambda: _group(*replicas.call_in_replicas(strategy, apply, args)), watched
        )

    return replicas.merge(in_cross_replica, finite, seen, *args)


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
            should_apply = replicas.all_workers_agree(should_apply)

        def run() -> Any:
            return _group(*replicas.call_in_replicas(strategy, optimizer._apply, args))

        _reserve_first_conditional_name()
        with watched.around():
            if should_apply is True:  # without a conditional, as with the original
                applied = run()
            else:
                applied = branch(tf.convert_to_tensor(should_apply), run, watched.skipped)
            counted = _count_skipped(optimizer, should_apply)
        return _group(applied, counted, updated, *watched.finished(applied, should_apply))

    return replicas.merge(in_cross_replica, gradients, *args)


def _run_with_late_check(optimizer: Any, methods: UpdateMethods, run: Callable[[], Any]) -> Any:
    """Makes a step with `run`; returns whether it was finite to the end, and so was applied."""
    decays: List[Any] = []
    flag = _FiniteFlag(optimizer)

    # Each gets the method that it replaces.

    def if_finite(update: Any, strategy: Any, grads_and_vars: Any, *args: Any, **more: Any) -> Any:
        pairs = list(grads_and_vars)
        results = map(strategy.experimental_local_results, gradients_of(pairs))
        flag.record(all_finite([value for values in results for value in values]))

        def apply() -> Any:
            for decay, variables in decays[:1]:  # the calls of all replicas are the same
                if tf.distribute.has_strategy() and tf.distribute.in_cross_replica_context():
                    strategy.extended.call_for_each_replica(decay, args=(variables,))
                else:
                    decay(variables)
            return _group(update(strategy, pairs, *args, **more))

        return branch(flag.so_far(), apply)

    def accumulate_if_finite(accumulate: Any, gradients: Any, *accumulators: Any) -> None:
        flag.record(replicas.all_replicas_agree(all_finite(gradients)))
        branch(flag.so_far(), lambda: accumulate(gradients, *accumulators))  # none in Keras 3.0

    def average_if_finite(average: Any, variables: Any) -> None:
        branch(flag.so_far(), lambda: average(variables))

    replacements: Dict[str, Callable[..., Any]] = {methods.update: if_finite}
    if methods.decay and getattr(optimizer, "weight_decay", None) is not None:
        # Weight decay runs before the update, so it is deferred until the step is tested.
        replacements[methods.decay] = lambda *call: decays.append(call)
    if methods.accumulate and getattr(optimizer, "gradient_accumulation_steps", None):
        replacements[methods.accumulate] = accumulate_if_finite
    if getattr(optimizer, "use_ema", False):
        replacements.update(dict.fromkeys(methods.average, average_if_finite))
    with contextlib.ExitStack() as stack:
        for name, function in replacements.items():
            stack.enter_context(overridden([optimizer], name, function))
        done = run()
    with tf1.control_dependencies([] if done is None else [done]):
        return tf.identity(flag.after_step())


class _FiniteFlag:
    """Whether the gradients of one step were finite, as tested anywhere within the step.

    The test may run in a branch (in an optimizer that accumulates gradients) or in a nested
    function. Only a variable can carry the result out of there.
    """

    # Not an attribute of the optimizer, which would save it; but functions do not keep it alive.
    _variables: "MutableMapping[Any, Any]" = weakref.WeakKeyDictionary()

    def __init__(self, optimizer: Any) -> None:
        self._optimizer = optimizer
        self._tensor: Optional[Any] = None
        self._graphs = list(graphs_around())

    def record(self, finite: Any) -> None:
        self._tensor = finite
        if _is_seen_from(self._graphs, finite):
            return
        with tf.init_scope():
            # In a Session nothing would initialize the variable, and each replica would need one.
            if not tf.executing_eagerly() or replicas.replica_count() > 1:
                return
            if self._optimizer not in self._variables:
                self._variables[self._optimizer] = tf.compat.v2.Variable(True, trainable=False)
        self._variables[self._optimizer].assign(finite)

    def so_far(self) -> Any:
        """Returns the last result, a bool tensor of shape `[]`, within the step."""
        if self._tensor is not None and _is_seen_from(graphs_around(), self._tensor):
            return self._tensor
        variable = self._variables.get(self._optimizer)
        return tf.constant(True) if variable is None else variable.read_value()

    def after_step(self) -> Any:
        """Returns the last result, and resets it for the next step."""
        finite = self.so_far()
        variable = self._variables.get(self._optimizer)
        if variable is not None:
            with tf1.control_dependencies([finite]):
                variable.assign(True)
        return finite


def _is_seen_from(graphs: Iterable[Any], tensor: Any) -> bool:
    """Whether operations in the innermost of `graphs` (none in eager mode) can use a tensor."""
    own = getattr(tensor, "graph", None)  # of an eager tensor, it raises an AttributeError
    return own is None or own in graphs


def _reserve_first_conditional_name() -> None:
    """Gives variables that are created in the branch the same names as in the original.

    The original updates its loss scale in a first conditional, so the names of the variables start
    with that of the second one (`cond_1/Adam/iter`).
    """
    if not tf.executing_eagerly():
        tf1.get_default_graph().unique_name("cond")


def _count_skipped(optimizer: Any, finite: Any) -> Any:
    counter = None if tf.executing_eagerly() and finite else optimizer._counter_of_skipped()
    if counter is not None:
        return counter.assign_add(tf.cast(tf.logical_not(finite), counter.dtype))
    return None


def _group(*results: Any) -> Any:
    if tf.executing_eagerly():
        return None
    flat = tf.nest.flatten(list(results))
    return tf.group(*[each for each in flat if each is not None])
