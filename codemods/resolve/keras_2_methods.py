"""Finds uses of Keras 2's methods on optimizers whose origin is not seen in the file.

No class of Keras 3 has `get_scaled_loss` and `get_unscaled_gradients`, and its loss-scale optimizer
has no `loss_scale`. The shim's classes have them. So such a use is right if the program makes its
loss-scale optimizers, which are then the shim's, or sets the policy under which `compile` does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import libcst as cst

from ..facts import Decision, Trait
from .classes import (
    is_loss_scale_optimizer,
    is_made_here,
    is_of_other_library,
    makes_optimizers,
)
from .guards import depends_on_version
from .mentions import accesses, tested_object
from .program import Program
from .tree import walk
from .values import sources_of
from .vocabulary import CLASS, SCALING

__all__ = ["ForeignUse", "foreign_uses", "is_compiled", "is_origin_known"]

_SCALE = "loss_scale"
_COMPILED = "optimizer"
"""The attribute in which a Keras model keeps its optimizer."""
_CHECKPOINT = "Checkpoint"
"""A part of the names of classes that only save an optimizer."""


class ForeignUse(NamedTuple):
    """A use of one of Keras 2's methods.

    Attributes:
      node: the attribute, or the call of `hasattr` or `getattr`.
      name: the name of the method.
      is_compiled: whether the object is `model.optimizer`, which `compile` may have made.
      is_test: whether it asks if the object has the method.
    """

    node: cst.CSTNode
    name: str
    is_compiled: bool
    is_test: bool = False


def is_origin_known(decision: Decision) -> bool:
    """Whether the program shows what makes its loss-scale optimizers."""
    return not decision.traits.isdisjoint({Trait.MAKER, Trait.POLICY})


def foreign_uses(program: Program) -> list[ForeignUse]:
    """The uses on objects that are not seen to be made in this file, in the order of the source."""
    return program.cached(_foreign_uses)


def _foreign_uses(program: Program) -> list[ForeignUse]:
    if program.cached(is_of_other_library):
        return []
    found = [*_calls(program), *_tests(program)]
    return sorted(found, key=lambda use: program.order.get(use.node, 0))


def _calls(program: Program) -> Iterator[ForeignUse]:
    """Yields the uses of what only Keras 2's class has and no test decides about.

    On `model.optimizer`, these are the calls of its methods and the reads of `loss_scale`, unless
    `compile` gets a loss-scale optimizer. On other objects of unknown origin, these are the calls
    alone: anything can have a `loss_scale`.
    """
    is_wrapped = program.cached(_compiles_wrapped)
    for name in (*SCALING, _SCALE):
        for attribute in program.attributes(name):
            if not _is_plain_use(program, attribute):
                continue
            if is_compiled(program, attribute.value):
                if not is_wrapped:
                    yield ForeignUse(attribute, name, is_compiled=True)
            elif name != _SCALE and _is_foreign(program, attribute.value):
                yield ForeignUse(attribute, name, is_compiled=False)


def _is_plain_use(program: Program, attribute: cst.Attribute) -> bool:
    """Whether a place calls a method, or reads `loss_scale`, and no test decides about it."""
    is_call = program.call_of(attribute) is not None
    is_method = attribute.attr.value != _SCALE
    if is_call is not is_method or program.is_stored(attribute):
        return False
    return not _is_guarded(program, attribute)


def _tests(program: Program) -> Iterator[ForeignUse]:
    for call, name in accesses(program, SCALING):
        receiver = call.args[0].value
        if not is_made_here(program, receiver):
            of_model = is_compiled(program, receiver)
            yield ForeignUse(call, name, of_model, is_test=True)


def _is_foreign(program: Program, node: cst.BaseExpression) -> bool:
    """Whether nothing in the file shows what an optimizer is: neither a class, nor a module."""
    if isinstance(node, cst.Name) and node.value in ("self", "cls"):
        return False
    if (
        isinstance(node, cst.Call)
        and isinstance(node.func, cst.Name)
        and node.func.value == "super"
    ):
        return False
    is_known = is_made_here(program, node) or is_loss_scale_optimizer(program, node)
    return not is_known and not program.paths_of(node)


def _compiles_wrapped(program: Program) -> bool:
    """Whether every `compile` with an optimizer in this file gets a loss-scale optimizer."""
    given = []
    for attribute in program.attributes("compile"):
        call = program.call_of(attribute)
        for index, argument in enumerate(call.args if call is not None else ()):
            name = argument.keyword.value if argument.keyword is not None else ""
            if name == _COMPILED or (not index and not name and not argument.star):
                given.append(argument.value)
    return bool(given) and all(is_loss_scale_optimizer(program, owner) for owner in given)


def is_compiled(program: Program, node: cst.CSTNode) -> bool:
    """Whether an object can be `model.optimizer`, which `compile` may have made."""
    return any(_is_of_model(program, source) for source in sources_of(program, node))


def _is_of_model(program: Program, node: cst.CSTNode) -> bool:
    """Whether `node` is `model.optimizer`, and nothing here assigns an optimizer to it."""
    if not isinstance(node, cst.Attribute) or node.attr.value != _COMPILED:
        return False
    owners = [source for source in sources_of(program, node.value) if isinstance(source, cst.Call)]
    if owners and all(_CHECKPOINT in program.code(call.func) for call in owners):
        return False  # as in TensorSpeech/TensorFlowTTS
    return not any(program.is_stored(attribute) for attribute in program.attributes(_COMPILED))


def _is_guarded(program: Program, attribute: cst.Attribute) -> bool:
    """Whether a test decides about the use that is right for every object.

    That is one for the method itself, such as `hasattr`, or for a class, or for the version.
    """
    if depends_on_version(program, attribute, {}):
        return True
    below: cst.CSTNode = attribute
    for above in program.ancestors(attribute):
        is_branch = isinstance(above, (cst.If, cst.IfExp)) and below is not above.test
        if is_branch and _decides_about_method(program, above, below):
            return True
        if isinstance(above, (cst.FunctionDef, cst.ClassDef)):
            return False
        below = above
    return False


def _decides_about_method(program: Program, above: cst.CSTNode, branch: cst.CSTNode) -> bool:
    """Whether a condition tests for the method, or is a class test for a branch."""
    assert isinstance(above, (cst.If, cst.IfExp))
    test = program.code(above.test)
    if any(name in test for name in (*SCALING, _SCALE)):
        return True
    return branch is above.body and _tests_class(program, above.test)


def _tests_class(program: Program, test: cst.BaseExpression) -> bool:
    """Whether a condition has a class test for a loss-scale optimizer of this file."""
    migrated = {node for node, name in program.migrated if name == CLASS}
    nodes = (node for node in walk(test) if node in program.by_node or node in migrated)
    return makes_optimizers(program) and any(tested_object(program, node) for node in nodes)
