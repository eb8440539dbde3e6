"""Groups: the places of a program that move together, or not at all."""

from __future__ import annotations

from ..resolve.legacy_symbols import Legacy
from ..rewrite.proposal import Group

__all__ = ["KERAS_OPTIMIZERS", "group_of"]

KERAS_OPTIMIZERS = Group("keras-optimizers", needs_all=True)
"""The Keras loss-scale optimizers and all that depends on their class.

An isinstance check must name the class that is constructed, so a suppressed place counts.
"""


def group_of(legacy: Legacy) -> Group:
    """The group whose places move together with those of `legacy`, or not at all."""
    if legacy.name == "LossScaleOptimizer" and legacy.family in ("experimental", "final"):
        return KERAS_OPTIMIZERS
    return Group(f"{legacy.family}.{legacy.name}")
