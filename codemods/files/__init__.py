"""Finds files, reads and replaces them, and compares them with git."""

__all__: "list[str]" = []
