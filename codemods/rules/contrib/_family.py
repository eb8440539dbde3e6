"""The table of the four contrib classes: the shim's, or with `--unsafe` TensorFlow 2's."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ...model import Target
from ...resolve.legacy_symbols import Family
from ...resolve.program import Program, Reference
from ...resolve.tree import walk
from ...rewrite.arguments import constant, matched
from ...rewrite.proposal import Group, Proposal
from ...rewrite.rename import V1
from ..moves import Move, Moves, Unsafe

__all__ = ["MOVES", "all_have_twins"]

_V1 = f"{V1}.mixed_precision"
_GROUP = Group("contrib")


class _ContribMoves(Moves):
    """All contrib classes of a program go the same way: managers and optimizers fit together."""

    def proposals(self, program: Program, reference: Reference) -> Iterator[Proposal]:
        """The TensorFlow 2 class where every class here has one, else the shim's."""
        if program.options.target is Target.SHIM:
            yield self.to_shim_of(program, reference, _GROUP)
        elif program.cached(all_have_twins) and not program.neighbors.needs_contrib:
            yield from self.to_final(program, reference, _GROUP)
        else:
            yield from self.to_shim_if_not_there(reference, _GROUP)


MOVES = _ContribMoves(
    [
        Move("LossScaleManager", None),
        Move(
            "FixedLossScaleManager",
            Unsafe(
                f"{_V1}.FixedLossScale",
                {"loss_scale": "loss_scale_value"},
                "FixedLossScale applies steps whose gradients overflow; the weights become NaN; it "
                "has no get_loss_scale and update_loss_scale",
            ),
        ),
        Move(
            "ExponentialUpdateLossScaleManager",
            Unsafe(
                f"{_V1}.DynamicLossScale",
                {
                    "init_loss_scale": "initial_loss_scale",
                    "incr_every_n_steps": "increment_period",
                    "decr_every_n_nan_or_inf": None,
                    "incr_ratio": "multiplier",
                    "decr_ratio": None,
                },
                "DynamicLossScale has the same numbers; its variables have other names and dtypes "
                "in checkpoints (current_loss_scale, good_steps as int64), and it has no "
                "get_loss_scale and update_loss_scale",
            ),
        ),
        Move(
            "LossScaleOptimizer",
            Unsafe(
                f"{_V1}.MixedPrecisionLossScaleOptimizer",
                {"opt": "opt", "loss_scale_manager": "loss_scale"},
                "MixedPrecisionLossScaleOptimizer skips None gradients; its state has other names "
                "in checkpoints",
            ),
        ),
    ],
    shim="it behaves as in TensorFlow 1.15, while the classes of TensorFlow 2 apply overflow steps "
    "at a fixed scale and count overflows differently",
)


def all_have_twins(program: Program) -> bool:
    """Whether `--unsafe` is on and every contrib class here has a similar TensorFlow 2 class."""
    if not program.options.unsafe:
        return False
    found = [one for one in program.references if one.legacy.family is Family.CONTRIB]
    return not _reads_manager(program) and all(_has_twin(program, one) for one in found)


def _has_twin(program: Program, reference: Reference) -> bool:
    final = MOVES[reference.legacy.name].final
    if not isinstance(final, Unsafe):
        return False
    if isinstance(reference.node, cst.ImportAlias):
        return True
    call = program.call_of(reference.node)
    found = matched(call, tuple(final.renames)) if call is not None else None
    if found is None:
        return False
    return reference.legacy.name != "ExponentialUpdateLossScaleManager" or _is_exact(found)


def _reads_manager(program: Program) -> bool:
    """Whether a manager's methods are called, which its replacement lacks."""
    names = {"get_loss_scale", "update_loss_scale"}
    return any(
        isinstance(node, cst.Attribute) and node.attr.value in names
        for module in program.modules
        if module is not None
        for node in walk(module)
    )


def _is_exact(arguments: dict[str, cst.Arg]) -> bool:
    """Whether some DynamicLossScale has the numbers of the manager with these arguments."""
    numbers = {"incr_ratio": 2.0}
    for name in ("decr_every_n_nan_or_inf", "incr_ratio", "decr_ratio"):
        if name in arguments:
            value = constant(arguments[name].value)
            if value is None or not isinstance(value[0], (int, float)):
                return False
            numbers[name] = float(value[0])
    return (
        numbers.get("decr_every_n_nan_or_inf") == 1
        and numbers["incr_ratio"] > 0
        and numbers.get("decr_ratio") == 1 / numbers["incr_ratio"]
    )
