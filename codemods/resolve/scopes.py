"""Builds Python's scopes, with the bindings of each name, in one walk for all rules.

LibCST's own scope analysis takes eight times as long as the parse. This one only records what the
rules need: the bindings of each name in a scope, and the scope of each load of a name.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import Any, Callable, NamedTuple, Optional, Union

import libcst as cst

from .class_bodies import ClassBody
from .module_paths import below
from .tree import children, dotted

__all__ = ["Binding", "BindingKind", "Scope", "ScopeBuilder", "ScopeKind"]


class BindingKind(enum.Enum):
    """What binds a name."""

    IMPORT = "import"
    VALUE = "value"
    """An assignment to that name alone."""
    PARAMETER = "parameter"
    FUNCTION = "function"
    CLASS = "class"
    OTHER = "other"


class ScopeKind(enum.Enum):
    """What has names of its own."""

    MODULE = "module"
    CLASS = "class"
    FUNCTION = "function"
    COMPREHENSION = "comprehension"


class Binding(NamedTuple):
    """One place that binds a name.

    Attributes:
      name: the name.
      kind: what binds it.
      node: the node that binds it: the import alias, the target, or the definition.
      scope: the scope of the name.
      path: for an import, the dotted path that the name refers to.
      value: for an assignment to that name alone, the value.
    """

    name: str
    kind: BindingKind
    node: cst.CSTNode
    scope: Scope
    path: str = ""
    value: Optional[cst.BaseExpression] = None


Redirection = Union[cst.Global, cst.Nonlocal]


class Scope:
    """A module, class, function or comprehension, with its bindings."""

    def __init__(
        self, node: Optional[cst.CSTNode], kind: ScopeKind, parent: Optional[Scope]
    ) -> None:
        self.node = node
        self.kind = kind
        self.parent = parent
        self.bindings: dict[str, list[Binding]] = {}
        self.redirected: dict[str, Scope] = {}
        self.redirecting: dict[str, Redirection] = {}
        """The statements of this scope that redirect a name: `global tf`."""
        self.imported_inside: dict[cst.CSTNode, Redirection] = {}
        """The imports of names of this scope in functions below, with the statement there."""
        self.stars: list[tuple[cst.ImportFrom, str]] = []
        self.body: Optional[Scope] = None
        """The class, if this is the scope of one statement in its body."""
        self.unbound: frozenset[str] = frozenset()
        """The names that the class binds, but not before this statement reads them."""
        self.unsure: frozenset[str] = frozenset()
        """The names that the class may or may not have bound when this statement reads them."""

    @property
    def original(self) -> Scope:
        """The scope itself; for a statement in the body of a class, that of the class."""
        return self.body or self

    def owner(self, name: str) -> Optional[Scope]:
        """The scope that binds `name` for a load here; None for builtins and unknown names."""
        scope: Optional[Scope] = self
        while scope is not None:
            if name in scope.redirected:
                scope = scope.redirected[name]
                return scope if name in scope.bindings else None
            if name in scope.unbound:
                return self.module if name in self.module.bindings else None
            if name in scope.bindings and (scope is self or scope.kind is not ScopeKind.CLASS):
                return scope.original
            scope = scope.parent
        return None

    def owners(self, name: str) -> list[Scope]:
        """All scopes whose bindings a load of `name` here may read: of one class, also the module.

        The body of a class reads a name of the module until it has bound the name itself.
        """
        owner = self.owner(name)
        found = [owner] if owner is not None else []
        return [*found, self.module] if self.is_unsure(name) else found

    def is_unsure(self, name: str) -> bool:
        """Whether a load of `name` here may read a variable of the class, or of the module."""
        return name in self.unsure and (name in self.module.bindings or bool(self.module.stars))

    def bindings_of(self, name: str) -> list[Binding]:
        """All bindings whose value a load of `name` here may read."""
        owners = self.owners(name)
        return [binding for owner in owners for binding in owner.bindings.get(name, ())]

    @property
    def module(self) -> Scope:
        """The scope of the names at the top level."""
        *_, module = self.chain()
        return module

    def chain(self) -> Iterator[Scope]:
        """This scope and the enclosing ones."""
        scope: Optional[Scope] = self
        while scope is not None:
            yield scope.original
            scope = scope.parent

    def at_statement(self, unbound: frozenset[str], unsure: frozenset[str]) -> Scope:
        """The scope of one statement in the body of this class."""
        scope = Scope(self.node, self.kind, self.parent)
        scope.bindings, scope.stars = self.bindings, self.stars
        scope.redirected, scope.redirecting = self.redirected, self.redirecting
        scope.imported_inside = self.imported_inside
        scope.body, scope.unbound, scope.unsure = self, unbound, unsure
        return scope


class ScopeBuilder:
    """Fills a module scope from one tree after another (the cells of a notebook share it).

    Attributes:
      module_scope: the scope of the names at the top level.
      loads: the scope of each `Name` node that is read (or deleted), in the order of the source.
      parents: each node's parent.
      strings: every string literal.
      f_strings: every f-string.
      attributes: every `something.name`, by name.
      all: every scope, each before the scopes inside it.
    """

    def __init__(self) -> None:
        self.module_scope = Scope(None, ScopeKind.MODULE, None)
        self.loads: dict[cst.Name, Scope] = {}
        self.parents: dict[cst.CSTNode, cst.CSTNode] = {}
        self.strings: list[cst.SimpleString] = []
        self.f_strings: list[cst.FormattedString] = []
        self.attributes: dict[str, list[cst.Attribute]] = {}
        self.all: list[Scope] = [self.module_scope]
        self._stack: list[tuple[cst.CSTNode, Scope]] = []
        self._loads_of_classes: dict[Scope, list[cst.Name]] = {}

    def add(self, module: cst.Module) -> None:
        """Walks `module`."""
        self._stack = [(module, self.module_scope)]
        parents = self.parents
        while self._stack:
            node, scope = self._stack.pop()
            below = children(node)
            for child in below:
                parents[child] = node
            handler = _HANDLERS.get(type(node))
            if handler is None:
                self._push(below, scope)
            else:
                handler(self, node, scope)
        for owner, loads in self._loads_of_classes.items():
            self._order_class(owner, loads)
        self._loads_of_classes.clear()

    def _order_class(self, scope: Scope, loads: list[cst.Name]) -> None:
        """Gives loads that may run before the class binds their names a scope of their own."""
        assert isinstance(scope.node, cst.ClassDef)
        if scope.bindings.keys().isdisjoint(load.value for load in loads):
            return  # nearly all classes
        bound = {
            name: [binding.node for binding in bindings]
            for name, bindings in scope.bindings.items()
        }
        body = ClassBody(scope.node, bound, loads, self.parents)
        scopes: dict[int, Scope] = {}

        def scope_at(node: cst.CSTNode) -> Scope:
            at = body.statement_of(node)
            names = body.names_at(at)
            if names is None:
                return scope
            return scopes.setdefault(at, scope.at_statement(*names))

        for load in loads:
            self.loads[load] = scope_at(load)
        for bindings in scope.bindings.values():
            bindings[:] = [
                binding
                if binding.value is None
                else binding._replace(scope=scope_at(binding.value))
                for binding in bindings
            ]

    def _push(self, nodes: list[cst.CSTNode], scope: Scope) -> None:
        self._stack.extend([(node, scope) for node in reversed(nodes)])

    def _bind(
        self,
        scope: Scope,
        name: str,
        kind: BindingKind,
        node: cst.CSTNode,
        path: str = "",
        value: Optional[cst.BaseExpression] = None,
    ) -> None:
        owner = scope.redirected.get(name, scope)
        if owner is not scope and kind is BindingKind.IMPORT:
            owner.imported_inside[node] = scope.redirecting[name]
        owner.bindings.setdefault(name, []).append(Binding(name, kind, node, owner, path, value))

    def _open(self, node: cst.CSTNode, kind: ScopeKind, parent: Scope) -> Scope:
        scope = Scope(node, kind, parent)
        self.all.append(scope)
        return scope

    # One method per kind of node that binds, reads or opens a scope.

    def _name(self, node: cst.Name, scope: Scope) -> None:
        self.loads[node] = scope
        if scope.kind is ScopeKind.CLASS:
            self._loads_of_classes.setdefault(scope, []).append(node)

    def _attribute(self, node: cst.Attribute, scope: Scope) -> None:
        self.attributes.setdefault(node.attr.value, []).append(node)
        self._stack.append((node.value, scope))

    def _argument(self, node: cst.Arg, scope: Scope) -> None:
        self._stack.append((node.value, scope))

    def _string(self, node: cst.SimpleString, scope: Scope) -> None:
        self.strings.append(node)

    def _f_string(self, node: cst.FormattedString, scope: Scope) -> None:
        self.f_strings.append(node)
        self._push(children(node), scope)

    def _import(self, node: cst.Import, scope: Scope) -> None:
        for alias in node.names:
            path = dotted(alias.name)
            self.parents.setdefault(alias, node)
            if alias.asname is not None and isinstance(alias.asname.name, cst.Name):
                self._bind(scope, alias.asname.name.value, BindingKind.IMPORT, alias, path)
            else:
                first = path.split(".")[0]
                self._bind(scope, first, BindingKind.IMPORT, alias, first)

    def _import_from(self, node: cst.ImportFrom, scope: Scope) -> None:
        """Binds the names of a `from ... import`; `import *` is noted for its scope."""
        module = "." * len(node.relative) + (dotted(node.module) if node.module else "")
        if isinstance(node.names, cst.ImportStar):
            scope.stars.append((node, module))
            return
        for alias in node.names:
            name = dotted(alias.name)
            local = name
            if alias.asname is not None and isinstance(alias.asname.name, cst.Name):
                local = alias.asname.name.value
            self._bind(scope, local, BindingKind.IMPORT, alias, below(module, name))

    def _assign(self, node: cst.Assign, scope: Scope) -> None:
        for assign_target in node.targets:
            self.parents[assign_target.target] = assign_target
            self._target(assign_target.target, scope, node.value)
        self._stack.append((node.value, scope))

    def _augmented(self, node: cst.AugAssign, scope: Scope) -> None:
        if isinstance(node.target, cst.Name):
            self._bind(scope, node.target.value, BindingKind.OTHER, node)
        self._push([node.target, node.value], scope)

    def _stored(self, node: cst.CSTNode, scope: Scope) -> None:
        """A node that binds the names of one child, such as the target of a loop."""
        found = [getattr(node, field, None) for field in ("target", "name", "rest")]
        target = next((node for node in found if isinstance(node, cst.CSTNode)), None)
        value = node.value if isinstance(node, (cst.AnnAssign, cst.NamedExpr)) else None
        owner = scope
        while (
            isinstance(node, cst.NamedExpr)
            and owner.kind is ScopeKind.COMPREHENSION
            and owner.parent
        ):
            owner = owner.parent
        if target is not None:
            self._target(target, owner, value)
        self._push([child for child in children(node) if child is not target], scope)

    def _elsewhere(self, node: cst.CSTNode, scope: Scope) -> None:
        assert isinstance(node, (cst.Global, cst.Nonlocal))
        for item in node.names:
            name = item.name.value
            scope.redirecting[name] = node
            if isinstance(node, cst.Global):
                scope.redirected[name] = self.module_scope
            else:
                outer = scope.parent.owner(name) if scope.parent else None
                scope.redirected[name] = outer or self.module_scope

    def _function(self, node: cst.FunctionDef, scope: Scope) -> None:
        self._bind(scope, node.name.value, BindingKind.FUNCTION, node)
        self._lambda(node, scope)
        outside = (getattr(node, "type_parameters", None), node.returns)
        self._push([*node.decorators, *filter(None, outside)], scope)

    def _lambda(self, node: Union[cst.FunctionDef, cst.Lambda], scope: Scope) -> None:
        inner = self._open(node, ScopeKind.FUNCTION, scope)
        self._stack.append((node.body, inner))
        for parameter in children(node.params):
            self.parents[parameter] = node.params
            if isinstance(parameter, cst.Param):
                self._bind(inner, parameter.name.value, BindingKind.PARAMETER, parameter)
                outside = [part for part in (parameter.annotation, parameter.default) if part]
                self.parents.update(dict.fromkeys(outside, parameter))
                self._push(list(outside), scope)

    def _class(self, node: cst.ClassDef, scope: Scope) -> None:
        self._bind(scope, node.name.value, BindingKind.CLASS, node)
        self._stack.append((node.body, self._open(node, ScopeKind.CLASS, scope)))
        parameters = getattr(node, "type_parameters", None)
        outside = [parameters] if parameters is not None else []
        self._push([*node.decorators, *outside, *node.bases, *node.keywords], scope)

    def _comprehension(self, node: cst.CSTNode, scope: Scope) -> None:
        self._push(children(node), self._open(node, ScopeKind.COMPREHENSION, scope))

    def _comp_for(self, node: cst.CompFor, scope: Scope) -> None:
        """Reads what the first loop of a comprehension takes items from in the scope around it."""
        is_first = getattr(scope.node, "for_in", None) is node
        around = scope.parent if is_first and scope.parent is not None else scope
        self._target(node.target, scope, None)
        rest = [child for child in children(node) if child not in (node.target, node.iter)]
        self._push(rest, scope)
        self._stack.append((node.iter, around))

    def _target(
        self, target: cst.CSTNode, scope: Scope, value: Optional[cst.BaseExpression]
    ) -> None:
        """Binds the names in the target of an assignment, a loop or a `with`, also in a tuple."""
        if isinstance(target, cst.Name):
            kind = BindingKind.VALUE if value is not None else BindingKind.OTHER
            self._bind(scope, target.value, kind, target, "", value)
        elif isinstance(target, (cst.Tuple, cst.List)):
            for element, part in zip(target.elements, _parts_of(value, target)):
                self.parents.setdefault(element, target)
                self.parents.setdefault(element.value, element)
                self._target(element.value, scope, part)
        else:
            self._stack.append((target, scope))


def _parts_of(
    value: Optional[cst.BaseExpression], target: Union[cst.Tuple, cst.List]
) -> list[Optional[cst.BaseExpression]]:
    """What each element of a target gets; None where that is not written out."""
    unknown: list[Optional[cst.BaseExpression]] = [None] * len(target.elements)
    if not isinstance(value, (cst.Tuple, cst.List)) or len(value.elements) != len(unknown):
        return unknown
    elements = [*target.elements, *value.elements]
    if any(isinstance(element, cst.StarredElement) for element in elements):
        return unknown
    return [element.value for element in value.elements]


_STORING = (
    cst.AnnAssign, cst.AsName, cst.For, cst.MatchAs, cst.MatchMapping, cst.MatchStar,
    cst.NamedExpr,
)  # fmt: skip
_COMPREHENSIONS = (cst.DictComp, cst.GeneratorExp, cst.ListComp, cst.SetComp)
_HANDLERS: dict[type, Callable[[ScopeBuilder, Any, Scope], None]] = {
    cst.Name: ScopeBuilder._name,
    cst.Attribute: ScopeBuilder._attribute,
    cst.Arg: ScopeBuilder._argument,
    cst.SimpleString: ScopeBuilder._string,
    cst.FormattedString: ScopeBuilder._f_string,
    cst.Import: ScopeBuilder._import,
    cst.ImportFrom: ScopeBuilder._import_from,
    cst.Assign: ScopeBuilder._assign,
    cst.AugAssign: ScopeBuilder._augmented,
    cst.Global: ScopeBuilder._elsewhere,
    cst.Nonlocal: ScopeBuilder._elsewhere,
    cst.FunctionDef: ScopeBuilder._function,
    cst.Lambda: ScopeBuilder._lambda,
    cst.ClassDef: ScopeBuilder._class,
    cst.CompFor: ScopeBuilder._comp_for,
    **dict.fromkeys(_STORING, ScopeBuilder._stored),
    **dict.fromkeys(_COMPREHENSIONS, ScopeBuilder._comprehension),
}
