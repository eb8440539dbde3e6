"""The names that `convert --to` takes."""

__all__ = ["TARGETS"]

TARGETS = ("contrib", "v1", "keras", "keras3")
