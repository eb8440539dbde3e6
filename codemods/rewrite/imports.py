"""Changes, removes and adds import statements."""

from __future__ import annotations

import itertools
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import NamedTuple, Optional

import libcst as cst

from ..facts import Decision
from ..resolve.legacy_symbols import is_of_shim, legacy_of, namespace_of, root_of
from ..resolve.places import Place
from ..resolve.program import Program
from ..resolve.qualified_names import attribute_path
from ..resolve.scopes import Binding, BindingKind, Scope, ScopeKind, dotted
from ..resolve.tree import Edit
from .import_lines import NO_IMPORT, Change, edits_of_lines

__all__ = ["ImportEdits", "Variable"]

Variable = tuple[Scope, str]

_SHIM = "tf_lossscale"
_LOCALS = {_SHIM: ("tfls", _SHIM), "tensorflow": ("tf", "tensorflow")}
"""The names that a package can have in a program, the usual one first."""


class _Added(NamedTuple):
    """An import that is added: its path and local name, and the statements that it follows."""

    path: str
    local: str
    scope: Scope
    behind: Sequence[cst.CSTNode]


class ImportEdits:
    """Collects the changes to the imports of one program, and then converts them to edits."""

    def __init__(
        self, program: Program, decision: Decision, kept: Container[cst.CSTNode] = ()
    ) -> None:
        self.program = program
        self._decision = decision
        self._kept = kept
        self._changes: dict[cst.ImportAlias, Change] = {}
        self._added: list[_Added] = []
        self._statements: dict[cst.CSTNode, list[str]] = {}
        self._globals: dict[cst.CSTNode, dict[str, None]] = {}
        """The statements `global tf` in functions that import `tf`, with the names to add there."""
        self._needed: set[Variable] = set()
        self._given: dict[str, str] = {}  # the path of each new name
        self._loads = {name.value for name in program.scopes.loads}

    def retarget(
        self, variable: Variable, path: str, uses: Iterable[cst.Name], keeps_name: bool
    ) -> str:
        """Changes the imports of `variable` to import `path`; returns the local name.

        That is the last name of `path`, if `keeps_name` is false and nothing else prevents it.
        """
        owner, name = variable
        wanted = path.rpartition(".")[2]
        scopes = [owner, *map(self.program.scopes.loads.__getitem__, uses)]
        is_renamed = (
            wanted != name
            and not keeps_name
            and all(map(self._is_plain, owner.bindings[name]))
            and not self.is_read_otherwise(variable)
            and not any(binding.node in owner.imported_inside for binding in owner.bindings[name])
            and self._is_free(wanted, path, owner, scopes)
        )
        local = wanted if is_renamed else name
        if is_renamed:
            self._given[local] = path
        for binding in owner.bindings[name]:
            if isinstance(binding.node, cst.ImportAlias):
                self._changes[binding.node] = Change(path, local)
        self._needed.add(variable)
        return local

    def retarget_one(self, alias: cst.ImportAlias, path: str, local: str) -> None:
        """Changes one of several imports of a name, which keeps its name."""
        self._changes[alias] = Change(path, local)

    def drop(self, variable: Variable) -> bool:
        """Removes the imports of a name that the file's own code no longer reads.

        Returns whether nothing else is to be done about them: they are removed, or stay because the
        new code reads the name. False if they may need new paths, since they stay for other
        reasons: something else may read the name, not only imports bind it, or one of several
        imports is all that its block has.
        """
        owner, name = variable
        if variable in self._needed:
            return True
        bindings = owner.bindings[name]
        is_kept = any(binding.node in self._kept for binding in bindings)
        if is_kept or self.is_read_otherwise(variable):
            return False
        if any(binding.kind is not BindingKind.IMPORT for binding in bindings):
            return False
        has_others = len(bindings) > 1
        if has_others and any(map(self._is_alone_in_block, bindings)):
            return False
        for binding in bindings:
            assert isinstance(binding.node, cst.ImportAlias)
            self._changes.setdefault(binding.node, NO_IMPORT)
        return True

    def drop_dotted(self, variable: Variable, stay: set[str], go: set[str]) -> None:
        """Removes `import tensorflow.contrib...` if only uses that go needed it."""
        owner, name = variable
        aliases = [binding.node for binding in owner.bindings[name]]
        for alias in aliases:
            path = self._legacy_module(alias)
            if not path or not _is_below(go, path) or _is_below(stay, path):
                continue
            assert isinstance(alias, cst.ImportAlias)
            others = [
                other for other in aliases if other not in self._changes and other is not alias
            ]
            self._changes[alias] = NO_IMPORT if others else Change(name, name)

    def _legacy_module(self, alias: cst.CSTNode) -> str:
        """The module of `import tensorflow.contrib...` without a name of its own; empty if none."""
        if not isinstance(alias, cst.ImportAlias) or not isinstance(alias.name, cst.Attribute):
            return ""
        path = dotted(alias.name)
        is_plain = alias.asname is None and isinstance(self.program.parents[alias], cst.Import)
        return path if is_plain and _is_legacy(path) else ""

    def name_for(self, target: str, use: Place, variable: Variable) -> str:
        """An expression for `target` at a place; may add an import next to `variable`."""
        found = self._known(target, use)
        if found is not None and "." not in found:
            return found
        behind, owner = self._anchors(variable)
        if isinstance(use.node, cst.Name):
            module, _, name = target.rpartition(".")
            if self._is_free(name, target, owner, [owner, use.scope]):
                self._add(f"from {module} import {name}", _Added(target, name, owner, behind))
                return name
        if found is not None:
            return found
        package = _SHIM if is_of_shim(target) else "tensorflow"
        first, second = _LOCALS[package]
        numbered = (f"{first}{number}" for number in itertools.count(2))
        local = next(
            candidate
            for candidate in itertools.chain([first, second], numbered)
            if self._is_free(candidate, package, owner, [owner, use.scope])
        )
        alias = "" if local == package else f" as {local}"
        self._add(f"import {package}{alias}", _Added(package, local, owner, behind))
        return f"{local}.{target[len(package) + 1 :]}"

    def edits(self) -> dict[cst.CSTNode, list[Edit]]:
        """The edits of all lines with imports that change, or that new ones follow."""
        seen: set[tuple[cst.CSTNode, Change]] = set()
        for alias in sorted(self._changes, key=self.program.order.__getitem__):
            change = self._changes[alias]
            if (self._block(alias), change) in seen:
                self._changes[alias] = NO_IMPORT  # equal to an earlier one
            if change.path is not None:
                seen.add((self._block(alias), change))
        found = edits_of_lines(self.program.parents, self._changes, self._statements)
        for statement, names in self._globals.items():
            found.setdefault(statement, []).append(_with_names(list(names)))
        return found

    def _add(self, statement: str, added: _Added) -> None:
        self._added.append(added)
        for node in added.behind:
            self._statements.setdefault(node, []).append(statement)
            for alias, redirection in added.scope.imported_inside.items():
                if self.program.parents[alias] is node:
                    self._globals.setdefault(redirection, {})[added.local] = None

    # Where names are bound.

    def _is_plain(self, binding: Binding) -> bool:
        """Whether a name is bound by `from module import name`."""
        alias = binding.node
        is_from = isinstance(self.program.parents.get(alias), cst.ImportFrom)
        return is_from and isinstance(alias, cst.ImportAlias) and alias.asname is None

    def is_read_otherwise(self, variable: Variable) -> bool:
        """Whether other files, objects of a class, or texts may read a variable."""
        is_in_text = self.program.evaluated_texts.may_read(variable[1])
        return is_in_text or self.is_read_by_attribute(variable) or self.is_read_elsewhere(variable)

    def is_read_by_attribute(self, variable: Variable) -> bool:
        """Whether an object may read a variable of its class, as `self.tf`."""
        scope, name = variable
        attributes = self.program.attributes(name) if scope.kind is ScopeKind.CLASS else ()
        return any(map(self.program.may_be_of_object, attributes))

    def is_read_elsewhere(self, variable: Variable) -> bool:
        """Whether other files of the run may read a variable."""
        scope, name = variable
        return scope is self.program.scopes.module_scope and self._decision.may_read(name)

    def _is_alone_in_block(self, binding: Binding) -> bool:
        block = self._block(binding.node)
        return isinstance(block, cst.IndentedBlock) and len(block.body) == 1

    def _block(self, alias: cst.CSTNode) -> cst.CSTNode:
        """The block with the line of an import."""
        line = self.program.parents[self.program.parents[alias]]
        return self.program.parents[line]

    def _is_free(self, name: str, path: str, owner: Scope, uses: Sequence[Scope]) -> bool:
        """Whether `name` can be bound to `path` in `owner` without a conflict at any use."""
        if self._given.get(name, path) != path or name in self._loads:
            return False
        if any(added.local == name and added.scope is owner for added in self._added):
            return False
        for use in uses:
            for scope in use.chain():
                if name in scope.bindings:
                    return False
                if scope is owner:
                    break
        return True

    def _known(self, target: str, use: Place) -> Optional[str]:
        """The shortest name of `target` at a place, through a name bound to it or to a package.

        The imports of that name are needed from then on. None if no name leads to `target`.
        """
        found: list[tuple[int, str, Variable]] = []
        for variable, paths in self._names_at(use):
            ways = {attribute_path(path, target) for path in paths}
            way = ways.pop() if len(ways) == 1 else None
            if way is None:
                continue
            is_target = not way
            if is_target or all(map(_is_package, paths)):
                name = variable[1] if is_target else f"{variable[1]}.{way}"
                found.append((name.count("."), name, variable))
        if not found:
            return None
        _, name, variable = min(found, key=lambda one: one[:2])
        self._needed.add(variable)
        return name

    def _names_at(self, use: Place) -> Iterator[tuple[Variable, list[str]]]:
        """The names that a place can read and only imports bind that stay or are new."""
        for added in self._added:
            if added.scope in use.scope.chain() and self._is_above(added.behind, added.scope, use):
                yield (added.scope, added.local), [added.path]
        for scope in use.scope.chain():
            for name, bindings in scope.bindings.items():
                nodes = [binding.node for binding in bindings]
                if (
                    all(binding.kind is BindingKind.IMPORT for binding in bindings)
                    and not any(node in self._changes for node in nodes)
                    and use.scope.owner(name) is scope
                    and self._is_above(nodes, scope, use)
                ):
                    yield (scope, name), [binding.path for binding in bindings]

    def _is_above(self, nodes: Sequence[cst.CSTNode], owner: Scope, use: Place) -> bool:
        """Whether an import is above a place that uses its name, or the place is run later."""
        for scope in use.scope.chain():
            if scope is owner:
                break
            if scope.kind is ScopeKind.FUNCTION:
                return True
        at = self.program.order.get(use.node, len(self.program.order))
        return any(self.program.order[node] < at for node in nodes)

    def _anchors(self, variable: Variable) -> tuple[list[cst.CSTNode], Scope]:
        """The import statements behind which a name is bound wherever a variable is."""
        owner, name = variable
        imports = [
            binding.node for binding in owner.bindings[name] if binding.kind is BindingKind.IMPORT
        ]
        if imports:
            around_first = self.program.parents.get(self._block(imports[0]))
            if around_first is owner.node:  # not in a branch
                imports = imports[:1]
            return list(dict.fromkeys(self.program.parents[node] for node in imports)), owner
        around = list(owner.chain())  # a variable that is made of an imported name
        known = (
            imported
            for imported in self.program.imports()
            if root_of(imported.path) or is_of_shim(imported.path)
        )
        binding = min(known, key=lambda one: one.scope not in around)
        return self._anchors((binding.scope, binding.name))


def _with_names(names: Sequence[str]) -> Edit:
    """The edit that adds names to `global tf`."""

    def edit(statement: cst.CSTNode) -> cst.CSTNode:
        assert isinstance(statement, (cst.Global, cst.Nonlocal))
        comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
        items = [*statement.names, *(cst.NameItem(cst.Name(name)) for name in names)]
        *first, last = items
        spaced = [item.with_changes(comma=comma) for item in first]
        return statement.with_changes(names=[*spaced, last])

    return edit


def _is_package(path: str) -> bool:
    root = root_of(path)
    return path == _SHIM if root is None else not root.rest


def _is_below(uses: Iterable[str], path: str) -> bool:
    return any(f"{use}.".startswith(f"{path}.") for use in uses)


def _is_legacy(path: str) -> bool:
    known = legacy_of(path) is not None or namespace_of(path) is not None
    return known or path.startswith("tensorflow.contrib.")
