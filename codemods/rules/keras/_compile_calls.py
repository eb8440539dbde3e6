"""Finds the optimizers that a program passes to `compile`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Optional

import libcst as cst

from ...resolve.program import Program

__all__ = ["COMPILED_NAME", "given_to_compile", "loads_models"]

COMPILED_NAME = "optimizer"
"""The attribute in which a Keras model keeps the optimizer that `compile` was given."""


_LOAD = "load_model"


def loads_models(program: Program) -> bool:
    """Whether the program loads models, whose optimizers Keras makes from their configs."""
    return bool(program.attributes(_LOAD)) or any(
        name.value == _LOAD for name in program.scopes.loads
    )


def given_to_compile(program: Program) -> Iterator[Optional[cst.BaseExpression]]:
    """The optimizer of every `compile` call; None where it cannot be seen.

    `super().compile(optimizer)` in a method that only passes its own parameter on does not count.
    """
    for attribute in program.attributes("compile"):
        call = program.call_of(attribute)
        if call is None or _text(attribute.value) in ("re", "regex"):
            continue
        value = call.args[0].value if call.args and call.args[0].keyword is None else None
        if call.args and call.args[0].star:
            value = None
        for argument in call.args:
            if argument.keyword is not None and argument.keyword.value == COMPILED_NAME:
                value = argument.value
        if not _is_passed_on(program, attribute, value):
            yield value


def _is_passed_on(
    program: Program, attribute: cst.Attribute, value: Optional[cst.BaseExpression]
) -> bool:
    if _text(attribute.value) != "super()" or not isinstance(value, cst.Name):
        return False
    scope = program.scopes.loads.get(value)
    bindings = scope.bindings_of(value.value) if scope is not None else []
    around = scope.node if scope is not None else None
    return (
        isinstance(around, cst.FunctionDef)
        and around.name.value == "compile"
        and [binding.kind for binding in bindings] == ["parameter"]
    )


def _text(node: cst.CSTNode) -> str:
    return cst.Module([]).code_for_node(node)
