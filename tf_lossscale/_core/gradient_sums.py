"""Sums of gradients over the replicas, as TensorFlow's optimizers make them."""

from typing import Dict, List

from tf_lossscale._core.scaling import gradients_of, with_gradients
from tf_lossscale._replicas import agreement
from tf_lossscale._replicas.shards import has_several_workers
from tf_lossscale._types import DType, Gradient, Pairs, PerReplica, Strategy
from tf_lossscale._versions.base import do_not_convert, has, tf, tf1
from tf_lossscale._versions.releases import Since


def summed_pairs(strategy: Strategy, pairs: Pairs) -> Pairs:
    """Returns the pairs with summed gradients, summed as the optimizers would sum them."""
    alike: Dict[DType, List[int]] = {}
    for index, (gradient, _) in enumerate(pairs):
        if gradient is not None:
            dtype = strategy.experimental_local_results(gradient)[0].dtype
            alike.setdefault(dtype, []).append(index)
    sums: Dict[int, PerReplica] = {}
    if not has(Since.SUMMANDS_ARE_KEPT) and has_several_workers(strategy):
        pairs = with_gradients(pairs, map(agreement.copy_of, gradients_of(pairs)))
    for indices in alike.values():
        # In its own scope: TensorFlow may merge the collectives of one scope, and these must not be
        # merged with collectives that depend on them. One call for each dtype, because values
        # are sent packed and not all versions accept several dtypes in one call.
        with tf1.name_scope(None, "gradient_sums"):
            same = [pairs[index] for index in indices]
            totals = strategy.extended.batch_reduce_to(tf.distribute.ReduceOp.SUM, same)
        sums.update(zip(indices, totals))
    return [(sums.get(index), variable) for index, (_, variable) in enumerate(pairs)]


@do_not_convert
def sums_for_replica(pairs: Pairs) -> List[Gradient]:
    """Returns the gradients of `pairs` summed over all replicas, in a replica context."""
    return list(
        agreement.merge(lambda strategy, pairs: gradients_of(summed_pairs(strategy, pairs)), pairs)
    )
