"""The error of a recording."""

__all__ = ["RecordingError"]


class RecordingError(RuntimeError):
    """Training cannot be recorded; the message says why, and what can be done."""
