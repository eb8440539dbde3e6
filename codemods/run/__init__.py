"""Resolves the imports between the files of a run, before any of them is rewritten."""

__all__: "list[str]" = []
