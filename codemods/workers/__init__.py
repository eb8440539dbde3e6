"""Worker processes that each rewrite one file at a time, within limits, and their results."""

__all__: "list[str]" = []
