"""LS3 and LS4: the Keras loss-scale optimizers, up to Keras 3."""

__all__ = ["TITLE"]

TITLE = "Keras loss-scale optimizers, up to Keras 3"
"""The heading of the family in the list of rules."""
