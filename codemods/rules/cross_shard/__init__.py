"""LS5: the cross-shard optimizer and sum."""

__all__ = ["TITLE"]

TITLE = "Cross-shard optimizer and sum"
"""The heading of the family in the list of rules."""
