"""Every legacy name becomes its twin in the shim: with `--to shim`, and where a program needs it.

A rename is always safe, because the shim makes it so at run time: its classes pass the class tests
of TensorFlow's and the other way around, its constructors take the same arguments, and its methods
mean on Keras 3 what they meant on Keras 2. So no argument, test or call is edited.

A place that puts something else in the place of a symbol or module is reported, and stays.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from tf_lossscale._paths import SYMBOLS

from ..facts import Decision, When
from ..model import Group, Options
from ..resolve.legacy_symbols import Family, legacy_of, namespace_of
from ..resolve.places import Place, Reference
from ..resolve.program import Program
from ..resolve.tree import string_of
from ..rewrite.arguments import has_loss_scale
from ..rewrite.proposal import Obstacle, Proposal

__all__ = [
    "RENAMED",
    "WRITTEN",
    "needs_of_exports",
    "needs_of_written",
    "renames",
    "reports_of_written",
]

_PATHS = [f"tensorflow.{space}.{symbol.name}" for symbol in SYMBOLS for space in symbol.namespaces]
RENAMED: dict[str, Group] = {
    legacy.rule: legacy.group for legacy in map(legacy_of, _PATHS) if legacy and legacy.rule
}
"""The codes of the rules whose symbols the shim has, each with the group of these symbols."""

_SPARSE = ", but keeps sparse gradients sparse: with them, clipping by norms and Momentum differ"
_SAME = {
    Family.CONTRIB: "it behaves as in TensorFlow 1.15, on every version",
    Family.V1: "it behaves as in TensorFlow 2.21, on every version",
    Family.EXPERIMENTAL: "it behaves as in TensorFlow 2.8, on every version",
    Family.FINAL: "it behaves as the class of Keras 2, on every version",
}
"""What a rename means: an older TensorFlow can differ (`docs/known-differences.md`)."""
_EVERYWHERE = "it also runs on GPUs and CPUs"
_POLICY = (
    "under its policy, compile wraps in the shim's LossScaleOptimizer, which has the methods of "
    "Keras 2 on Keras 3, too"
)
WRITTEN = (
    "not renamed, because the program assigns to this name: code that uses the shim's name does "
    "not see the assigned value, so pass it to that code directly"
)
_DELETED = (
    "not renamed, because the program deletes this name: remove the `del`, then migrate again"
)
_ELSE = "the program assigns to this name"
_READ = "other files may read `{}` from here"
_UNREAD = "nothing in this file reads `{}`, but other files may"
_KERAS = (Group.KERAS_OPTIMIZERS, Group.POLICIES)


def renames(
    program: Program, code: str, options: Options, decision: Decision
) -> Iterator[Proposal]:
    """The renames of the symbols of one rule."""
    for reference in program.references_to(code):
        legacy = reference.legacy
        if legacy.is_on_shim and (options.to_shim or legacy.family is Family.CONTRIB):
            continue
        if legacy.is_on_shim:
            yield Proposal.note(reference.node, code, legacy.name, "stays on the shim")
        elif not legacy.is_of_final_api or _leaves_final(program, reference, options, decision):
            yield Proposal.to_shim(reference, _benefit(reference))


def _leaves_final(
    program: Program, reference: Reference, options: Options, decision: Decision
) -> bool:
    """Whether a final symbol goes to the shim: it is not tf-keras's, nor used as Keras 3's.

    LS304 repairs a call with a loss scale, but on the way to the final API only.
    """
    call = program.call_of(reference.node)
    if call is not None and has_loss_scale(call) and not options.to_shim:
        return False
    return reference.legacy.root != "tf_keras" and not decision.is_for_keras_3


def _benefit(reference: Reference) -> str:
    family = reference.legacy.family
    if family is Family.CROSS_SHARD:
        return _EVERYWHERE
    if reference.legacy.is_of_final_api and reference.legacy.is_policy:
        return _POLICY
    if family is Family.CONTRIB and reference.legacy.name == "LossScaleOptimizer":
        return _SAME[family] + _SPARSE
    return _SAME[family]


def needs_of_exports(program: Program, code: str) -> Iterator[Obstacle]:
    """The places that bind a symbol of a rule for other files.

    `from amp import Wrap` in another file gets what `amp.py` binds to `Wrap`, and calls it with the
    legacy arguments. So a class whose arguments change goes to the shim if other files may read it,
    or if nothing in its own file does. The shim's names keep their meaning everywhere.
    """
    for reference in program.references_to(code):
        legacy = reference.legacy
        keeps_arguments = legacy.is_final_path or legacy.is_of_final_api
        if reference.scope is not program.scopes.module_scope or keeps_arguments:
            continue
        for name in program.mentions.names_bound(reference):
            if legacy.group in _KERAS and not program.loads_of(reference.scope, name):
                yield Obstacle.at(reference, _UNREAD.format(name))
            else:
                yield Obstacle.at(reference, _READ.format(name), When.IF_READ, (name,))


def needs_of_written(program: Program) -> Iterator[Obstacle]:
    """The places that put something else in the place of a legacy symbol or module."""
    for place in program.written:
        if not (isinstance(place, Reference) and place.legacy.is_final_path):
            yield from Obstacle.of_place(place, code_of_place(place), _ELSE)


def reports_of_written(
    program: Program, options: Options, decision: Decision
) -> Iterator[Proposal]:
    """Reports these places: uses of the final API in a program whose other uses go to the shim."""
    for place in program.written:
        if _is_moved(place, options, decision) and not _is_named_in_string(program, place):
            message = _DELETED if _is_deleted_name(program, place) else WRITTEN
            yield Proposal.report(place.node, code_of_place(place), place.symbol, message)


def _is_deleted_name(program: Program, place: Place) -> bool:
    """Whether a name goes, as in `del mp`, and what it names stays."""
    _, above = program.outside(place.node, (cst.Element, cst.Tuple))
    return isinstance(place.node, cst.Name) and isinstance(above, cst.Del)


def _is_named_in_string(program: Program, place: Place) -> bool:
    """Whether `setattr(module, "name", value)` has the name of a symbol or module (LS902)."""
    argument = program.parents.get(place.node)
    call = program.parents.get(argument) if isinstance(argument, cst.Arg) else None
    if isinstance(place, Reference) or not isinstance(call, cst.Call) or len(call.args) < 2:
        return False
    path = f"{place.path}.{string_of(call.args[1].value)}"
    return legacy_of(path) is not None or namespace_of(path) is not None


def _is_moved(place: Place, options: Options, decision: Decision) -> bool:
    """Whether a read of what a place names gets another path."""
    if isinstance(place, Reference):
        return place.legacy.is_renamed(options, decision)
    module = namespace_of(place.path)
    is_legacy = module is not None and not module.is_current
    return is_legacy or any(map(decision.goes_to_shim, place.groups))


def code_of_place(place: Place) -> str:
    """The code of the rule that moves what a place leads to."""
    return place.legacy.rule if isinstance(place, Reference) else "LS909"
