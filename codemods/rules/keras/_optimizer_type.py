"""Decides whether an expression is certainly a Keras loss-scale optimizer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Optional

import libcst as cst

from ...resolve.program import Program
from ...resolve.reaching_values import (
    reaching_definition,
    reaching_values_of_attribute,
    statement_of,
)
from ...resolve.tree import walk

__all__ = ["calls_scale_loss", "is_keras_optimizer", "is_loss_scale_class"]

_DEPTH = 5
_SHIM_CLASSES = frozenset(
    [
        "tf_lossscale.keras.mixed_precision.LossScaleOptimizer",
        "tf_lossscale.keras.mixed_precision.experimental.LossScaleOptimizer",
    ]
)


def is_loss_scale_class(program: Program, node: cst.CSTNode) -> bool:
    """Whether `node` means a Keras loss-scale optimizer class, TensorFlow's or the shim's."""
    reference = program.by_node.get(node)
    if reference is not None:
        return reference.legacy.is_keras_optimizer
    root: cst.CSTNode = node
    while isinstance(root, cst.Attribute):
        root = root.value
    scope = program.scopes.loads.get(root) if isinstance(root, cst.Name) else None
    if scope is None:
        return False
    paths = program.origins.of_expression(node, scope)
    return bool(paths) and paths <= _SHIM_CLASSES


def calls_scale_loss(program: Program) -> bool:
    """Whether the program calls Keras 3's `scale_loss` of a certain loss-scale optimizer.

    A flag or a function of another library with this name does not count.
    """
    return any(
        program.call_of(attribute) is not None and is_keras_optimizer(program, attribute.value)
        for attribute in program.attributes("scale_loss")
    )


def is_keras_optimizer(program: Program, node: cst.CSTNode, depth: int = _DEPTH) -> bool:
    """Whether `node` is certainly an instance of such a class."""
    if depth == 0:
        return False
    if _guarded(program, node):
        return True
    if isinstance(node, cst.Call):
        return is_loss_scale_class(program, node.func)
    if isinstance(node, cst.Attribute):
        values = reaching_values_of_attribute(program, node)
        return bool(values) and all(
            is_keras_optimizer(program, value, depth - 1) for value in values or ()
        )
    if not isinstance(node, cst.Name):
        return False
    binding = reaching_definition(program, node)
    if binding is not None and binding.value is not None:
        return is_keras_optimizer(program, binding.value, depth - 1)
    return _all_bindings(program, node, depth)


def _all_bindings(program: Program, name: cst.Name, depth: int) -> bool:
    scope = program.scopes.loads.get(name)
    bindings = scope.bindings_of(name.value) if scope is not None else []
    return bool(bindings) and all(
        (binding.value is not None and is_keras_optimizer(program, binding.value, depth - 1))
        or _annotated(program, binding.node)
        for binding in bindings
    )


def _annotated(program: Program, node: cst.CSTNode) -> bool:
    annotation: Optional[cst.Annotation] = getattr(node, "annotation", None)
    return annotation is not None and is_loss_scale_class(program, annotation.annotation)


def _guarded(program: Program, node: cst.CSTNode) -> bool:
    """Whether `node` is read under `if isinstance(node, LossScaleOptimizer)`."""
    if not isinstance(node, (cst.Name, cst.Attribute)):
        return False
    text = program.code(node)
    below: cst.CSTNode = node
    test: Optional[cst.BaseExpression]
    for above in program.ancestors(node):
        if isinstance(above, (cst.FunctionDef, cst.Lambda)):
            return False
        if isinstance(above, (cst.If, cst.IfExp)) and below is above.body:
            test = above.test
        elif isinstance(above, cst.BooleanOperation) and below is above.right:
            test = above.left if isinstance(above.operator, cst.And) else None
        else:
            test = None
        if test is not None and _asserts(program, test, text):
            return not _bound_again(program, node, below, text)
        below = above
    return False


def _bound_again(program: Program, node: cst.CSTNode, body: cst.CSTNode, text: str) -> bool:
    """Whether `body` may assign to `text` before `node` is read, or in a loop around it."""
    own = statement_of(program, node)
    is_before = not any(
        isinstance(above, (cst.For, cst.While)) for above in _between(program, node, body)
    )
    for other in walk(body):
        if other is own and is_before:
            return False
        if (
            isinstance(other, (cst.AssignTarget, cst.AnnAssign, cst.AugAssign))
            and program.code(other.target) == text
            and statement_of(program, other) is not own
        ):
            return True
    return False


def _between(program: Program, node: cst.CSTNode, body: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The ancestors of `node` below `body`."""
    for above in program.ancestors(node):
        if above is body:
            return
        yield above


def _asserts(program: Program, test: cst.BaseExpression, text: str) -> bool:
    if isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.And):
        return _asserts(program, test.left, text) or _asserts(program, test.right, text)
    return (
        isinstance(test, cst.Call)
        and isinstance(test.func, cst.Name)
        and test.func.value == "isinstance"
        and len(test.args) == 2
        and program.code(test.args[0].value) == text
        and is_loss_scale_class(program, test.args[1].value)
    )
