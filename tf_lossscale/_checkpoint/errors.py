"""What stops the command; the message says what to do."""

__all__ = ["CheckpointError", "DamagedError"]


class CheckpointError(Exception):
    """A file that cannot be read or converted, or a destination that cannot be written."""


class DamagedError(Exception):
    """Bytes that do not follow their format. A caller that knows the file adds its name."""
