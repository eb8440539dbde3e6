"""Classifies optimizers as those of `tf.train`, those of Keras, and unknown ones.

The kind follows from the class that the program constructs, or from a base of a class that the
program defines. The name of a variable is not evidence.
"""

from __future__ import annotations

import enum
import re
from typing import Optional

import libcst as cst

from .legacy_symbols import root_of
from .possible_values import paths_of, possible_values
from .program import Program

__all__ = ["Kind", "class_named", "class_of", "kinds_of"]

_DEPTH = 4
_SHIM = "tf_lossscale."


class Kind(enum.Enum):
    """The API that an optimizer belongs to."""

    V1 = "v1"
    """`tf.train.Optimizer` and its subclasses."""
    KERAS = "keras"
    """The optimizers of Keras, old and new."""
    UNKNOWN = "unknown"


_V1 = re.compile(
    r"""
    (?: train\.\w*Optimizer
      | (?:train\.experimental|mixed_precision)\.MixedPrecisionLossScaleOptimizer
      | (?:contrib\.)?tpu\.CrossShardOptimizer
      | contrib\.(?!keras\.)(?:\w+\.)+\w*Optimizer
      | python\.training\.\w+\.\w*Optimizer
    )\Z
    """,
    re.VERBOSE,
)
"""The graph-mode optimizers, as paths below `tensorflow` or `tensorflow.compat.v1`."""
_KERAS = ("keras.optimizers.", "keras.mixed_precision.", "optimizers.")
_SAME_KIND_AS_ARGUMENT = ("horovod.tensorflow.DistributedOptimizer",)
"""Functions whose result has the kind of their first argument."""


def kinds_of(program: Program, node: cst.CSTNode, depth: int = _DEPTH) -> frozenset[Kind]:
    """Every kind that the optimizer `node` can have."""
    found: set[Kind] = set()
    for value in possible_values(program, node):
        found |= _of_value(program, value, depth)
    return frozenset(found or [Kind.UNKNOWN])


def class_of(program: Program, call: cst.Call) -> Optional[cst.ClassDef]:
    """The class statement in the program of which `call` creates an instance."""
    return class_named(program, call.func)


def class_named(program: Program, node: cst.CSTNode) -> Optional[cst.ClassDef]:
    """The class statement in the program that `node`, a name, refers to."""
    if not isinstance(node, cst.Name):
        return None
    scope = program.scopes.loads.get(node)
    bindings = scope.bindings_of(node.value) if scope is not None else []
    bound = bindings[0].node if len(bindings) == 1 else None
    return bound if isinstance(bound, cst.ClassDef) else None


def _of_value(program: Program, value: cst.CSTNode, depth: int) -> frozenset[Kind]:
    unknown = frozenset([Kind.UNKNOWN])
    if not isinstance(value, cst.Call) or depth == 0:
        return unknown
    made = class_of(program, value)
    if made is not None:
        return frozenset([_of_class(program, made, depth)])
    paths = paths_of(program, value.func)
    if not paths:
        return unknown
    if _has_kind_of_argument(paths):
        first = value.args[0] if value.args else None
        if first is None or first.star or (first.keyword and first.keyword.value != "opt"):
            return unknown
        return kinds_of(program, first.value, depth - 1)
    return frozenset(map(_of_path, paths))


def _has_kind_of_argument(paths: frozenset[str]) -> bool:
    name = "enable_mixed_precision_graph_rewrite"
    return all(path in _SAME_KIND_AS_ARGUMENT or path.rpartition(".")[2] == name for path in paths)


def _of_class(program: Program, made: cst.ClassDef, depth: int) -> Kind:
    """The kind of the first base class whose kind is known."""
    if depth == 0:
        return Kind.UNKNOWN
    for base in made.bases:
        if base.star:
            break
        paths = paths_of(program, base.value)
        kinds = set(map(_of_path, paths)) - {Kind.UNKNOWN}
        if len(kinds) == 1:
            return kinds.pop()
        inherited = class_named(program, base.value)
        kind = _of_class(program, inherited, depth - 1) if inherited is not None else Kind.UNKNOWN
        if kind is not Kind.UNKNOWN:
            return kind
    return Kind.UNKNOWN


def _of_path(path: str) -> Kind:
    if path.startswith(_SHIM):  # a name that an earlier run migrated
        rest = path[len(_SHIM) :]
        rest = rest[len("compat.v1.") :] if rest.startswith("compat.v1.") else rest
        if rest.startswith("keras.mixed_precision."):
            return Kind.KERAS
        return Kind.V1 if _V1.match(rest) else Kind.UNKNOWN
    if path.startswith("tensorflow_addons.optimizers."):
        return Kind.KERAS
    root = root_of(path)
    if root is None:
        return Kind.UNKNOWN
    if root.name in ("keras", "tf_keras"):
        is_keras = root.rest.startswith(("optimizers.", "mixed_precision."))
        return Kind.KERAS if is_keras else Kind.UNKNOWN
    if root.rest.startswith(_KERAS):
        return Kind.KERAS
    return Kind.V1 if root.name != "v2" and _V1.match(root.rest) else Kind.UNKNOWN
