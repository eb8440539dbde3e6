"""What stops the command; the message says what to do."""

__all__ = ["CheckpointError"]


class CheckpointError(Exception):
    """A file that cannot be read or converted, or a destination that cannot be written."""
