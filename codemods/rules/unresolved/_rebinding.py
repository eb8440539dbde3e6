"""Tells whether the names that are bound to a module can mean another one."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ...resolve import tree
from ...resolve.places import NamespaceUse
from ...resolve.scopes import BindingKind
from ...rewrite.imports import Variable
from ...rewrite.respell import bindings_to_values, is_only_target
from ..rule import Program

__all__ = ["can_rebind"]


def can_rebind(program: Program, use: NamespaceUse, name: str) -> bool:
    """Whether a name can mean another module: by all of its imports, or all of its assignments.

    Not that of `first = second = tf.contrib.mixed_precision`, nor one that is imported and then
    assigned, or made of itself, nor one that an evaluated text shows.
    """
    owner = use.scope.owner(name)
    if owner is None or _is_made_of_itself((owner, name)):
        return False
    if program.evaluated_texts.show(name):
        return False
    bindings = bindings_to_values((owner, name))
    if any(binding.kind is BindingKind.IMPORT for binding in bindings):
        return all(binding.kind is BindingKind.IMPORT for binding in bindings)
    places = program.cached(_nodes_of_places)
    return all(binding.value in places and is_only_target(program, binding) for binding in bindings)


def _is_made_of_itself(variable: Variable) -> bool:
    """Whether the value of a name is read from that name, as in `mp = mp`, or by way of others."""
    seen: set[Variable] = set()
    pending = list(_made_of(variable))
    while pending:
        part = pending.pop()
        if part not in seen:
            seen.add(part)
            pending += _made_of(part)
    return variable in seen


def _made_of(variable: Variable) -> Iterator[Variable]:
    """The names that the values of a name are read from."""
    owner, name = variable
    for binding in owner.bindings[name]:
        root = tree.root_name(binding.value)
        below = binding.scope.owner(root.value) if root is not None else None
        if root is not None and below is not None:
            yield below, root.value


def _nodes_of_places(program: Program) -> frozenset[cst.CSTNode]:
    return frozenset(place.node for place in program.places())
