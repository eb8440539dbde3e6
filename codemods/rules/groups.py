"""Groups: the places of a program that are rewritten together, or not at all."""

from __future__ import annotations

from ..resolve.legacy_symbols import Legacy
from ..rewrite.proposal import Group

__all__ = ["KERAS_OPTIMIZERS", "group_of"]

KERAS_OPTIMIZERS = Group("keras-optimizers", needs_all=True)
"""The Keras loss-scale optimizers and all that depends on their class.

An isinstance check must name the class that is constructed, so a suppressed place counts.
"""


def group_of(legacy: Legacy) -> Group:
    """The places of one symbol, which a file keeps or gives up at once."""
    return Group(f"{legacy.family.value}.{legacy.name}")
