"""LS9: what cannot be determined from the source alone."""

__all__ = ["TITLE"]

TITLE = "What cannot be determined from the source"
"""The heading of the family in the list of rules."""
