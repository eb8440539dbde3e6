"""The nodes of trees of Python's own parser.

Nearly all the time of a run over many files can go into this: `ast.walk` takes six times as long.
"""

from __future__ import annotations

import ast
import functools
import itertools
from collections.abc import Iterable
from typing import Any, TypeVar

__all__ = ["PythonNodes", "function_of"]

_Node = TypeVar("_Node", bound=ast.AST)

_WITHOUT_NODES = frozenset(
    [
        "arg", "asname", "attr", "conversion", "ctx", "id", "is_async", "kind", "level", "module",
        "op", "ops", "rest", "simple", "tag", "type_comment",
    ]
)  # fmt: skip
"""The fields that hold no node in any class, but for operators and the contexts of names."""


class _Fields(dict[type, tuple[str, ...]]):
    """The fields that can hold nodes, for each class of node; none for other values."""

    def __missing__(self, kind: type) -> tuple[str, ...]:
        fields = () if kind is ast.Constant else getattr(kind, "_fields", ())
        self[kind] = tuple(name for name in fields if name not in _WITHOUT_NODES)
        return self[kind]


_fields = _Fields()


def function_of(call: ast.Call) -> str:
    """The last name of what is called; empty for `x[0]()`."""
    function = call.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


class PythonNodes:
    """The nodes of trees by their class, but for operators and the contexts of names.

    Args:
      trees: the trees.
    """

    def __init__(self, trees: Iterable[ast.AST]) -> None:
        """Walks through the trees once, without recursion, as they can be deep."""
        self._found: dict[type, list[Any]] = {}
        found, fields = self._found, _fields  # faster than two look-ups for each node
        left: list[Any] = list(trees)
        while left:
            node = left.pop()
            kind = node.__class__
            if kind in found:
                found[kind].append(node)
            else:
                found[kind] = [node]
            for name in fields[kind]:
                value = getattr(node, name, None)
                if value.__class__ is list:
                    left += value
                elif value is not None:
                    left.append(value)

    def of(self, kind: type[_Node]) -> list[_Node]:
        """The nodes of a class, in no particular order."""
        return self._found.get(kind, [])

    @functools.cached_property
    def attributes(self) -> dict[str, list[ast.Attribute]]:
        """The attributes by their name."""
        found: dict[str, list[ast.Attribute]] = {}
        for attribute in self.of(ast.Attribute):
            found.setdefault(attribute.attr, []).append(attribute)
        return found

    @functools.cached_property
    def calls(self) -> dict[str, list[ast.Call]]:
        """The calls by the last name of what is called."""
        found: dict[str, list[ast.Call]] = {}
        for call in self.of(ast.Call):
            found.setdefault(function_of(call), []).append(call)
        return found

    @functools.cached_property
    def parents(self) -> dict[int, ast.AST]:
        """The node that each node is a part of, by its `id`; `ast.iter_child_nodes` is slower."""
        found: dict[int, ast.AST] = {}
        for kind, nodes in self._found.items():
            for name, node in itertools.product(_fields[kind], nodes):
                value = getattr(node, name, None)
                parts = value if value.__class__ is list else (value,)
                found.update((id(part), node) for part in parts)
        return found

    def calls_of(self, names: Iterable[str]) -> list[ast.Call]:
        """The calls of functions with these names."""
        return [call for name in names for call in self.calls.get(name, ())]

    def all(self) -> list[ast.AST]:
        """All nodes, in no particular order."""
        return [
            node
            for kind, nodes in self._found.items()
            if issubclass(kind, ast.AST)
            for node in nodes
        ]
