"""Groups: the places of a program that move together, or not at all."""

from __future__ import annotations

from ..resolve.legacy_symbols import Legacy

__all__ = ["KERAS_OPTIMIZERS", "group_of"]

KERAS_OPTIMIZERS = "keras-optimizers"
"""The group of the Keras loss-scale optimizers, and of all that depends on their class."""


def group_of(legacy: Legacy) -> str:
    """The group whose places move together with those of `legacy`, or not at all."""
    if legacy.name == "LossScaleOptimizer" and legacy.family in ("experimental", "final"):
        return KERAS_OPTIMIZERS
    return f"{legacy.family}.{legacy.name}"
