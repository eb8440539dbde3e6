"""Finds the expressions whose `loss_scale` is, or may be, that of a Keras optimizer."""

from __future__ import annotations

import libcst as cst

from ...model import Target
from ...resolve.legacy_symbols import root_of
from ...resolve.optimizer_kinds import Kind, class_of, kinds_of
from ...resolve.possible_values import paths_of, possible_values
from ...resolve.program import LOOK_ALIKES, Program
from ...rewrite.arguments import matched
from ...rewrite.rename import SHIM
from ._optimizer_type import is_keras_optimizer, is_loss_scale_class

__all__ = ["is_loss_scale_optimizer", "may_be_loss_scale_optimizer"]

_REWRITE = "enable_mixed_precision_graph_rewrite"
_UNWRAPPED = ("inner_optimizer", "_optimizer")


def is_loss_scale_optimizer(program: Program, node: cst.CSTNode) -> bool:
    """Whether `node` is a Keras loss-scale optimizer, whenever it has a `loss_scale` at all.

    A value that is a plain Keras optimizer on other paths counts: reading the attribute fails with
    an AttributeError on those, called or not.
    """
    if is_keras_optimizer(program, node):
        return True
    values = possible_values(program, node)
    wrapped = [value for value in values if _is_wrapped(program, value)]
    return bool(wrapped) and all(
        value in wrapped or kinds_of(program, value) == {Kind.KERAS} for value in values
    )


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
        return False
    return any(_may_be(program, value) for value in possible_values(program, node))


def _may_be(program: Program, value: cst.CSTNode) -> bool:
    if isinstance(value, (cst.FunctionDef, cst.ClassDef)):
        return False
    if isinstance(value, cst.Param) and value.name.value in ("self", "cls"):
        return False
    if isinstance(value, cst.Attribute) and value.attr.value in _UNWRAPPED:
        return False
    if not isinstance(value, cst.Call):
        return program.cached(_makes_optimizers)
    if is_loss_scale_class(program, value.func) or _is_rewrite(program, value):
        return True
    if class_of(program, value) is not None:
        return False
    paths = paths_of(program, value.func)
    if not paths:
        return not isinstance(value.func, cst.Name) and program.cached(_makes_optimizers)
    if any(path.split(".")[0] in LOOK_ALIKES for path in paths):
        return False
    is_helper = not any(map(_is_known, paths))
    return is_helper and program.cached(_uses_tensorflow)


def _makes_optimizers(program: Program) -> bool:
    """Whether loss-scale optimizers, or the graph rewrite, occur in the program."""
    if any(
        one.legacy.is_keras_optimizer or one.legacy.name == _REWRITE for one in program.references
    ):
        return True
    return any(name in ("LossScaleOptimizer", _REWRITE) for _, name in program.migrated)


def _uses_tensorflow(program: Program) -> bool:
    return any(root_of(binding.path) is not None for binding in program.imports())
