"""What replicas and workers share: the shards of a step, sums over them, and one decision."""
