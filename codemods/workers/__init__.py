"""Processes that rewrite one file each, within limits, and what became of it."""

__all__: "list[str]" = []
