"""What an edit takes out of a program: the legacy arms of version guards, with `--unsafe`.

The program is resolved as if these nodes had never been there, so that what follows a guard is
rewritten in the same run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import libcst as cst

from .scopes import Scope, ScopeBuilder
from .tree import Edit

__all__ = ["NOTHING_CUT", "Cut", "Removal", "take_out"]


class Removal(NamedTuple):
    """A guard that is replaced by its final arm.

    Attributes:
      guard: the node that is replaced.
      edit: what replaces it; its children are already edited.
      places: the legacy names in its legacy arm, each with the symbol that it means.
    """

    guard: cst.CSTNode
    edit: Edit
    places: tuple[tuple[cst.CSTNode, str], ...]


class Cut(NamedTuple):
    """All that is taken out of a program.

    Attributes:
      nodes: the nodes.
      values: the expressions of which only a part is left, each with this part.
      removals: the guards.
    """

    nodes: frozenset[cst.CSTNode]
    values: Mapping[cst.CSTNode, cst.BaseExpression]
    removals: tuple[Removal, ...]


NOTHING_CUT = Cut(frozenset(), {}, ())


def take_out(scopes: ScopeBuilder, cut: Cut) -> list[tuple[Scope, str]]:
    """Removes what is cut from the scopes; returns the variables that only this part reads."""
    if not cut.nodes:
        return []
    before = _read(scopes)
    scopes.loads = {name: scope for name, scope in scopes.loads.items() if name not in cut.nodes}
    scopes.strings = [string for string in scopes.strings if string not in cut.nodes]
    for name, attributes in scopes.attributes.items():
        scopes.attributes[name] = [one for one in attributes if one not in cut.nodes]
    for scope in scopes.all:
        scope.stars = [star for star in scope.stars if star[0] not in cut.nodes]
        for name, bindings in list(scope.bindings.items()):
            left = [
                one._replace(value=cut.values.get(one.value, one.value)) if one.value else one
                for one in bindings
                if one.node not in cut.nodes
            ]
            if left:
                scope.bindings[name] = left
            else:
                del scope.bindings[name]
    after = _read(scopes)
    unread = [variable for variable in before if variable not in after]
    return [(owner, name) for owner, name in unread if name in owner.bindings]


def _read(scopes: ScopeBuilder) -> dict[tuple[Scope, str], None]:
    """The variables that anything reads, in the order of the source."""
    found: dict[tuple[Scope, str], None] = {}
    for name, scope in scopes.loads.items():
        owner = scope.owner(name.value)
        if owner is not None:
            found[owner, name.value] = None
    return found
