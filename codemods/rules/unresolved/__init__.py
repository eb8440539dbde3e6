"""What cannot be determined from the source."""

__all__: "list[str]" = []
