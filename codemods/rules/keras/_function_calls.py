"""Finds definitions and uses of functions, and what calls pass and return."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Optional

import libcst as cst

from ...resolve.program import Program
from ...resolve.tree import children

__all__ = [
    "class_around",
    "definitions",
    "function_of",
    "is_static",
    "passed_for",
    "passes_receiver",
    "qualified_name",
    "returned_values",
    "uses_of",
]


def qualified_name(program: Program, function: cst.FunctionDef) -> str:
    """The name with which other files can reach a function; empty for a nested one."""
    parts = [function.name.value]
    for above in program.ancestors(function):
        if isinstance(above, (cst.FunctionDef, cst.Lambda)):
            return ""
        if isinstance(above, cst.ClassDef):
            parts.append(above.name.value)
    return ".".join(reversed(parts))


def function_of(program: Program, parameter: cst.Param) -> Optional[cst.FunctionDef]:
    """The function that has the parameter; None for a lambda."""
    functions = (cst.FunctionDef, cst.Lambda)
    around = (each for each in program.ancestors(parameter) if isinstance(each, functions))
    function = next(around, None)
    return function if isinstance(function, cst.FunctionDef) else None


def definitions(program: Program, function: cst.CSTNode) -> Iterator[Optional[cst.CSTNode]]:
    """What defines `function`: definitions, parameters and values; None where it is not known."""
    if isinstance(function, cst.Name):
        scope = program.scopes.loads.get(function)
        for binding in scope.bindings_of(function.value) if scope is not None else []:
            if isinstance(binding.node, (cst.FunctionDef, cst.ClassDef, cst.Param)):
                yield binding.node
            else:
                yield binding.value
    elif isinstance(function, cst.Attribute):
        for scope in program.all_scopes():
            if scope.kind == "class":
                for binding in scope.bindings.get(function.attr.value, []):
                    if isinstance(binding.node, cst.FunctionDef):
                        yield binding.node


def returned_values(function: cst.CSTNode) -> list[Optional[cst.BaseExpression]]:
    """The values that a function returns; one None if it has no `return`."""
    if isinstance(function, cst.Lambda):
        return [function.body]
    found: list[Optional[cst.BaseExpression]] = []
    stack = children(function)
    while stack:
        node = stack.pop()
        if isinstance(node, (cst.FunctionDef, cst.ClassDef, cst.Lambda)):
            continue
        if isinstance(node, cst.Return):
            found.append(node.value)
        stack.extend(children(node))
    return found or [None]


def uses_of(program: Program, function: cst.FunctionDef) -> Iterator[cst.CSTNode]:
    """Every place that reads `function`, a method by its name; a base class is not a call."""
    name = function.name.value
    owner = class_around(program, function)
    if owner is not None and _function_around(program, function) is None:
        if name == "__init__":
            name = owner.name.value
        else:
            yield from program.attributes(name)
            return
    for load, scope in program.scopes.loads.items():
        if load.value == name:
            bindings = scope.bindings_of(name)
            if any(binding.node in (function, owner) for binding in bindings):
                yield load


def passed_for(
    call: cst.Call, function: cst.FunctionDef, parameter: cst.Param, skipped: int
) -> Optional[cst.BaseExpression]:
    """The argument for `parameter`, or its default; None where stars hide it."""
    if any(argument.star for argument in call.args):
        return None
    for argument in call.args:
        if argument.keyword is not None and argument.keyword.value == parameter.name.value:
            return argument.value
    positional: Sequence[cst.Param] = [*function.params.posonly_params, *function.params.params]
    if parameter in positional:
        index = list(positional).index(parameter) - skipped
        given = [argument for argument in call.args if argument.keyword is None]
        if 0 <= index < len(given):
            return given[index].value
    return parameter.default


def passes_receiver(function: cst.FunctionDef, use: cst.CSTNode) -> bool:
    """Whether the call passes the first parameter itself: `trainer.step(x)`, `Trainer(x)`."""
    if is_static(function):
        return False
    return isinstance(use, cst.Attribute) or function.name.value == "__init__"


def is_static(function: cst.FunctionDef) -> bool:
    """Whether the decorators of a function include `staticmethod`."""
    return any(
        cst.Module([]).code_for_node(each.decorator) == "staticmethod"
        for each in function.decorators
    )


def _function_around(program: Program, node: cst.CSTNode) -> Optional[cst.CSTNode]:
    """The function around `node` within its nearest class."""
    for above in program.ancestors(node):
        if isinstance(above, cst.ClassDef):
            return None
        if isinstance(above, (cst.FunctionDef, cst.Lambda)):
            return above
    return None


def class_around(program: Program, node: cst.CSTNode) -> Optional[cst.ClassDef]:
    """The nearest class around `node`."""
    return next(
        (above for above in program.ancestors(node) if isinstance(above, cst.ClassDef)), None
    )
