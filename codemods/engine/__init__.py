"""Turns the bytes of a source into new bytes and findings."""

__all__: "list[str]" = []
