"""Resolves expressions to the dotted paths that they can mean, and paths to attributes.

A name has the meanings of all its bindings. A rule acts only if they agree.
"""

from __future__ import annotations

from typing import Optional

import libcst as cst

from .legacy_symbols import Root, root_of
from .scopes import Binding, BindingKind, Scope

__all__ = [
    "CALL",
    "COMPUTED",
    "LOCAL",
    "PARAMETER",
    "STAR",
    "Origins",
    "attribute_path",
    "is_path",
]

LOCAL = "<local>"
"""A value made in this program, or a builtin: a class, a function, a number."""
COMPUTED = "<computed>"
"""What is taken from something else: an item, or what a loop or a `with` binds."""
PARAMETER = "<parameter>"
"""A value that comes from a caller."""
CALL = "<call>"
"""Something that a call returned."""
STAR = "<star>"
"""A name that only a star import can bind."""

_MOST_VALUES = 20_000
"""Values of a file that are resolved within others. Names that are made of each other, as in
`a = a or b`, have as many ways from one to the next as there are orders of them."""
_MOST_VALUES_BEFORE = 200
"""The same for what one name means in a value that is bound to itself."""


def is_path(meaning: str) -> bool:
    """Whether `meaning` is a dotted path from an import."""
    return not meaning.startswith("<")


class Origins:
    """Resolves names and attribute chains, and caches the results."""

    def __init__(self) -> None:
        self._names: dict[tuple[Scope, str], frozenset[str]] = {}
        self._open: set[Binding] = set()
        self._left = _MOST_VALUES

    def of_name(self, name: str, scope: Scope) -> frozenset[str]:
        """The possible meanings of `name` in `scope`."""
        if scope.is_unsure(name):
            return self._of_variable(name, scope) | self._of_variable(name, scope.module)
        return self._of_variable(name, scope)

    def before(self, binding: Binding) -> frozenset[str]:
        """The possible meanings of the name of a binding where its own value is made.

        As in `tpu = tpu.CrossShardOptimizer`. They are all, if nothing else binds the name, or if
        too many values are within each other.
        """
        left = self._left
        self._left = min(left, _MOST_VALUES_BEFORE)
        found: set[str] = set()
        self._open.add(binding)
        for other in binding.scope.bindings_of(binding.name):
            if other is not binding:
                found |= self.of_binding(other)
        self._open.discard(binding)
        is_known = bool(found) and self._left >= 0
        self._left = left
        return frozenset(found) if is_known else self.of_name(binding.name, binding.scope)

    def _of_variable(self, name: str, scope: Scope) -> frozenset[str]:
        """The possible meanings of `name` in the first scope that binds it."""
        owner = scope.owner(name)
        if owner is None:
            stars = any(around.stars for around in scope.chain())
            return frozenset([STAR if stars else LOCAL])
        key = (owner, name)
        known = self._names.get(key)
        if known is None:
            before = len(self._open)
            found: set[str] = set()
            for binding in owner.bindings[name]:
                found |= self.of_binding(binding)
            known = frozenset(found)
            if not before:  # a result found inside a cycle is incomplete
                self._names[key] = known
        return known

    def below(self, meanings: frozenset[str], name: str) -> frozenset[str]:
        """The possible meanings of the attribute `name` of a value."""
        return frozenset(f"{part}.{name}" if is_path(part) else part for part in meanings)

    def of_binding(self, binding: Binding) -> frozenset[str]:
        """The possible meanings that `binding` gives its name."""
        if binding.kind is BindingKind.IMPORT:
            return frozenset([binding.path])
        if binding.kind is BindingKind.PARAMETER:
            return frozenset([PARAMETER])
        if binding.value is None:
            return frozenset([COMPUTED if binding.kind is BindingKind.OTHER else LOCAL])
        if binding in self._open:
            return frozenset()
        if self._open:
            self._left -= 1
            if self._left < 0:
                return frozenset([COMPUTED])
        self._open.add(binding)
        try:
            return self.of_expression(binding.value, binding.scope)
        finally:
            self._open.discard(binding)

    def of_expression(self, node: Optional[cst.CSTNode], scope: Scope) -> frozenset[str]:
        """The possible meanings of the value of `node`."""
        if isinstance(node, cst.Name):
            if node.value == "None":
                return frozenset()
            return self.of_name(node.value, scope)
        if isinstance(node, cst.Attribute):
            return self.below(self.of_expression(node.value, scope), node.attr.value)
        if isinstance(node, cst.IfExp):
            return self.of_expression(node.body, scope) | self.of_expression(node.orelse, scope)
        if isinstance(node, cst.BooleanOperation):
            right = self.of_expression(node.right, scope)
            if isinstance(node.operator, cst.And):  # what is false has no attributes to resolve
                return right
            return self.of_expression(node.left, scope) | right
        if isinstance(node, cst.NamedExpr):
            return self.of_expression(node.value, scope)
        if isinstance(node, cst.Call):
            return frozenset([CALL])
        if isinstance(node, cst.Subscript):
            return frozenset([COMPUTED])
        return frozenset([LOCAL])


_IN_BOTH = frozenset(["keras.mixed_precision.LossScaleOptimizer"])
"""Symbols that are the same object in `compat.v1`."""
_KERAS = ("keras", "tf_keras")


def attribute_path(path: str, target: str) -> Optional[str]:
    """The attributes that lead from the module `path` to `target`; None if none do.

    They are empty if both are the same. `target` may be below the module by another path: a module
    of a Keras package has what `tensorflow.keras` has there. The root of one TensorFlow namespace
    leads to the others through its `compat`, where the newest API is `v2`; a module below the root
    leads to no other namespace, and `tensorflow.compat` to nothing but itself.

    >>> attribute_path("tensorflow.compat.v1", "tensorflow.compat.v1.tpu.cross_replica_sum")
    'tpu.cross_replica_sum'
    >>> attribute_path("tensorflow.compat.v1", "tensorflow.keras.mixed_precision.Policy")
    'compat.v2.keras.mixed_precision.Policy'
    >>> attribute_path("keras.mixed_precision", "tensorflow.keras.mixed_precision.Policy")
    'Policy'
    >>> attribute_path("tensorflow.compat.v1.train", "tensorflow.keras.mixed_precision.Policy")
    """
    if target == path:
        return ""
    if target.startswith(path + ".") and path != "tensorflow.compat":
        return target[len(path) + 1 :]
    root, wanted = root_of(path), root_of(target)
    if root is None or wanted is None or not target.startswith("tensorflow."):
        return None
    module = root.rest
    if root.name in _KERAS:
        module = f"keras.{root.rest}".rstrip(".")  # its path below `tensorflow`
    if _is_below_root(root, wanted):
        return _below(module, wanted.rest)
    if module:
        return None  # only the root of a namespace has `compat`
    namespace = "v2" if wanted.name == "tf" else wanted.name
    return f"compat.{namespace}.{wanted.rest}"


def _is_below_root(root: Root, wanted: Root) -> bool:
    """Whether the TensorFlow namespace of `root` has what `wanted` names.

    `compat.v2` and the Keras packages have the newest API, which `tensorflow` itself has.
    `compat.v1` has little of it.
    """
    if wanted.name == root.name:
        return True
    if wanted.name != "tf":
        return False
    return root.name != "v1" or wanted.rest in _IN_BOTH


def _below(module: str, path: str) -> Optional[str]:
    """The rest of `path` below `module`; None if it is not below. All is below an empty module."""
    if not module:
        return path
    return path[len(module) + 1 :] if path.startswith(f"{module}.") else None
