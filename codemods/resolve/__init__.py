"""What the names of a program mean. Nothing here edits."""

__all__: "list[str]" = []
