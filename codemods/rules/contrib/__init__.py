"""LS1: `tf.contrib.mixed_precision`."""

__all__ = ["TITLE"]

TITLE = "`tf.contrib.mixed_precision`"
"""The heading of the family in the list of rules."""
