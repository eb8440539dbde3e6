"""Cross-shard optimizer and sum."""

__all__: "list[str]" = []
