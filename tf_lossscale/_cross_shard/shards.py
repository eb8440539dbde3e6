"""Finds out for which shard a step is built, out of how many, and how these are summed."""

from typing import Any, NamedTuple

from tf_lossscale._versions.base import tf, tf1
from tf_lossscale._versions.collectives import in_tpu_replication, tpu_shards
from tf_lossscale._versions.replicas import replica_id

__all__ = ["ALONE", "Shards", "current_shards"]


class Shards(NamedTuple):
    """The shards that share the current step.

    Attributes:
      number: number of shards.
      tpu: whether they are TPU shards, which the TPU's own operation sums.
      strategy: the strategy whose replicas are the shards, or None.
      replica: the index of this replica; 0 on a TPU, where one graph is built for all shards.
    """

    number: int
    tpu: bool = False
    strategy: Any = None
    replica: int = 0


ALONE = Shards(number=1)


def current_shards(who: str) -> Shards:
    """Returns the shards of the current step; one, with a warning, if their number is not set.

    Args:
      who: name of the symbol that is called, for the messages.

    Raises:
      RuntimeError: the call is made in the cross-replica context of a strategy with several
        replicas, where values do not belong to one shard.
    """
    count = tpu_shards()
    if count is not None:
        return Shards(count, tpu=True)
    if tf.distribute.has_strategy():
        strategy = tf.distribute.get_strategy()
        replicas = int(strategy.num_replicas_in_sync)
        if replicas == 1:
            return ALONE
        if tf.distribute.in_cross_replica_context():
            raise RuntimeError(
                f"{who} was called outside the replicas of {type(strategy).__name__}, which has "
                f"{replicas}. Call it in the function that `strategy.run` "
                "(`strategy.experimental_run_v2` in TensorFlow 1.15) runs on each replica."
            )
        return Shards(number=replicas, strategy=strategy, replica=replica_id())
    tf1.logging.warning(
        "%s should be used within a tpu_shard_context, but got unset number_of_shards. Assuming 1.",
        who,
    )
    return Shards(1, tpu=in_tpu_replication())
