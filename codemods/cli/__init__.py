"""The command: its options, settings, help and exit status."""
