"""Finds loss scales of the program's own, whose methods the Keras classes no longer call.

Up to TensorFlow 2.3, the Keras optimizers called `update()` and `__call__()` of the loss scale that
they were passed. Since 2.4 they only read its parameters.
"""

from __future__ import annotations

import libcst as cst

from ...resolve.legacy_symbols import legacy_of, root_of
from ...resolve.optimizer_kinds import class_of
from ...resolve.possible_values import paths_of, possible_values
from ...resolve.program import Program
from ...rewrite.arguments import constant
from ...rewrite.rename import SHIM

__all__ = ["own_loss_scale"]

_OVERRIDES = ("update", "__call__")


def own_loss_scale(program: Program, scale: cst.BaseExpression) -> str:
    """Why `scale`, passed to a Keras class, may be a loss scale of one's own; empty if not so."""
    own = program.cached(_overriding_classes)
    for value in possible_values(program, scale):
        if constant(value) is not None:
            continue
        made = class_of(program, value) if isinstance(value, cst.Call) else None
        if made is not None:
            if made in own or not _subclasses(program, made):
                return f"`{made.name.value}` is a loss scale of the program's own"
        elif isinstance(value, cst.Call) and _is_class_elsewhere(program, value):
            name = program.code(value.func)
            return f"`{name}` can be a loss scale of another file's own"
        elif own and not _is_loss_scale(program, value):
            names = ", ".join(f"`{each.name.value}`" for each in own)
            return f"this loss scale can be {names}, which is of the program's own"
    return ""


def _is_loss_scale(program: Program, value: cst.CSTNode) -> bool:
    """Whether `value` is made by a loss-scale class of TensorFlow or of the shim."""
    if not isinstance(value, cst.Call):
        return False
    paths = paths_of(program, value.func)
    return bool(paths) and all(_is_loss_scale_path(path) for path in paths)


def _is_class_elsewhere(program: Program, call: cst.Call) -> bool:
    """Whether `call` makes an instance of a class that another file defines."""
    paths = paths_of(program, call.func)
    return any(
        path.rpartition(".")[2][:1].isupper()
        and root_of(path) is None
        and not path.startswith(f"{SHIM}.")
        for path in paths
    )


def _overriding_classes(program: Program) -> list[cst.ClassDef]:
    """The classes of the program that subclass a loss scale and override a method of the update."""
    found: list[cst.ClassDef] = []
    for scope in program.all_scopes():
        for bindings in scope.bindings.values():
            for binding in bindings:
                node = binding.node
                if isinstance(node, cst.ClassDef) and _subclasses(program, node):
                    inherited = _ancestors(program, node)
                    if any(_overrides(each) for each in inherited):
                        found.append(node)
    return found


def _subclasses(program: Program, node: cst.ClassDef) -> bool:
    """Whether a base of the class, or of its bases in the program, is a loss scale."""
    return any(
        _is_loss_scale_path(path)
        for each in _ancestors(program, node)
        for base in each.bases
        for path in paths_of(program, base.value)
    )


def _ancestors(program: Program, node: cst.ClassDef) -> list[cst.ClassDef]:
    """The class and its bases that the program defines."""
    found = [node]
    for each in found:
        for base in each.bases:
            if not isinstance(base.value, cst.Name):
                continue
            scope = program.scopes.loads.get(base.value)
            for binding in scope.bindings_of(base.value.value) if scope is not None else ():
                if isinstance(binding.node, cst.ClassDef) and binding.node not in found:
                    found.append(binding.node)
    return found


def _overrides(node: cst.ClassDef) -> bool:
    return any(
        isinstance(statement, cst.FunctionDef) and statement.name.value in _OVERRIDES
        for statement in node.body.body
    )


def _is_loss_scale_path(path: str) -> bool:
    legacy = legacy_of(path)
    if legacy is not None:
        return legacy.is_loss_scale
    return path.startswith(f"{SHIM}.") and path.endswith("LossScale")
