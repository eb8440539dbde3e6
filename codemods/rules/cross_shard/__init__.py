"""LS5: the cross-shard optimizer and sum."""

__all__: "list[str]" = []
