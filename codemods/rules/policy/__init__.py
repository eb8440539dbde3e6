"""LS6: the experimental policies."""

__all__: "list[str]" = []
