"""LS9: what cannot be determined from the source alone."""

__all__: "list[str]" = []
