"""LS2: loss scales of `tf.train.experimental`, and the graph rewrite."""

__all__ = ["TITLE"]

TITLE = "Loss scales of `tf.train.experimental`, and the graph rewrite"
"""The heading of the family in the list of rules."""
