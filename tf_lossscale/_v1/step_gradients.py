"""The gradients of one step, summed over the replicas only once, then tested and applied.

A v1 optimizer sums the gradients of the replicas when it applies them. A second sum for the finite
test would double the traffic, and would even be wrong: with several workers, TensorFlow 1.15 to 2.4
overwrite the inputs of some sums with the result (Grappler's scoped allocator), so the later sum
would add values that are sums already. There, copies are summed, because a program
may read its gradients again: for their norm, or for a second optimizer.
"""

from typing import Callable, Dict, List, NamedTuple, Optional, Sequence

from tf_lossscale._core.conditional import branch
from tf_lossscale._core.finite import all_finite
from tf_lossscale._core.gradient_sums import summed_pairs
from tf_lossscale._core.scaling import gradients_of
from tf_lossscale._core.watching import Step, Watch, watch_step, watch_unconditional
from tf_lossscale._replicas import agreement
from tf_lossscale._types import (
    Gradient,
    Operation,
    Optimizer,
    Pair,
    Pairs,
    PerReplica,
    Strategy,
    Tensor,
    V1Optimizer,
    Variable,
)
from tf_lossscale._v1.scaled_loss import ScaledLossOptimizer
from tf_lossscale._versions.base import do_not_convert, tf, tf1
from tf_lossscale._versions.replicas import already_summed, has_own_sum, sum_is_off


class StepGradients(NamedTuple):
    """The gradients that a step tests, and those that it passes to the inner optimizer."""

    pairs: Pairs  # of gradients, or None, and variables, as values of all replicas
    # For each gradient that is not None: tensors, `IndexedSlices`.
    tested: Sequence[Sequence[Gradient]]
    # The optimizers that must not sum the gradients again.
    already_summed_for: Sequence[Optimizer] = ()
    workers_may_differ: bool = False  # whether workers may test different values
    are_applied: bool = True  # whether each replica applies what is tested of it

    @do_not_convert
    def all_finite(self) -> Tensor:
        """Returns a bool tensor of shape `[]`, equal on all workers: whether all are finite."""
        finite = all_finite([tensor for values in self.tested for tensor in values])
        return agreement.all_workers_agree(finite) if self.workers_may_differ else finite

    def apply_if(
        self,
        condition: Tensor,
        optimizer: Optimizer,
        apply: Callable[[Strategy, Sequence[Pair]], Optional[Operation]],
        watched: Watch,
    ) -> Tensor:
        """Applies the gradients on all replicas if `condition` is true, otherwise on none.

        Args:
          condition: a bool tensor of shape `[]`, or a Python bool, which needs no conditional.
          optimizer: the inner optimizer.
          apply: lets it apply the gradients in all replicas; gets the strategy and the pairs.
          watched: what watchers add to the step.

        Returns:
          An operation or tensor to run; None in eager mode.
        """

        def step() -> Operation:
            with already_summed(self.already_summed_for):
                return apply(tf.distribute.get_strategy(), tuple(self.pairs))

        if condition is True:
            return step()
        if condition is False:
            done = None if watched.skipped is None else watched.skipped()
            return tf.no_op() if done is None else done
        # Its queue runner would compute gradients for `condition` of its own, from other input.
        if any(isinstance(link, tf1.train.SyncReplicasOptimizer) for link in chain_of(optimizer)):
            raise ValueError(
                "A SyncReplicasOptimizer cannot be inside a loss-scale optimizer that skips "
                "steps. Use a tf.distribute strategy, or a FixedLossScale."
            )
        applied = branch(condition, step, watched.skipped)
        return None if tf.executing_eagerly() else applied

    def watched_by(self, wrapper: Optimizer) -> Watch:
        variables = [variable for gradient, variable in self.pairs if gradient is not None]
        return watch_step(Step(wrapper, variables, self.tested, self.are_applied))


def apply_in_replicas(
    optimizer: Optimizer,
    global_step: Optional[Variable],
    name: Optional[str],
    strategy: Strategy,
    pairs: Sequence[Pair],
) -> Optional[Operation]:
    """Lets the inner optimizer apply gradients in all replicas, in a cross-replica context.

    Returns an operation; None in eager mode, where it has run already.
    """
    arguments = (list(pairs), global_step, name)
    return tf.group(*agreement.call_in_replicas(strategy, optimizer.apply_gradients, arguments))


@do_not_convert
def gradients_of_step(
    strategy: Strategy,
    wrapper: Optimizer,
    optimizer: Optimizer,
    pairs: Pairs,
    are_tested: bool = True,
) -> StepGradients:
    """Sums the gradients of a step over all replicas, in a cross-replica context.

    Unless `are_tested`, the optimizer sums them: something else tests each replica's gradients.
    """
    gradients = gradients_of(pairs)
    given = _local(strategy, gradients)
    if strategy.num_replicas_in_sync == 1:
        return StepGradients(pairs, given)
    if not are_tested:
        return StepGradients(pairs, given, are_applied=False)
    if sum_is_off(wrapper):
        # The caller, a cross-shard optimizer, has summed them; subgroups have different sums.
        return StepGradients(pairs, given, workers_may_differ=True)
    if not leaves_sum_to_tensorflow(optimizer):
        # This optimizer needs the gradients of each replica.
        tested = _local(strategy, agreement.summed_to_test(strategy, gradients))
        return StepGradients(pairs, tested, are_applied=False)
    pairs = summed_pairs(strategy, pairs)
    tested = _local(strategy, gradients_of(pairs))
    return StepGradients(pairs, tested, chain_of(optimizer))


def watch_fixed(wrapper: Optimizer, optimizer: Optimizer, pairs: Pairs) -> Watch:
    """Returns the watch over a step that is not tested, in a replica context."""
    variables = [variable for gradient, variable in pairs if gradient is not None]

    def describe(strategy: Strategy, gradients: Sequence[PerReplica]) -> Step:
        sums = _local(strategy, agreement.summed_to_test(strategy, gradients))
        return Step(wrapper, variables, sums, leaves_sum_to_tensorflow(optimizer))

    return watch_unconditional(wrapper, gradients_of(pairs), describe)


def leaves_sum_to_tensorflow(optimizer: Optimizer) -> bool:
    """Returns whether a step of `optimizer` begins with TensorFlow's own sum over the replicas.

    True for TensorFlow's own optimizers, and for our loss-scale optimizers around them. False for a
    class with its own `apply_gradients`, which may change the gradients before the sum.
    """
    chain = chain_of(optimizer)
    if not chain or sum_is_off(optimizer):
        return False
    return all(_is_wrapper(link) or not has_own_sum(link, tf1.train.Optimizer) for link in chain)


def chain_of(optimizer: Optimizer) -> List[V1Optimizer]:
    """Returns a v1 optimizer and all that it wraps, directly or not; nothing for other objects."""
    # By identity: a program's class may define when two are equal.
    found: Dict[int, V1Optimizer] = {}
    waiting = [optimizer]
    while waiting:
        candidate = waiting.pop()
        if isinstance(candidate, tf1.train.Optimizer) and id(candidate) not in found:
            found[id(candidate)] = candidate
            waiting.extend(vars(candidate).values())
    return list(found.values())


def _is_wrapper(optimizer: Optimizer) -> bool:
    if "apply_gradients" in vars(optimizer):
        return False
    defined_by = next(base for base in type(optimizer).__mro__ if "apply_gradients" in vars(base))
    is_our = defined_by.__module__.startswith("tf_lossscale.")
    return is_our and issubclass(defined_by, ScaledLossOptimizer)


def _local(strategy: Strategy, values: Sequence[Tensor]) -> List[List[Tensor]]:
    return [list(strategy.experimental_local_results(value)) for value in values]
