"""The errors that stop the command; each message states what to do."""

__all__ = ["CheckpointError", "DamagedError"]


class CheckpointError(Exception):
    """A file that cannot be read or converted, or a destination that cannot be written."""


class DamagedError(Exception):
    """Bytes that violate their format. A caller that knows the file adds its name."""
