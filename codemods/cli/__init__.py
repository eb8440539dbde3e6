"""The command: its options, settings, help and exit status."""

__all__: "list[str]" = []
