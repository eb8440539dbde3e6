"""The classes of TensorFlow 2 that resemble those of contrib; `--unsafe` writes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple, Optional

import libcst as cst

from ...model import Group
from ...resolve.places import Reference
from ...resolve.program import Program
from ...resolve.tree import Edit
from ...rewrite.arguments import constant, matched, with_renamed
from ...rewrite.proposal import Proposal
from ...rewrite.rename import V1, references
from ..findings import needs_shim, unsafe

__all__ = ["to_twin"]

_V1 = f"{V1}.mixed_precision"
_ON_SHIM = "TensorFlow 2 has no class of this behavior"
_NO_TWIN = "no class of TensorFlow 2 has the same numbers and methods"


class _Twin(NamedTuple):
    """A similar class.

    Attributes:
      path: its absolute path.
      renames: each parameter of the contrib class, in order, with its new name; None: it goes.
      caveat: how the behavior can differ.
    """

    path: str
    renames: Mapping[str, Optional[str]]
    caveat: str


_TWINS = {
    "FixedLossScaleManager": _Twin(
        f"{_V1}.FixedLossScale",
        {"loss_scale": "loss_scale_value"},
        "FixedLossScale applies steps whose gradients overflow; the weights become NaN; it has no "
        "get_loss_scale and update_loss_scale",
    ),
    "ExponentialUpdateLossScaleManager": _Twin(
        f"{_V1}.DynamicLossScale",
        {
            "init_loss_scale": "initial_loss_scale",
            "incr_every_n_steps": "increment_period",
            "decr_every_n_nan_or_inf": None,
            "incr_ratio": "multiplier",
            "decr_ratio": None,
        },
        "DynamicLossScale has the same numbers; its variables have other names and dtypes in "
        "checkpoints (current_loss_scale, good_steps as int64), and it has no get_loss_scale and "
        "update_loss_scale",
    ),
    "LossScaleOptimizer": _Twin(
        f"{_V1}.MixedPrecisionLossScaleOptimizer",
        {"opt": "opt", "loss_scale_manager": "loss_scale"},
        "MixedPrecisionLossScaleOptimizer skips None gradients; its state has other names in "
        "checkpoints",
    ),
}


def to_twin(program: Program, code: str) -> Iterator[Proposal]:
    """Proposes the similar class with `--unsafe`; otherwise the shim's has the same behavior."""
    for reference in references(program, code):
        twin = _TWINS.get(reference.legacy.name)
        call = program.call_of(reference.node)
        if reference.legacy.is_on_shim and not program.options.unsafe:
            continue
        if twin is None or not program.cached(_all_have_twins):
            why = _NO_TWIN if program.options.unsafe else _ON_SHIM
            yield needs_shim(reference.node, code, reference.legacy.name, Group.CONTRIB, why)
        else:
            edits = ((call, _renaming(twin)),) if call is not None else ()
            yield unsafe(reference, twin.caveat, path=twin.path, edits=edits)


def _renaming(twin: _Twin) -> Edit:
    def renamed(node: cst.CSTNode) -> cst.CSTNode:
        assert isinstance(node, cst.Call)
        return with_renamed(node, twin.renames)

    return renamed


def _all_have_twins(program: Program) -> bool:
    """Whether `--unsafe` is on and every contrib class here has a similar class.

    Managers and optimizers fit together, so all go the same way. No other class has the methods of
    a manager.
    """
    if not program.options.unsafe:
        return False
    if program.attributes("get_loss_scale") or program.attributes("update_loss_scale"):
        return False
    found = [one for one in program.references if one.legacy.group is Group.CONTRIB]
    return all(_has_twin(program, one) for one in found)


def _has_twin(program: Program, reference: Reference) -> bool:
    twin = _TWINS.get(reference.legacy.name)
    if twin is None or reference.root is None:
        return twin is not None
    call = program.call_of(reference.node)
    found = matched(call, tuple(twin.renames)) if call is not None else None
    if found is None:
        return False
    return reference.legacy.name != "ExponentialUpdateLossScaleManager" or _is_exact(found)


def _is_exact(arguments: Mapping[str, cst.Arg]) -> bool:
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
