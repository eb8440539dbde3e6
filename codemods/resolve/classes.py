"""Answers what a class or an object is: a Keras loss-scale optimizer, an optimizer of `tf.train`.

The answers are certain or they are no: a parameter or the result of an unknown function is neither.
"""

from __future__ import annotations

import enum
import functools
import itertools
from collections.abc import Iterable
from typing import Optional

import libcst as cst

from .legacy_symbols import is_of_shim, is_of_tensorflow, legacy_of, root_of
from .resolved_program import ResolvedProgram
from .vocabulary import CLASS, LOOK_ALIKES, POLICY, REWRITE

__all__ = ["Classes", "Kind"]

_SHIMS_FINAL = f"tf_lossscale.keras.mixed_precision.{CLASS}"
_MAKERS = frozenset([CLASS, REWRITE, "from_loss_scale"])
_UNWRAPPED = ("inner_optimizer", "_optimizer")
_FROM_CONFIG = ("optimizers.deserialize", "optimizers.get")


class Kind(enum.Enum):
    """The kind of an optimizer."""

    V1 = "v1"
    """An optimizer of `tf.train`, or one that wraps it."""
    KERAS = "keras"
    UNKNOWN = "unknown"

    @property
    def is_v1(self) -> bool:
        """Whether it is an optimizer of `tf.train`."""
        return self is Kind.V1

    @property
    def is_keras(self) -> bool:
        """Whether it is an optimizer of Keras."""
        return self is Kind.KERAS


class Classes:
    """What the classes and objects of a file are."""

    def __init__(self, program: ResolvedProgram) -> None:
        self._program = program
        self._values = program.values

    def is_loss_scale_class(self, node: cst.CSTNode) -> bool:
        """Whether `node` means a Keras loss-scale optimizer, of TensorFlow or of the shim."""
        reference = self._program.by_node.get(node)
        if reference is not None:
            return reference.legacy.is_keras_optimizer
        if any(place.node is node for place in self._program.mixed):
            return False  # TensorFlow's own class, on some versions the experimental one
        paths = self._program.paths_of(node)
        return bool(paths) and all(_names_class(path) for path in paths)

    def is_loss_scale_optimizer(self, node: cst.CSTNode) -> bool:
        """Whether `node` is a Keras loss-scale optimizer whenever it has a `loss_scale` at all.

        A value that is a plain Keras optimizer on other paths counts: reading the attribute fails
        on those, called or not.
        """
        if isinstance(node, cst.Name) and node.value == "self":
            return self.inherits(self._values.class_around(node))
        sources = self._values.sources_of(node)
        wrapped = [source for source in sources if self._is_made(source)]
        return bool(wrapped) and all(
            source in wrapped or self.kind_of_source(source) is Kind.KERAS for source in sources
        )

    def can_be_made_here(self, node: cst.CSTNode) -> bool:
        """Whether `node` is a Keras loss-scale optimizer on some path, whatever it is on others."""
        return any(self._is_made(source) for source in self._values.sources_of(node))

    def _is_made(self, source: cst.CSTNode) -> bool:
        """Whether a call makes such an optimizer.

        Of what the graph rewrite makes, only such an optimizer has a loss scale.
        """
        if not isinstance(source, cst.Call):
            return False
        made_by = source.func
        if isinstance(made_by, cst.Attribute) and made_by.attr.value == "from_config":
            made_by = made_by.value
        outer = self._outer_classes(made_by)
        is_of_class = any(self.is_loss_scale_class(outer_class) for outer_class in outer)
        return is_of_class or self._is_rewrite(source)

    def _is_rewrite(self, source: cst.CSTNode) -> bool:
        paths = self._program.paths_of(source.func) if isinstance(source, cst.Call) else frozenset()
        return bool(paths) and all(
            path.rpartition(".")[2] == REWRITE and legacy_of(path) is not None for path in paths
        )

    def inherits(self, owner: Optional[cst.ClassDef]) -> bool:
        """Whether a class of the file inherits from a Keras loss-scale optimizer."""
        bases = [base.value for base in owner.bases] if owner is not None else []
        outer = [outer_class for base in bases for outer_class in self._outer_classes(base)]
        return any(self.is_loss_scale_class(outer_class) for outer_class in outer)

    def _outer_classes(self, node: cst.BaseExpression, depth: int = 4) -> list[cst.BaseExpression]:
        """The class that `node` names; for one of the file, those that it inherits from."""
        own = self._values.class_named(node)
        if own is None:
            return [node]
        bases = [base.value for base in own.bases] if depth else []
        return [
            outer_class for base in bases for outer_class in self._outer_classes(base, depth - 1)
        ]

    def may_inherit(self, owner: Optional[cst.ClassDef]) -> bool:
        """Whether a base class comes from another file, which may have such a class."""
        if owner is None:
            return False
        paths = [path for base in owner.bases for path in self._program.paths_of(base.value)]
        return any(
            root_of(path) is None and path.split(".")[0] not in LOOK_ALIKES for path in paths
        )

    def may_be_loss_scale_optimizer(self, node: cst.CSTNode) -> bool:
        """Whether `node` can be such an optimizer, if a file of the program makes one.

        A file of another library with classes of the same names, and without TensorFlow, has none.
        """
        if isinstance(node, cst.Name) and node.value in ("self", "cls"):
            owner = self._values.class_around(node)
            return self.inherits(owner) or self.may_inherit(owner)
        if self.is_of_other_library:
            return False
        sources = self._values.sources_of(node)
        # There is none if it is `None` until another file sets it.
        return not sources or any(self._may_be_made(source) for source in sources)

    def _may_be_made(self, source: cst.CSTNode) -> bool:
        """Whether a value may be a loss-scale optimizer, as it is not known to be another."""
        if isinstance(source, cst.FunctionDef):
            return bool(source.decorators)  # such as a property, whose value can be anything
        if isinstance(source, cst.ClassDef):
            return False
        if isinstance(source, cst.Attribute):
            # The same name is what wrappers of other libraries hold such an optimizer under.
            is_inner = source.attr.value in _UNWRAPPED
            return not (is_inner and self.is_loss_scale_optimizer(source.value))
        if not isinstance(source, cst.Call):
            return True
        if self._is_made(source):
            return True
        if self._values.class_named(source.func) is not None:
            return False
        made_by = self._program.paths_of(source.func)
        paths = [path for path in made_by if not path.endswith(_FROM_CONFIG)]
        if any(path.partition(".")[0] in LOOK_ALIKES - {"tf_lossscale"} for path in paths):
            # This class wraps any optimizer.
            return any(path.endswith(".DistributedOptimizer") for path in paths)
        return not any(map(is_of_tensorflow, paths))

    @functools.cached_property
    def is_of_other_library(self) -> bool:
        """Whether a file imports a library with classes of the same names, and not TensorFlow."""
        paths = [binding.path for binding in self._program.imports()]
        if any(map(is_of_tensorflow, paths)):
            return False
        return any(path.partition(".")[0] in LOOK_ALIKES for path in paths)

    def makes_optimizers(self) -> bool:
        """Whether the file mentions what makes a Keras loss-scale optimizer."""
        if self.is_of_other_library:
            return False
        names = {*self._program.scopes.attributes}
        names |= {binding.path.rpartition(".")[2] for binding in self._program.imports()}
        return not names.isdisjoint(_MAKERS)

    def uses_methods_of_keras_3(self) -> bool:
        """Whether the file calls Keras 3's `scale_loss` of a certain loss-scale optimizer.

        A flag or a function of another library with this name does not count.
        """
        attributes = self._program.attributes("scale_loss")
        called = (found for found in attributes if self._program.call_of(found) is not None)
        return any(self.is_loss_scale_optimizer(attribute.value) for attribute in called)

    def sets_policy(self) -> bool:
        """Whether the file names a policy, under which `compile` wraps optimizers."""
        references = [*self._program.references, *self._program.mixed]
        return any(reference.legacy.is_policy for reference in references) or any(
            name in POLICY for _, name in self._program.migrated
        )

    def names_final_class(self) -> bool:
        """Whether the file names the final class, of TensorFlow or of the shim."""
        legacy = [place.legacy for place in [*self._program.references, *self._program.mixed]]
        is_named = any(
            symbol.is_keras_optimizer and not symbol.is_experimental_optimizer for symbol in legacy
        )
        return is_named or self.names_final_class_of_shim()

    def names_final_class_of_shim(self) -> bool:
        """Whether the file names the shim's final class."""
        imported = any(imported.path == _SHIMS_FINAL for imported in self._program.imports())
        return imported or any(name == CLASS for _, name in self._program.migrated)

    def is_made_here(self, node: cst.CSTNode) -> bool:
        """Whether every value of `node` is made by an optimizer class that this file calls."""
        sources = self._values.sources_of(node)
        return bool(sources) and all(
            self._is_made(source) or self.kind_of_source(source) is not Kind.UNKNOWN
            for source in sources
        )

    def tests_foreign(self, node: cst.CSTNode) -> bool:
        """Whether a place tests the class of an object that is not seen to be made in this file."""
        tested = self._program.mentions.tested_object(node)
        return tested is not None and not self.is_made_here(tested)

    def kind_of_optimizer(self, node: cst.CSTNode) -> Kind:
        """The kind of an optimizer; unknown if it can be of several.

        In `opt = enable_mixed_precision_graph_rewrite(opt)`, the call itself is no source.
        """
        sources = itertools.filterfalse(self._is_rewrite, self._values.sources_of(node))
        return _only(map(self.kind_of_source, sources))

    def kind_of_source(self, source: cst.CSTNode) -> Kind:
        """The kind of the optimizer that a call makes; unknown for everything else."""
        outer = self._outer_classes(source.func) if isinstance(source, cst.Call) else []
        paths = map(self._program.paths_of, outer)
        found = {_only(map(_kind_of_path, meanings)) for meanings in paths}
        return _only(found - {Kind.UNKNOWN})


def _names_class(path: str) -> bool:
    legacy = legacy_of(path)
    if legacy is not None:
        return legacy.is_keras_optimizer
    return is_of_shim(path) and path.rpartition(".")[2] in (CLASS, "from_loss_scale")


def _only(kinds: Iterable[Kind]) -> Kind:
    found = set(kinds)
    return found.pop() if len(found) == 1 else Kind.UNKNOWN


def _kind_of_path(path: str) -> Kind:
    """The kind of the optimizer class with a full path; unknown for any other class."""
    legacy = legacy_of(path)
    if legacy is not None and legacy.is_keras_optimizer:
        return Kind.KERAS
    root = root_of(path)
    name = path.rpartition(".")[2]
    if legacy is not None:
        return Kind.V1 if name.endswith("Optimizer") else Kind.UNKNOWN
    if root is None or not name[:1].isupper():
        return Kind.UNKNOWN
    if "optimizers" in root.rest.split("."):
        return Kind.KERAS
    is_v1 = root.rest == f"train.{name}" or root.rest.startswith("contrib.")
    return Kind.V1 if is_v1 and name.endswith("Optimizer") else Kind.UNKNOWN
