"""`tf.contrib.tpu` (TensorFlow up to 1.15): the cross-shard names."""

from tf_lossscale._namespace import TYPE_CHECKING, attach as _attach

if TYPE_CHECKING:
    from tf_lossscale._v1.cross_shard import CrossShardOptimizer as CrossShardOptimizer
    from tf_lossscale._v1.sums import cross_replica_sum as cross_replica_sum
else:  # unseen, or each name would be known to a type checker
    __all__, __getattr__, __dir__ = _attach(__name__)
