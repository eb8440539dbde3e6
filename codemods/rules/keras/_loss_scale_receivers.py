"""Finds the expressions whose `loss_scale` is, or may be, that of a Keras optimizer."""

from __future__ import annotations

import libcst as cst

from ...model import Target
from ...resolve.legacy_symbols import Family, root_of
from ...resolve.neighbors import Flow
from ...resolve.optimizer_kinds import Kind, class_named, class_of, kinds_of
from ...resolve.possible_values import paths_of, possible_values
from ...resolve.program import LOOK_ALIKES, Program
from ...rewrite.arguments import matched
from ...rewrite.rename import SHIM
from ._optimizer_sources import Found, Source, atoms, with_flows_resolved
from ._optimizer_type import is_keras_optimizer, is_loss_scale_class

__all__ = ["atoms_of_calls", "is_loss_scale_optimizer", "may_be_loss_scale_optimizer"]

_REWRITE = "enable_mixed_precision_graph_rewrite"
_UNWRAPPED = ("inner_optimizer", "_optimizer")
_COMPILED = "optimizer"
"""The attribute in which a Keras model keeps its optimizer, which `compile` wraps by a policy."""
_POLICIES = (Family.EXPERIMENTAL, Family.FINAL)
_SETS_POLICY = ("Policy", "set_policy", "set_global_policy")
_DEPTH = 4


def is_loss_scale_optimizer(program: Program, node: cst.CSTNode) -> bool:
    """Whether `node` is a Keras loss-scale optimizer, whenever it has a `loss_scale` at all.

    A value that is a plain Keras optimizer on other paths counts: reading the attribute fails with
    an AttributeError on those, called or not.
    """
    if is_keras_optimizer(program, node) or _is_self_of_subclass(program, node):
        return True
    values = possible_values(program, node)
    wrapped = [value for value in values if _is_wrapped(program, value)]
    if wrapped and all(
        value in wrapped or kinds_of(program, value) == {Kind.KERAS} for value in values
    ):
        return True
    return _is_made_elsewhere(program, node)


def _is_made_elsewhere(program: Program, node: cst.CSTNode) -> bool:
    """Whether `node` comes from other files of the run, which make such an optimizer.

    What they make without loss scaling, such as a plain optimizer or None, has no `loss_scale`.
    """
    found = atoms(program, node)
    if not any(isinstance(atom, Flow) and atom.kind != "constructed" for atom in found):
        return False
    known = with_flows_resolved(program, found)
    return Source.WRAPPED in known and known <= {Source.WRAPPED, Source.PLAIN}


def atoms_of_calls(program: Program) -> Found:
    """The sources of every object whose `loss_scale()` the program calls."""
    found: Found = frozenset()
    for attribute in program.attributes("loss_scale"):
        if program.call_of(attribute) is not None:
            found |= atoms(program, attribute.value)
    return found


def _is_self_of_subclass(program: Program, node: cst.CSTNode) -> bool:
    """Whether `node` is `self` in a class that inherits from a Keras loss-scale optimizer."""
    if not isinstance(node, cst.Name) or node.value != "self":
        return False
    owner = next((each for each in program.ancestors(node) if isinstance(each, cst.ClassDef)), None)
    return owner is not None and _inherits(program, owner, _DEPTH)


def _inherits(program: Program, owner: cst.ClassDef, depth: int) -> bool:
    for base in owner.bases:
        if is_loss_scale_class(program, base.value):
            return True
        above = class_named(program, base.value)
        if above is not None and depth > 0 and _inherits(program, above, depth - 1):
            return True
    return False


def _is_wrapped(program: Program, value: cst.CSTNode) -> bool:
    """Whether a constructor, or the shim's graph rewrite, makes a Keras loss-scale optimizer."""
    if not isinstance(value, cst.Call):
        return False
    if is_loss_scale_class(program, value.func):
        return True
    if not _is_rewrite(program, value):
        return False
    if program.options.target is not Target.SHIM:
        return False  # the call is left to a person
    found = matched(value, ("opt", "loss_scale"))
    optimizer = found.get("opt") if found is not None else None
    return optimizer is not None and kinds_of(program, optimizer.value) == {Kind.KERAS}


def _is_rewrite(program: Program, call: cst.Call) -> bool:
    paths = paths_of(program, call.func)
    return bool(paths) and all(
        path.rpartition(".")[2] == _REWRITE and _is_known(path) for path in paths
    )


def _is_known(path: str) -> bool:
    return root_of(path) is not None or path.startswith(f"{SHIM}.")


def may_be_loss_scale_optimizer(program: Program, node: cst.CSTNode) -> bool:
    """Whether `node` can be such an optimizer, as far as can be determined statically."""
    if isinstance(node, cst.Name) and node.value in ("self", "cls"):
        return _is_self_of_subclass(program, node)
    return any(_may_be(program, value) for value in possible_values(program, node))


def _may_be(program: Program, value: cst.CSTNode) -> bool:
    if isinstance(value, (cst.FunctionDef, cst.ClassDef)):
        return False
    if isinstance(value, cst.Param) and value.name.value in ("self", "cls"):
        return False
    if isinstance(value, cst.Attribute) and value.attr.value in _UNWRAPPED:
        return False
    if isinstance(value, cst.Attribute) and value.attr.value == _COMPILED:
        return program.cached(_uses_mixed_precision)
    if not isinstance(value, cst.Call):
        return program.cached(_makes_optimizers)
    if is_loss_scale_class(program, value.func) or _is_rewrite(program, value):
        return True
    if class_of(program, value) is not None:
        return False
    paths = paths_of(program, value.func)
    if not paths:
        return program.cached(_makes_optimizers) and not _is_builtin(program, value.func)
    if any(path.split(".")[0] in LOOK_ALIKES for path in paths):
        wraps = any(path.endswith(".DistributedOptimizer") for path in paths)
        return wraps and program.cached(_makes_optimizers)
    is_helper = not any(map(_is_known, paths))
    return is_helper and (program.cached(_uses_tensorflow) or program.cached(_makes_optimizers))


def _is_builtin(program: Program, function: cst.CSTNode) -> bool:
    """Whether `function` is a name that the program does not bind."""
    if not isinstance(function, cst.Name):
        return False
    scope = program.scopes.loads.get(function)
    return scope is None or not scope.bindings_of(function.value)


def _makes_optimizers(program: Program) -> bool:
    """Whether loss-scale optimizers, or the graph rewrite, occur in a file of the run."""
    if program.neighbors.has_optimizers:
        return True
    if any(
        one.legacy.is_keras_optimizer or one.legacy.name == _REWRITE for one in program.references
    ):
        return True
    names = ("LossScaleOptimizer", "from_loss_scale", _REWRITE)
    if any(name in names for _, name in program.migrated):
        return True
    return any(
        binding.path.startswith(f"{SHIM}.") and binding.path.rpartition(".")[2] in names
        for binding in program.imports()
    )


def _uses_mixed_precision(program: Program) -> bool:
    """Whether the program makes loss-scale optimizers, or sets a policy, so that `compile` does."""
    if program.cached(_makes_optimizers) or any(
        one.legacy.family in _POLICIES for one in program.references
    ):
        return True
    return any(name in _SETS_POLICY for _, name in program.migrated)


def _uses_tensorflow(program: Program) -> bool:
    return any(root_of(binding.path) is not None for binding in program.imports())
