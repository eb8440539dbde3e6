"""Follows an expression to every expression that its value can come from.

Unlike `reaching_definition`, which finds one value or none, this follows branches, functions that
the program defines, and the attributes of a class. If it cannot follow an expression, the result
contains it: a parameter, an import, or the call of an external function. So a rule may act if it
knows *every* result.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Optional

import libcst as cst

from .program import Program
from .reaching_values import loads_of, reaching_definition, reaching_values_of_attribute
from .scopes import Binding
from .tree import children

__all__ = ["elements_of", "paths_of", "possible_values"]

_DEPTH = 12
_LIMIT = 64


class _Frame(NamedTuple):
    """A function that the search has entered, with the call through which it was entered."""

    function: cst.FunctionDef
    call: cst.Call
    outer: Optional[_Frame]


def possible_values(program: Program, node: cst.CSTNode) -> list[cst.CSTNode]:
    """Every expression that the value of `node` can come from, except None.

    For an unknown value, the result is the node that binds it: a parameter, an import, or the
    target of a loop.
    """
    search = _Search(program)
    search.follow(node, None, _DEPTH)
    return search.found


def paths_of(program: Program, node: cst.CSTNode) -> frozenset[str]:
    """Every dotted path that `node`, a called function, can mean; empty if one is unknown."""
    if isinstance(node, cst.IfExp):
        arms = [paths_of(program, node.body), paths_of(program, node.orelse)]
        return frozenset().union(*arms) if all(arms) else frozenset()
    if isinstance(node, cst.Subscript):
        elements = elements_of(program, node)
        found = [paths_of(program, element) for element in elements or ()]
        return frozenset().union(*found) if found and all(found) else frozenset()
    root = node
    while isinstance(root, cst.Attribute):
        root = root.value
    scope = program.scopes.loads.get(root) if isinstance(root, cst.Name) else None
    if scope is None:
        return frozenset()
    meanings = program.origins.of_expression(node, scope)
    return frozenset() if any(one.startswith("<") for one in meanings) else meanings


def elements_of(program: Program, node: cst.Subscript) -> Optional[list[cst.BaseExpression]]:
    """The values of the dict display that `node` is looked up in; None if they are unknown."""
    table: cst.BaseExpression = node.value
    if isinstance(table, cst.Name):
        scope = program.scopes.loads.get(table)
        bindings = scope.bindings_of(table.value) if scope is not None else []
        if len(bindings) != 1 or bindings[0].value is None:
            return None
        if not all(_is_lookup(program, name) for name in _loads(program, bindings[0])):
            return None  # elements may be added
        table = bindings[0].value
    if not isinstance(table, cst.Dict):
        return None
    if any(not isinstance(element, cst.DictElement) for element in table.elements):
        return None
    return [element.value for element in table.elements]


def _loads(program: Program, binding: Binding) -> list[cst.Name]:
    return loads_of(program, binding.scope, binding.name)


def _is_lookup(program: Program, name: cst.Name) -> bool:
    """Whether `name` is used as in `table[key]` or `key in table`, which do not change it."""
    parent = program.parents.get(name)
    if isinstance(parent, cst.ComparisonTarget):
        return isinstance(parent.operator, (cst.In, cst.NotIn))
    if not isinstance(parent, cst.Subscript) or parent.value is not name:
        return False
    above = program.parents.get(parent)
    is_stored = isinstance(above, (cst.AssignTarget, cst.AugAssign, cst.AnnAssign, cst.Del))
    return not (is_stored and getattr(above, "target", None) is parent)


class _Search:
    """One search, which visits each expression once for each call that leads to it."""

    def __init__(self, program: Program) -> None:
        self.found: list[cst.CSTNode] = []
        self._program = program
        self._seen: set[tuple[cst.CSTNode, Optional[cst.Call]]] = set()

    def follow(self, node: cst.CSTNode, frame: Optional[_Frame], depth: int) -> None:
        """Adds the possible values of `node`, which is in the function of `frame`."""
        key = (node, frame.call if frame is not None else None)
        if key in self._seen or (isinstance(node, cst.Name) and node.value == "None"):
            return
        self._seen.add(key)
        if depth == 0 or len(self._seen) > _LIMIT:
            self.found.append(node)
            return
        parts = self._parts(node, frame)
        if parts is None:
            self.found.append(node)
            return
        for part, inner in parts:
            self.follow(part, inner, depth - 1)

    def _parts(
        self, node: cst.CSTNode, frame: Optional[_Frame]
    ) -> Optional[list[tuple[cst.CSTNode, Optional[_Frame]]]]:
        """The expressions that the value of `node` comes from; None if the search ends here."""
        if isinstance(node, cst.Name):
            return [(one, frame) for one in self._bound(node)] or None
        if isinstance(node, cst.IfExp):
            return [(node.body, frame), (node.orelse, frame)]
        if isinstance(node, cst.BooleanOperation):
            return [(node.left, frame), (node.right, frame)]
        if isinstance(node, cst.NamedExpr):
            return [(node.value, frame)]
        if isinstance(node, cst.Attribute):
            values = reaching_values_of_attribute(self._program, node)
            return [(value, None) for value in values] if values else None
        if isinstance(node, cst.Subscript):
            elements = elements_of(self._program, node)
            return [(element, None) for element in elements] if elements else None
        if isinstance(node, cst.Param):
            return self._argument(node, frame)
        if isinstance(node, cst.Call):
            return self._returned(node, frame)
        return None

    def _bound(self, name: cst.Name) -> list[cst.CSTNode]:
        binding = reaching_definition(self._program, name)
        if binding is not None and binding.value is not None:
            return [binding.value]
        scope = self._program.scopes.loads.get(name)
        bindings = scope.bindings_of(name.value) if scope is not None else []
        return [one.node if one.value is None else one.value for one in bindings]

    def _argument(
        self, parameter: cst.Param, frame: Optional[_Frame]
    ) -> Optional[list[tuple[cst.CSTNode, Optional[_Frame]]]]:
        """The argument for `parameter` in the call of `frame`."""
        parameters = self._program.parents.get(parameter)
        if frame is None or parameters is not frame.function.params or parameter.star:
            return None
        positional = [*frame.function.params.posonly_params, *frame.function.params.params]
        if any(argument.star for argument in frame.call.args):
            return None
        for index, argument in enumerate(frame.call.args):
            if argument.keyword is not None:
                matches = argument.keyword.value == parameter.name.value
            else:
                matches = index < len(positional) and positional[index] is parameter
            if matches:
                return [(argument.value, frame.outer)]
        return [(parameter.default, frame.outer)] if parameter.default is not None else None

    def _returned(
        self, call: cst.Call, frame: Optional[_Frame]
    ) -> Optional[list[tuple[cst.CSTNode, Optional[_Frame]]]]:
        """The return values of a plain function that the program defines."""
        if not isinstance(call.func, cst.Name):
            return None
        scope = self._program.scopes.loads.get(call.func)
        bindings = scope.bindings_of(call.func.value) if scope is not None else []
        function = bindings[0].node if len(bindings) == 1 else None
        if not isinstance(function, cst.FunctionDef):
            return None
        if function.decorators or function.asynchronous is not None:
            return None
        returns = []
        for node in _own_nodes(function.body):
            if isinstance(node, cst.Yield):
                return None
            if isinstance(node, cst.Return) and node.value is not None:
                returns.append(node.value)
        inner = _Frame(function, call, frame)
        return [(value, inner) for value in returns] or None


def _own_nodes(body: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The nodes of a function, without those of nested functions and classes."""
    stack = [body]
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, (cst.FunctionDef, cst.ClassDef, cst.Lambda)):
            stack.extend(reversed(children(node)))
