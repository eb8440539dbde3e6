"""Looks for calls that only optimizers of `tf.train` accept, after the graph rewrite.

`minimize(loss, global_step=step)`, `apply_gradients(pairs, global_step=step)` and
`compute_gradients(loss)` fail with a Keras optimizer that the legacy graph rewrite accepts. Such a
call is evidence only if it always follows: a call behind a flag or after a possible `return` does
not show what is wrapped on other paths.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ...resolve.program import Program
from ...resolve.reaching_values import body_of, statement_of
from ...resolve.tree import children, walk
from ...rewrite.arguments import matched

__all__ = ["is_used_as_v1"]

_PARAMETERS = {"minimize": ("loss", "global_step"), "apply_gradients": ("pairs", "global_step")}
_STEPS = ("get_global_step", "get_or_create_global_step")
_LAZY = (cst.Lambda, cst.FunctionDef, cst.ClassDef, cst.BaseComp, cst.IfExp, cst.BooleanOperation)
_BLOCKS = (cst.IndentedBlock, cst.Module)
_EXITS = (cst.Return, cst.Raise, cst.Break, cst.Continue, cst.Yield)


def is_used_as_v1(program: Program, call: cst.Call) -> bool:
    """Whether the result of `call` is always used as an optimizer of `tf.train`."""
    if _is_v1_call(program, call):
        return True
    assign = program.parents.get(call)
    if not isinstance(assign, cst.Assign) or len(assign.targets) != 1:
        return False
    target = assign.targets[0].target
    if not isinstance(target, cst.Name):
        return False
    name = target.value
    for statement in _after(program, assign):
        if isinstance(statement, cst.SimpleStatementLine) and any(
            isinstance(node, cst.Name) and node.value == name and _is_v1_call(program, node)
            for node in _always_run(statement)
        ):
            return True
        if any(isinstance(node, _EXITS) or _binds(program, node, name) for node in walk(statement)):
            return False
    return False


def _is_v1_call(program: Program, optimizer: cst.CSTNode) -> bool:
    """Whether a method of `optimizer` is called as only optimizers of `tf.train` have it."""
    method = program.parents.get(optimizer)
    if not isinstance(method, cst.Attribute) or method.value is not optimizer:
        return False
    call = program.call_of(method)
    if call is None:
        return False
    if method.attr.value == "compute_gradients":
        return True
    parameters = _PARAMETERS.get(method.attr.value)
    if parameters is None:
        return False
    for argument in call.args:
        if argument.keyword is not None and argument.keyword.value == "global_step":
            return not (isinstance(argument.value, cst.Name) and argument.value.value == "None")
    found = matched(call, parameters)
    return found is not None and "global_step" in found and _is_step(found["global_step"].value)


def _is_step(node: cst.BaseExpression) -> bool:
    return (
        isinstance(node, cst.Call)
        and isinstance(node.func, cst.Attribute)
        and node.func.attr.value in _STEPS
    )


def _after(program: Program, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The statements that always run after `node`'s, in their order, to the end of its function."""
    statement = statement_of(program, node)
    while statement is not None:
        body = body_of(program, statement)
        assert body is not None
        index = next(i for i, one in enumerate(body) if one is statement)
        for later in body[index + 1 :]:
            yield from _opened(later)
        above = program.parents.get(program.parents[statement])
        if not isinstance(above, (cst.If, cst.Else, cst.For, cst.While, cst.With)):
            return
        statement = statement_of(program, above)


def _opened(statement: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """`statement`, or those in it if it is a `with`, whose body always runs."""
    if isinstance(statement, cst.With) and isinstance(statement.body, cst.IndentedBlock):
        for inner in statement.body.body:
            yield from _opened(inner)
    else:
        yield statement


def _always_run(statement: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The nodes of a statement that are evaluated whenever it runs."""
    stack = [statement]
    while stack:
        node = stack.pop()
        if not isinstance(node, _LAZY):
            yield node
            stack.extend(reversed(children(node)))


def _binds(program: Program, node: cst.CSTNode, name: str) -> bool:
    """Whether `node` is the name itself, bound."""
    return (
        isinstance(node, cst.Name)
        and node.value == name
        and node not in program.scopes.loads
        and not isinstance(program.parents.get(node), (cst.Attribute, cst.Arg))
    )
