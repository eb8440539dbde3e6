"""Answers what a class or an object is: a Keras loss-scale optimizer, an optimizer of `tf.train`.

The answers are certain or they are no: a parameter or the result of an unknown function is neither.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Optional

import libcst as cst

from .legacy_symbols import is_of_shim, legacy_of, root_of
from .program import Program
from .values import class_around, class_named, sources_of
from .vocabulary import CLASS, LOOK_ALIKES, POLICY, REWRITE

__all__ = [
    "Kind",
    "can_be_made_here",
    "inherits",
    "is_loss_scale_class",
    "is_loss_scale_optimizer",
    "is_made_here",
    "is_of_other_library",
    "kind_of_optimizer",
    "kind_of_source",
    "makes_optimizers",
    "may_be_loss_scale_optimizer",
    "may_inherit",
    "names_final_class",
    "names_final_class_of_shim",
    "sets_policy",
    "uses_methods_of_keras_3",
]

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


def is_loss_scale_class(program: Program, node: cst.CSTNode) -> bool:
    """Whether `node` means a Keras loss-scale optimizer, of TensorFlow or of the shim."""
    reference = program.by_node.get(node)
    if reference is not None:
        return reference.legacy.is_keras_optimizer
    if any(place.node is node for place in program.mixed):
        return False  # TensorFlow's own class, on some versions the experimental one
    paths = program.paths_of(node)
    return bool(paths) and all(_names_class(path) for path in paths)


def _names_class(path: str) -> bool:
    legacy = legacy_of(path)
    if legacy is not None:
        return legacy.is_keras_optimizer
    return is_of_shim(path) and path.rpartition(".")[2] in (CLASS, "from_loss_scale")


def is_loss_scale_optimizer(program: Program, node: cst.CSTNode) -> bool:
    """Whether `node` is a Keras loss-scale optimizer whenever it has a `loss_scale` at all.

    A value that is a plain Keras optimizer on other paths counts: reading the attribute fails on
    those, called or not.
    """
    if isinstance(node, cst.Name) and node.value == "self":
        return inherits(program, class_around(program, node))
    sources = sources_of(program, node)
    wrapped = [source for source in sources if _is_made(program, source)]
    return bool(wrapped) and all(
        source in wrapped or kind_of_source(program, source) is Kind.KERAS for source in sources
    )


def can_be_made_here(program: Program, node: cst.CSTNode) -> bool:
    """Whether `node` is a Keras loss-scale optimizer on some path, whatever it is on others."""
    return any(_is_made(program, source) for source in sources_of(program, node))


def _is_made(program: Program, source: cst.CSTNode) -> bool:
    """Whether a call makes such an optimizer; of what the graph rewrite makes, only it has one."""
    if not isinstance(source, cst.Call):
        return False
    made_by = source.func
    if isinstance(made_by, cst.Attribute) and made_by.attr.value == "from_config":
        made_by = made_by.value
    outer = _outer_classes(program, made_by)
    is_of_class = any(is_loss_scale_class(program, outer_class) for outer_class in outer)
    return is_of_class or _is_rewrite(program, source)


def _is_rewrite(program: Program, source: cst.CSTNode) -> bool:
    paths = program.paths_of(source.func) if isinstance(source, cst.Call) else frozenset()
    return bool(paths) and all(
        path.rpartition(".")[2] == REWRITE and legacy_of(path) is not None for path in paths
    )


def inherits(program: Program, owner: Optional[cst.ClassDef]) -> bool:
    """Whether a class of the program inherits from a Keras loss-scale optimizer."""
    bases = [base.value for base in owner.bases] if owner is not None else []
    outer = [outer_class for base in bases for outer_class in _outer_classes(program, base)]
    return any(is_loss_scale_class(program, outer_class) for outer_class in outer)


def _outer_classes(
    program: Program, node: cst.BaseExpression, depth: int = 4
) -> list[cst.BaseExpression]:
    """The class that `node` names; for one of the program, the other ones that it inherits from."""
    own = class_named(program, node)
    if own is None:
        return [node]
    bases = [base.value for base in own.bases] if depth else []
    return [
        outer_class for base in bases for outer_class in _outer_classes(program, base, depth - 1)
    ]


def may_inherit(program: Program, owner: Optional[cst.ClassDef]) -> bool:
    """Whether a base class comes from another file of the project, which may have such a class."""
    if owner is None:
        return False
    paths = [path for base in owner.bases for path in program.paths_of(base.value)]
    return any(root_of(path) is None and path.split(".")[0] not in LOOK_ALIKES for path in paths)


def may_be_loss_scale_optimizer(program: Program, node: cst.CSTNode) -> bool:
    """Whether `node` can be such an optimizer, if a file of the program makes one.

    A file of another library with classes of the same names, and without TensorFlow, has none.
    """
    if isinstance(node, cst.Name) and node.value in ("self", "cls"):
        owner = class_around(program, node)
        return inherits(program, owner) or may_inherit(program, owner)
    if program.cached(is_of_other_library):
        return False
    sources = sources_of(program, node)  # none if it is `None` until another file sets it
    return not sources or any(_may_be_made(program, source) for source in sources)


def _may_be_made(program: Program, source: cst.CSTNode) -> bool:
    """Whether a value may be a loss-scale optimizer; False only if it is known to be another."""
    if isinstance(source, cst.FunctionDef):
        return bool(source.decorators)  # such as a property, whose value can be anything
    if isinstance(source, cst.ClassDef):
        return False
    if isinstance(source, cst.Attribute):
        # The same name is what wrappers of other libraries hold such an optimizer under.
        is_inner = source.attr.value in _UNWRAPPED
        return not (is_inner and is_loss_scale_optimizer(program, source.value))
    if not isinstance(source, cst.Call):
        return True
    if _is_made(program, source):
        return True
    if class_named(program, source.func) is not None:
        return False
    paths = [path for path in program.paths_of(source.func) if not path.endswith(_FROM_CONFIG)]
    if any(path.partition(".")[0] in LOOK_ALIKES - {"tf_lossscale"} for path in paths):
        return any(path.endswith(".DistributedOptimizer") for path in paths)  # wraps any optimizer
    return not any(root_of(path) is not None or is_of_shim(path) for path in paths)


def is_of_other_library(program: Program) -> bool:
    """Whether a file imports a library with classes of the same names, and not TensorFlow."""
    paths = [binding.path for binding in program.imports()]
    is_of_tensorflow = any(root_of(path) is not None or is_of_shim(path) for path in paths)
    return not is_of_tensorflow and any(path.partition(".")[0] in LOOK_ALIKES for path in paths)


def makes_optimizers(program: Program) -> bool:
    """Whether the file mentions what makes a Keras loss-scale optimizer."""
    if program.cached(is_of_other_library):
        return False
    names = {*program.scopes.attributes}
    names |= {binding.path.rpartition(".")[2] for binding in program.imports()}
    return not names.isdisjoint(_MAKERS)


def uses_methods_of_keras_3(program: Program) -> bool:
    """Whether the file calls Keras 3's `scale_loss` of a certain loss-scale optimizer.

    A flag or a function of another library with this name does not count.
    """
    return any(
        program.call_of(attribute) is not None and is_loss_scale_optimizer(program, attribute.value)
        for attribute in program.attributes("scale_loss")
    )


def sets_policy(program: Program) -> bool:
    """Whether the file names a policy, under which `compile` wraps optimizers."""
    references = [*program.references, *program.mixed]
    return any(reference.legacy.is_policy for reference in references) or any(
        name in POLICY for _, name in program.migrated
    )


def names_final_class(program: Program) -> bool:
    """Whether the program names the final class, of TensorFlow or of the shim."""
    legacy = [place.legacy for place in [*program.references, *program.mixed]]
    is_named = any(
        symbol.is_keras_optimizer and not symbol.is_experimental_optimizer for symbol in legacy
    )
    return is_named or names_final_class_of_shim(program)


def names_final_class_of_shim(program: Program) -> bool:
    """Whether the program names the shim's final class."""
    imported = any(imported.path == _SHIMS_FINAL for imported in program.imports())
    return imported or any(name == CLASS for _, name in program.migrated)


def is_made_here(program: Program, node: cst.CSTNode) -> bool:
    """Whether every value of `node` is made by an optimizer class that this file calls."""
    sources = sources_of(program, node)
    return bool(sources) and all(
        _is_made(program, source) or kind_of_source(program, source) is not Kind.UNKNOWN
        for source in sources
    )


def kind_of_optimizer(program: Program, node: cst.CSTNode) -> Kind:
    """The kind of an optimizer; unknown if it can be of several.

    In `opt = enable_mixed_precision_graph_rewrite(opt)`, the call itself is no source of its own.
    """
    sources = [source for source in sources_of(program, node) if not _is_rewrite(program, source)]
    return _only(kind_of_source(program, source) for source in sources)


def kind_of_source(program: Program, source: cst.CSTNode) -> Kind:
    """The kind of the optimizer that a call makes; unknown for everything else."""
    outer = _outer_classes(program, source.func) if isinstance(source, cst.Call) else []
    found = {_only(map(_kind_of_path, program.paths_of(outer_class))) for outer_class in outer}
    return _only(found - {Kind.UNKNOWN})


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
