"""Where the v1 loss scales, their optimizer and the graph rewrite go."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ...model import Safety, Target
from ...resolve.legacy_symbols import root_of
from ...resolve.program import Program, Reference
from ...resolve.qualified_names import is_path
from ...resolve.reaching_values import reaching_definition
from ...rewrite.proposal import Proposal
from ...rewrite.rename import SHIM, V1, move, references, shim_path
from ..groups import KERAS_OPTIMIZERS
from ..keras._constructors import plan_constructors

__all__ = ["makes_keras_optimizer", "proposals"]

_SHIM = "the shim's does what TensorFlow 2.21's compat.v1 does, on every TensorFlow"
_FINAL = "the original under its last path, in TensorFlow 2.4 and later"
_LOSS_SCALES = ("LS201", "LS202", "LS203")
_KERAS_OPTIMIZERS = ("keras.optimizers.", "optimizers.", "keras.mixed_precision.")


def proposals(program: Program, rule: str) -> Iterator[Proposal]:
    """Moves every reference of `rule` that is not there yet."""
    inlined = _inlined(program)
    group = KERAS_OPTIMIZERS if rule in _LOSS_SCALES and _beside_keras(program) else None
    for reference in references(program, rule):
        if program.options.target is Target.SHIM:
            yield move(program, reference, shim_path(reference), _SHIM)
        elif reference in inlined:
            yield Proposal(
                node=reference.node,
                code=rule,
                symbol=reference.legacy.name,
                outcome=Safety.SAFE,
                message="its parameters become the Keras optimizer's arguments",
                group=KERAS_OPTIMIZERS,
            )
        elif not _is_final(reference):
            path = f"{V1}.mixed_precision.{reference.legacy.name}"
            yield move(program, reference, path, _FINAL, group=group)


def _beside_keras(program: Program) -> bool:
    """Whether loss scales here may be a Keras optimizer's, and so must wait for it."""
    return any(
        reference.legacy.name == "LossScaleOptimizer" and reference.legacy.family == "experimental"
        for reference in program.references
    )


def _inlined(program: Program) -> frozenset[Reference]:
    """The loss scales that vanish into the arguments of Keras optimizers."""
    wraps = program.cached(plan_constructors)
    return frozenset(reference for wrap in wraps.values() for reference in wrap.removed)


def _is_final(reference: Reference) -> bool:
    return reference.legacy.root == "v1" and reference.legacy.namespace == "mixed_precision"


def makes_keras_optimizer(program: Program, node: cst.CSTNode, depth: int = 4) -> bool:
    """Whether `node` surely makes a Keras optimizer (not one of `tf.train`)."""
    if isinstance(node, cst.Name) and depth:
        binding = reaching_definition(program, node)
        return (
            binding is not None
            and binding.value is not None
            and makes_keras_optimizer(program, binding.value, depth - 1)
        )
    if not isinstance(node, cst.Call):
        return False
    root: cst.CSTNode = node.func
    while isinstance(root, cst.Attribute):
        root = root.value
    scope = program.scopes.loads.get(root) if isinstance(root, cst.Name) else None
    if scope is None:
        return False
    paths = program.origins.of_expression(node.func, scope)
    return bool(paths) and all(is_path(path) and _is_keras(path) for path in paths)


def _is_keras(path: str) -> bool:
    if path.startswith(f"{SHIM}."):  # a name that an earlier run moved
        return path[len(SHIM) + 1 :].startswith(_KERAS_OPTIMIZERS)
    root = root_of(path)
    if root is None:
        return False
    if root.name in ("keras", "tf_keras"):
        return root.rest.startswith(("optimizers.", "mixed_precision."))
    return root.rest.startswith(_KERAS_OPTIMIZERS)
