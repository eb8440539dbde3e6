"""The final class of Keras loss-scale optimizers, as one program gets it."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ...facts import SINGLE_FILE
from ...rewrite.arguments import has_loss_scale
from ..rule import Decision, Options, Program, Proposal, Reference
from ._class_uses import reports_of_class
from ._constructors import ConstructorPlan, plan
from .keras3_plain_loop import INSTALLED, plain_loops

__all__ = ["FinalClass"]


class FinalClass:
    """The final class for a file: its path, and what the calls of constructors become.

    Args:
      program: the file.
      options: the target.
      decision: what is decided about the file; by default, before the decision.
    """

    def __init__(
        self, program: Program, options: Options, decision: Decision = SINGLE_FILE
    ) -> None:
        self.program = program
        self.options = options
        self._decision = decision

    @property
    def path(self) -> str:
        """The path: on Keras 3 the shim's class, which keeps the methods of Keras 2."""
        on_shim = self.options.for_keras_3 or self._decision.optimizers_on_shim
        package = "tf_lossscale" if on_shim else "tensorflow"
        return f"{package}.keras.mixed_precision.LossScaleOptimizer"

    @property
    def caveat(self) -> str:
        """How Keras 3's own class differs, which plain loops get with `--unsafe`; else empty."""
        loops = plain_loops(self.program, self.options, self._decision)
        return INSTALLED if loops is not None else ""

    def plan(self, call: cst.Call) -> ConstructorPlan:
        """What becomes of a call with the arguments of the experimental class."""
        return self.program.cached(plan, call, self._decision.reads)

    def moving(self) -> Iterator[Reference]:
        """The places of the final class that can move; a call with a loss scale is repaired."""
        for reference in self.program.references_to("LS401"):
            call = self.program.call_of(reference.node)
            is_repaired = call is not None and has_loss_scale(call)
            if reference.legacy.root != "tf_keras" and not is_repaired:
                yield reference

    def uses_of_exact_class(self, code: str) -> Iterator[Proposal]:
        """Reports uses whose result depends on the exact class of an object."""
        yield from reports_of_class(self.program, code, self._decision)
