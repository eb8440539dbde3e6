"""From the bytes of a source to its new bytes and findings."""

__all__: "list[str]" = []
