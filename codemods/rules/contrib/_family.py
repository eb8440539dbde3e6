"""Where the four contrib classes of one program go: to the shim, or with `--unsafe` further."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Optional

import libcst as cst

from ...model import Safety, Target
from ...resolve.program import Program, Reference
from ...resolve.tree import Edit, walk
from ...rewrite.arguments import constant, matched, with_arguments
from ...rewrite.proposal import Group, Proposal
from ...rewrite.rename import V1, move, references, shim_path

__all__ = ["EXPONENTIAL", "FIXED", "proposals"]

FIXED = ("loss_scale",)
EXPONENTIAL = (
    "init_loss_scale",
    "incr_every_n_steps",
    "decr_every_n_nan_or_inf",
    "incr_ratio",
    "decr_ratio",
)
_OPTIMIZER = ("opt", "loss_scale_manager")
_GROUP = Group("contrib")
_SHIM_MESSAGE = (
    "the shim's class does what TensorFlow 1.15's did; no class of TensorFlow 2 does: they do not "
    "skip overflow steps at a fixed scale, and count overflows otherwise"
)
_UNSAFE_MESSAGES = {
    "FixedLossScaleManager": (
        "FixedLossScale does not skip a step whose gradients overflow: it applies them, and the "
        "weights become NaN"
    ),
    "ExponentialUpdateLossScaleManager": (
        "the same numbers, but the variables in checkpoints have other names and dtypes "
        "(current_loss_scale, good_steps int64)"
    ),
    "LossScaleOptimizer": (
        "MixedPrecisionLossScaleOptimizer skips None gradients, and the state in checkpoints has "
        "other names"
    ),
}


def proposals(program: Program, rule: str) -> Iterator[Proposal]:
    """Moves every reference of `rule`; all contrib classes of a program go the same way."""
    further = program.cached(_go_further)
    for reference in references(program, rule):
        if not further:
            yield move(program, reference, shim_path(reference), _SHIM_MESSAGE, group=_GROUP)
            continue
        name, edit = _TWINS[reference.legacy.name]
        proposal = move(
            program,
            reference,
            f"{V1}.mixed_precision.{name}",
            _UNSAFE_MESSAGES[reference.legacy.name],
            Safety.UNSAFE,
            group=_GROUP,
        )
        call = program.call_of(reference.node)
        yield proposal._replace(edits=((call, edit),)) if call is not None else proposal


def _go_further(program: Program) -> bool:
    """Whether `--unsafe` was asked for and every contrib class here has a twin in TensorFlow 2."""
    if program.options.target is Target.SHIM or not program.options.unsafe:
        return False
    found = [reference for reference in program.references if reference.legacy.family == "contrib"]
    if _reads_manager(program):
        return False
    return all(_has_twin(program, reference) for reference in found)


def _has_twin(program: Program, reference: Reference) -> bool:
    if isinstance(reference.node, cst.ImportAlias):
        return reference.legacy.name in _TWINS
    call = program.call_of(reference.node)
    if call is None:
        return False
    name = reference.legacy.name
    if name == "ExponentialUpdateLossScaleManager":
        return exact_multiplier(call) is not None
    parameters = {"FixedLossScaleManager": FIXED, "LossScaleOptimizer": _OPTIMIZER}.get(name)
    return parameters is not None and matched(call, parameters) is not None


def _reads_manager(program: Program) -> bool:
    """Whether a manager's methods are called: its successor has others."""
    names = {"get_loss_scale", "update_loss_scale"}
    return any(
        isinstance(node, cst.Attribute) and node.attr.value in names
        for module in program.modules
        if module is not None
        for node in walk(module)
    )


def exact_multiplier(call: cst.Call) -> Optional[float]:
    """The multiplier of the DynamicLossScale that does exactly what this manager does, if any."""
    found = matched(call, EXPONENTIAL)
    if found is None or not {"decr_every_n_nan_or_inf", "decr_ratio"} <= set(found):
        return None
    numbers = {}
    for name in EXPONENTIAL[2:]:
        value = constant(found[name].value) if name in found else (2.0,)
        if value is None or not isinstance(value[0], (int, float)):
            return None
        numbers[name] = float(value[0])
    increase, decrease = numbers["incr_ratio"], numbers["decr_ratio"]
    if numbers["decr_every_n_nan_or_inf"] != 1 or increase <= 0 or decrease != 1 / increase:
        return None
    return increase


def _renaming(names: dict[str, str]) -> Edit:
    def edit(node: cst.CSTNode) -> object:
        assert isinstance(node, cst.Call)
        arguments = [
            argument.with_changes(keyword=cst.Name(names[argument.keyword.value]))
            if argument.keyword is not None and argument.keyword.value in names
            else argument
            for argument in node.args
        ]
        return node.with_changes(args=arguments)

    return edit


def _as_dynamic(node: cst.CSTNode) -> object:
    assert isinstance(node, cst.Call)
    found = matched(node, EXPONENTIAL)
    assert found is not None
    names = {"init_loss_scale": "initial_loss_scale", "incr_every_n_steps": "increment_period"}
    names["incr_ratio"] = "multiplier"
    arguments = []
    for name, argument in found.items():
        if name in ("decr_every_n_nan_or_inf", "decr_ratio"):
            continue
        by_keyword = argument.keyword is not None or name == "incr_ratio"
        keyword = cst.Name(names[name]) if by_keyword else None
        equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
        arguments.append(
            argument.with_changes(
                keyword=keyword,
                equal=argument.equal if argument.keyword is not None or not by_keyword else equal,
            )
        )
    return with_arguments(node, arguments)


_TWINS = {
    "FixedLossScaleManager": ("FixedLossScale", _renaming({"loss_scale": "loss_scale_value"})),
    "ExponentialUpdateLossScaleManager": ("DynamicLossScale", _as_dynamic),
    "LossScaleOptimizer": (
        "MixedPrecisionLossScaleOptimizer",
        _renaming({"loss_scale_manager": "loss_scale"}),
    ),
}
