"""Cross-shard optimizer and sum."""
