"""Finds uses of Keras 2's methods on optimizers whose origin is not seen in the file.

No class of Keras 3 has `get_scaled_loss` and `get_unscaled_gradients`, and its loss-scale optimizer
has no `loss_scale`. The shim's classes have them. So such a use is right if the program makes its
loss-scale optimizers, which are then the shim's, or sets the policy under which `compile` does.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import NamedTuple

import libcst as cst

from .classes import Classes
from .guards import Guards
from .resolved_program import ResolvedProgram
from .tree import walk
from .vocabulary import CLASS, SCALING

__all__ = ["ForeignUse", "Keras2Methods"]

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


class Keras2Methods:
    """The uses of methods of Keras 2 in a file."""

    def __init__(self, program: ResolvedProgram, classes: Classes, guards: Guards) -> None:
        self._program = program
        self._classes = classes
        self._guards = guards

    @functools.cached_property
    def foreign_uses(self) -> list[ForeignUse]:
        """The uses on objects that the file is not seen to make, in the order of the source."""
        if self._classes.is_of_other_library:
            return []
        found = [*self._calls(), *self._tests()]
        return sorted(found, key=lambda use: self._program.order.get(use.node, 0))

    def _calls(self) -> Iterator[ForeignUse]:
        """Yields the uses of what only Keras 2's class has and no test decides about.

        On `model.optimizer`, these are the calls of its methods and the reads of `loss_scale`,
        unless `compile` gets a loss-scale optimizer. On other objects of unknown origin, these are
        the calls alone: anything can have a `loss_scale`.
        """
        is_wrapped = self._compiles_wrapped
        for name in (*SCALING, _SCALE):
            for attribute in self._program.attributes(name):
                if not self._is_plain_use(attribute):
                    continue
                if self.is_compiled(attribute.value):
                    if not is_wrapped:
                        yield ForeignUse(attribute, name, is_compiled=True)
                elif name != _SCALE and self._is_foreign(attribute.value):
                    yield ForeignUse(attribute, name, is_compiled=False)

    def _is_plain_use(self, attribute: cst.Attribute) -> bool:
        """Whether a place calls a method, or reads `loss_scale`, and no test decides about it."""
        is_call = self._program.call_of(attribute) is not None
        is_method = attribute.attr.value != _SCALE
        if is_call is not is_method or self._program.is_stored(attribute):
            return False
        return not self._is_guarded(attribute)

    def _tests(self) -> Iterator[ForeignUse]:
        for call, name in self._program.mentions.accesses(SCALING):
            receiver = call.args[0].value
            if not self._classes.is_made_here(receiver):
                of_model = self.is_compiled(receiver)
                yield ForeignUse(call, name, of_model, is_test=True)

    def _is_foreign(self, node: cst.BaseExpression) -> bool:
        """Whether nothing in the file shows what an optimizer is: neither a class, nor a module."""
        if isinstance(node, cst.Name) and node.value in ("self", "cls"):
            return False
        if (
            isinstance(node, cst.Call)
            and isinstance(node.func, cst.Name)
            and node.func.value == "super"
        ):
            return False
        is_known = self._classes.is_made_here(node) or self._classes.is_loss_scale_optimizer(node)
        return not is_known and not self._program.paths_of(node)

    @functools.cached_property
    def _compiles_wrapped(self) -> bool:
        """Whether every `compile` with an optimizer in this file gets a loss-scale optimizer."""
        given = []
        for attribute in self._program.attributes("compile"):
            call = self._program.call_of(attribute)
            for index, argument in enumerate(call.args if call is not None else ()):
                name = argument.keyword.value if argument.keyword is not None else ""
                if name == _COMPILED or (not index and not name and not argument.star):
                    given.append(argument.value)
        return bool(given) and all(self._classes.is_loss_scale_optimizer(owner) for owner in given)

    def is_compiled(self, node: cst.CSTNode) -> bool:
        """Whether an object can be `model.optimizer`, which `compile` may have made."""
        return any(self._is_of_model(source) for source in self._program.values.sources_of(node))

    def _is_of_model(self, node: cst.CSTNode) -> bool:
        """Whether `node` is `model.optimizer`, and nothing here assigns an optimizer to it."""
        if not isinstance(node, cst.Attribute) or node.attr.value != _COMPILED:
            return False
        sources = self._program.values.sources_of(node.value)
        owners = [source for source in sources if isinstance(source, cst.Call)]
        if owners and all(_CHECKPOINT in self._program.code(call.func) for call in owners):
            return False  # as in TensorSpeech/TensorFlowTTS
        return not any(map(self._program.is_stored, self._program.attributes(_COMPILED)))

    def _is_guarded(self, attribute: cst.Attribute) -> bool:
        """Whether a test decides about the use that is right for every object.

        That is one for the method itself, such as `hasattr`, or for a class, or for the version.
        """
        if self._guards.depends_on_version(attribute):
            return True
        below: cst.CSTNode = attribute
        for above in self._program.ancestors(attribute):
            is_branch = isinstance(above, (cst.If, cst.IfExp)) and below is not above.test
            if is_branch and self._decides_about_method(above, below):
                return True
            if isinstance(above, (cst.FunctionDef, cst.ClassDef)):
                return False
            below = above
        return False

    def _decides_about_method(self, above: cst.CSTNode, branch: cst.CSTNode) -> bool:
        """Whether a condition tests for the method, or is a class test for a branch."""
        assert isinstance(above, (cst.If, cst.IfExp))
        test = self._program.code(above.test)
        if any(name in test for name in (*SCALING, _SCALE)):
            return True
        return branch is above.body and self._tests_class(above.test)

    def _tests_class(self, test: cst.BaseExpression) -> bool:
        """Whether a condition has a class test for a loss-scale optimizer of this file."""
        migrated = {node for node, name in self._program.migrated if name == CLASS}
        nodes = (node for node in walk(test) if node in self._program.by_node or node in migrated)
        is_tested = any(map(self._program.mentions.tested_object, nodes))
        return is_tested and self._classes.makes_optimizers()
