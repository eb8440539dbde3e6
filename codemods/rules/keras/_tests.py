"""The finding for a class test that may stop matching once it names the shim's class."""

from __future__ import annotations

from ...model import Safety
from ...resolve.program import Program, Reference
from ...rewrite.proposal import Proposal
from ..findings import manual, unsafe
from ..groups import KERAS_OPTIMIZERS
from ._class_tests import Risk
from ._keras3_loops import final_class

__all__ = ["risky"]


def risky(program: Program, reference: Reference, risk: Risk, path: str = "") -> Proposal:
    """The finding for such a test; by default it would move to the final class."""
    if risk.outcome is Safety.MANUAL:
        return manual(reference, risk.message, group=KERAS_OPTIMIZERS)
    path = path or final_class(program)
    return unsafe(reference, risk.message, path=path, group=KERAS_OPTIMIZERS)
