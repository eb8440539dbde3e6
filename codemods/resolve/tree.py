"""Walks and rebuilds LibCST trees without visiting whitespace.

LibCST's visitors take as long as the parse itself, mostly for whitespace. `children` determines the
fields that contain syntax once per node class, and `rebuilt` copies only the path from each edited
node to the root.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Callable, Optional, Union

import libcst as cst

__all__ = [
    "REMOVED",
    "Edit",
    "Edited",
    "Parents",
    "ancestors",
    "body_of",
    "children",
    "dotted",
    "is_stored",
    "last_name",
    "rebuilt",
    "root_name",
    "string_of",
    "walk",
]

Parents = dict[cst.CSTNode, cst.CSTNode]
"""Each node's parent; the root has none."""

Edited = Union[cst.CSTNode, Sequence[cst.CSTNode]]
"""What replaces a node: a node, or in a sequence several; none takes it out of the sequence."""

REMOVED: Sequence[cst.CSTNode] = ()
"""What an edit returns to take a node out of the sequence that holds it."""

Edit = Callable[[cst.CSTNode], Edited]
"""Takes a node whose children are rebuilt, and returns what replaces it."""

_NO_SYNTAX = {
    "lpar", "rpar", "lbracket", "rbracket", "lbrace", "rbrace", "header", "footer", "newline",
    "semicolon", "comma", "equal", "dot", "operator", "relative", "encoding", "default_indent",
}  # fmt: skip


class _Fields(dict[type, tuple[str, ...]]):
    """The fields that can contain syntax, for each class of node."""

    def __missing__(self, kind: type) -> tuple[str, ...]:
        self[kind] = tuple(
            field.name
            for field in dataclasses.fields(kind)
            if field.type is not str
            and not field.name.startswith("_")
            and "whitespace" not in field.name
            and "lines" not in field.name
            and field.name not in _NO_SYNTAX
        )
        return self[kind]


class _IsNode(dict[type, bool]):
    """Whether each class of field values is a node; faster than `isinstance` with an ABC."""

    def __missing__(self, kind: type) -> bool:
        self[kind] = issubclass(kind, cst.CSTNode)
        return self[kind]


_fields = _Fields()
_is_node = _IsNode()


def children(node: cst.CSTNode) -> list[cst.CSTNode]:
    """The children of `node` that are syntax, in the order of the source."""
    found: list[cst.CSTNode] = []
    for name in _fields[node.__class__]:
        value = getattr(node, name)
        kind = value.__class__
        if kind is tuple or kind is list:
            found.extend(value)
        elif _is_node[kind]:
            found.append(value)
    return found


def walk(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """`node` and everything below it, each node before its children."""
    stack = [node]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(children(node)))


def ancestors(node: cst.CSTNode, parents: Parents) -> Iterator[cst.CSTNode]:
    """The ancestors of `node`, from the nearest to the root."""
    found = parents.get(node)
    while found is not None:
        yield found
        found = parents.get(found)


def root_name(node: Optional[cst.CSTNode]) -> Optional[cst.Name]:
    """The first name of a chain such as `a.b.c`; None if it begins with something else."""
    while isinstance(node, cst.Attribute):
        node = node.value
    return node if isinstance(node, cst.Name) else None


def dotted(node: cst.CSTNode) -> str:
    """`a.b.c` of a chain of attributes on a name."""
    parts = []
    while isinstance(node, cst.Attribute):
        parts.append(node.attr.value)
        node = node.value
    assert isinstance(node, cst.Name)
    return ".".join(reversed([*parts, node.value]))


def last_name(node: cst.CSTNode) -> str:
    """The last name of a chain such as `a.b().c`; empty if it ends with something else."""
    node = node.attr if isinstance(node, cst.Attribute) else node
    return node.value if isinstance(node, cst.Name) else ""


def body_of(statement: cst.CSTNode, parents: Parents) -> Optional[Sequence[cst.CSTNode]]:
    """The list of statements that contains `statement`."""
    parent = parents.get(statement)
    if not isinstance(statement, cst.BaseStatement):
        return None
    return parent.body if isinstance(parent, (cst.IndentedBlock, cst.Module)) else None


def is_stored(node: cst.CSTNode, parents: Parents) -> bool:
    """Whether any statement assigns to `node`, or deletes it."""
    parent = parents.get(node)
    if isinstance(parent, (cst.AssignTarget, cst.AsName, cst.Del)):
        return True
    if isinstance(parent, (cst.AnnAssign, cst.AugAssign, cst.For, cst.CompFor)):
        return parent.target is node
    if isinstance(parent, (cst.Element, cst.StarredElement)):
        group = parents.get(parent)
        return group is not None and is_stored(group, parents)
    return False


def string_of(node: cst.CSTNode) -> Optional[str]:
    """The text of a string literal without escapes; None of everything else.

    Evaluating a literal can warn of its escapes, or fail.
    """
    if not isinstance(node, cst.SimpleString) or "b" in node.prefix.lower():
        return None
    return None if "\\" in node.raw_value else node.raw_value


def rebuilt(
    root: cst.Module, edits: Mapping[cst.CSTNode, Sequence[Edit]], parents: Parents
) -> Optional[cst.Module]:
    """Returns `root` with `edits` applied; None if there are none in it.

    Nodes that do not contain an edit remain the same objects.
    """
    dirty = _with_ancestors(edits, parents)
    if root not in dirty:
        return None
    module = _Rebuilding(edits, dirty).node(root)
    assert isinstance(module, cst.Module)
    return module


def _with_ancestors(nodes: Iterable[cst.CSTNode], parents: Parents) -> set[cst.CSTNode]:
    found: set[cst.CSTNode] = set()
    for node in nodes:
        found.add(node)
        for above in ancestors(node, parents):
            if above in found:
                break
            found.add(above)
    return found


class _Rebuilding:
    """Rebuilds nodes with their edits.

    Args:
      edits: the edits of each node.
      dirty: the nodes that contain edits.
    """

    def __init__(
        self, edits: Mapping[cst.CSTNode, Sequence[Edit]], dirty: Set[cst.CSTNode]
    ) -> None:
        self._edits = edits
        self._dirty = dirty

    def node(self, node: cst.CSTNode) -> Edited:
        """A node after the edits in it, and then its own."""
        changes: dict[str, Edited] = {}
        for name in _fields[type(node)]:
            value = getattr(node, name)
            if isinstance(value, cst.CSTNode):
                if value in self._dirty:
                    changes[name] = self.node(value)
            elif value.__class__ in (tuple, list) and not self._dirty.isdisjoint(value):
                changes[name] = _flat(map(self._item, value))
        result: Edited = node.with_changes(**changes) if changes else node
        for edit in self._edits.get(node, ()):
            result = _edited(result, edit)
        return result

    def _item(self, node: cst.CSTNode) -> Edited:
        return self.node(node) if node in self._dirty else node


def _edited(result: Edited, edit: Edit) -> Edited:
    """What an edit makes of what earlier ones have made."""
    if isinstance(result, cst.CSTNode):
        return edit(result)
    if not result:
        return result
    first, *others = result  # an earlier edit added statements next to it
    return [*_flat([edit(first)]), *others]


def _flat(items: Iterable[Edited]) -> list[cst.CSTNode]:
    flat: list[cst.CSTNode] = []
    for item in items:
        if isinstance(item, cst.CSTNode):
            flat.append(item)
        else:
            flat.extend(item)
    return flat
