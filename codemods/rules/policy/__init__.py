"""LS6: the experimental policies."""

__all__ = ["TITLE"]

TITLE = "Experimental policies"
"""The heading of the family in the list of rules."""
