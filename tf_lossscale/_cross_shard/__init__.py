"""`CrossShardOptimizer` and `cross_replica_sum`, on TPUs and off them."""
