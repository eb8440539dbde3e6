"""Resolves the names of a program to legacy symbols. Nothing here edits the code."""

__all__: "list[str]" = []
