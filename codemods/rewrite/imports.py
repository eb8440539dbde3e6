"""Changes, removes and adds import statements."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import NamedTuple, Optional

import libcst as cst

from ..resolve.legacy_symbols import is_of_shim, legacy_of, namespace_of, root_of
from ..resolve.mentions import named_in_text
from ..resolve.places import Place
from ..resolve.program import Program
from ..resolve.qualified_names import attribute_path
from ..resolve.scopes import Binding, Scope, dotted
from ..resolve.tree import Edit
from .import_lines import Change, Line, Lines

__all__ = ["ImportEdits"]

Variable = tuple[Scope, str]

_SHIM = "tf_lossscale"
_SHIM_NAMES = ("tfls", "tf_lossscale")
_TENSORFLOW_NAMES = ("tf", "tensorflow")


class _Anchor(NamedTuple):
    """Where an import can be added.

    Attributes:
      node: the import statement that it follows, or the compound statement that it precedes.
      scope: the scope in which it binds its name.
    """

    node: cst.CSTNode
    scope: Scope


class _Added(NamedTuple):
    """An import that is added: its text, its path, its local name, and the place."""

    statement: str
    path: str
    local: str
    anchor: _Anchor


class ImportEdits:
    """Collects the changes to the imports of one program, and then converts them to edits."""

    def __init__(self, program: Program, kept: Container[cst.CSTNode] = ()) -> None:
        self.program = program
        self._kept = kept
        self._changes: dict[cst.ImportAlias, Change] = {}
        self._added: list[_Added] = []
        self._needed: set[Variable] = set()
        self._given: dict[str, str] = {}  # the path of each new name
        self._order: Optional[dict[cst.CSTNode, int]] = None
        self._loads = {name.value for name in program.scopes.loads}

    def retarget(self, variable: Variable, path: str, uses: list[cst.Name]) -> str:
        """Changes the imports of `variable` to import `path`; returns the local name."""
        owner, name = variable
        wanted = path.rpartition(".")[2]
        local = name
        aliases = [one.node for one in owner.bindings[name] if one.kind == "import"]
        plain = len(aliases) == len(owner.bindings[name]) and all(
            isinstance(alias, cst.ImportAlias)
            and alias.asname is None
            and isinstance(self.program.parents[alias], cst.ImportFrom)
            for alias in aliases
        )
        if (
            plain
            and wanted != name
            and not self.program.is_read_elsewhere(owner, name)
            and not named_in_text(self.program, name)
            and self._free(wanted, path, owner, [self._scope(use) for use in uses])
        ):
            local = wanted
            self._given[local] = path
        for alias in aliases:
            assert isinstance(alias, cst.ImportAlias)
            self._changes[alias] = Change(path, local)
        self._needed.add(variable)
        return local

    def retarget_one(self, alias: cst.ImportAlias, path: str, local: str) -> None:
        """Changes one of several imports of a name, which keeps its name."""
        self._changes[alias] = Change(path, local)

    def drop(self, variable: Variable) -> bool:
        """Removes the imports of an unused name; False if something else may read it."""
        owner, name = variable
        if variable in self._needed:
            return True
        if named_in_text(self.program, name) or self.program.is_read_elsewhere(owner, name):
            return False
        bindings = owner.bindings[name]
        for binding in bindings:
            if binding.node in self._kept:
                return False
            if binding.kind != "import" or (len(bindings) > 1 and self._only_in_block(binding)):
                return False
        for binding in bindings:
            assert isinstance(binding.node, cst.ImportAlias)
            self._changes.setdefault(binding.node, Change())
        return True

    def drop_dotted(self, variable: Variable, left: set[str]) -> None:
        """Removes `import tensorflow.contrib...` if no remaining use goes through it."""
        owner, name = variable
        aliases = [
            binding.node
            for binding in owner.bindings[name]
            if isinstance(binding.node, cst.ImportAlias) and binding.node.asname is None
        ]
        dotted_ones = [
            alias
            for alias in aliases
            if isinstance(alias.name, cst.Attribute)
            and isinstance(self.program.parents[alias], cst.Import)
            and _is_legacy(dotted(alias.name))
        ]
        going = [
            alias
            for alias in dotted_ones
            if not any(f"{use}.".startswith(dotted(alias.name) + ".") for use in left)
        ]
        for index, alias in enumerate(going):
            last_one = not index and len(going) == len(aliases)
            self._changes[alias] = Change(name, name) if last_one else Change()

    def name_for(self, target: str, use: Place, variable: Variable, by_name: bool) -> str:
        """An expression for `target` at a place; may add an import next to that of `variable`."""
        anchor = self._anchor(variable)
        scope = use.scope
        if by_name:
            known = self._visible(target, use)
            if known is not None:
                return known
            module, _, name = target.rpartition(".")
            if self._free(name, target, anchor.scope, [scope]):
                self._add(anchor, f"from {module} import {name}", target, name)
                return name
        if target.startswith(_SHIM + "."):
            package, names = _SHIM, _SHIM_NAMES
        else:
            through = self._through_tensorflow(target, use)
            if through is not None:
                return through
            package, names = "tensorflow", _TENSORFLOW_NAMES
        local = self._visible(package, use)
        if local is None:
            free = (name for name in names if self._free(name, package, anchor.scope, [scope]))
            local = next(free, names[-1])
            alias = "" if local == package else f" as {local}"
            self._add(anchor, f"import {package}{alias}", package, local)
        return f"{local}.{target[len(package) + 1 :]}"

    def write(self, found: dict[cst.CSTNode, list[Edit]]) -> None:
        """Adds the edits to `found`."""
        self._merge()
        changed_lines = Lines(self.program.parents, self._changes, found)
        behind: dict[cst.CSTNode, list[str]] = {}
        before: dict[cst.CSTNode, list[str]] = {}
        for added in self._added:
            node = added.anchor.node
            is_import = isinstance(node, (cst.Import, cst.ImportFrom))
            (behind if is_import else before).setdefault(node, []).append(added.statement)
        for node, statements in before.items():
            changed_lines.put_before(node, statements)
        lines = {self._line(node): None for node in [*self._changes, *behind]}
        for line in lines:
            changed_lines.write(line, behind)
        changed_lines.close_up(self.program.modules)

    def _merge(self) -> None:
        """Removes imports that are now equal to an earlier one in the same block."""
        seen: set[tuple[cst.CSTNode, Change]] = set()
        for alias in [node for node in self.program.parents if isinstance(node, cst.ImportAlias)]:
            change = self._changes.get(alias, Change())
            if change.path is not None:
                block = self.program.parents[self._line(alias)]
                if (block, change) in seen:
                    self._changes[alias] = Change()
                seen.add((block, change))

    # Where names are bound.

    def _scope(self, name: cst.Name) -> Scope:
        return self.program.scopes.loads[name]

    def _free(self, name: str, path: str, owner: Scope, uses: list[Scope]) -> bool:
        """Whether `name` can be bound to `path` in `owner` without a conflict at any use."""
        if self._given.get(name, path) != path:
            return False
        if any(added.local == name and added.anchor.scope is owner for added in self._added):
            return False
        for use in [owner, *uses]:
            for scope in use.chain():
                if name in scope.bindings:
                    return False
                if scope is owner:
                    break
        return name not in self._loads

    def _visible(self, path: str, use: Place) -> Optional[str]:
        """A name that is bound to exactly `path` by an import and visible at a place."""
        around = list(use.scope.chain())
        for added in self._added:
            if added.path == path and added.anchor.scope in around:
                return added.local
        for place, name, bindings in self._imports_at(use):
            if all(bind.path == path for bind in bindings):
                self._needed.add((place, name))
                return name
        return None

    def _imports_at(self, use: Place) -> Iterator[tuple[Scope, str, list[Binding]]]:
        """The names that only unchanged imports bind, and that a place can read."""
        for place in use.scope.chain():
            for name, bindings in place.bindings.items():
                if (
                    all(one.kind == "import" and one.node not in self._changes for one in bindings)
                    and use.scope.owner(name) is place
                    and self._is_bound_before(bindings, place, use)
                ):
                    yield place, name, bindings

    def _is_bound_before(self, bindings: list[Binding], place: Scope, use: Place) -> bool:
        """Whether an import is above a place that uses its name, or the place is run later."""
        for scope in use.scope.chain():
            if scope is place:
                break
            if scope.kind == "function":
                return True
        if self._order is None:
            self._order = {node: number for number, node in enumerate(self.program.parents)}
        at = self._order.get(use.node, len(self._order))
        return any(self._order[one.node] < at for one in bindings)

    def _through_tensorflow(self, target: str, use: Place) -> Optional[str]:
        candidates: list[tuple[int, str, str, Scope]] = []
        for place, name, bindings in self._imports_at(use):
            ways = {
                attribute_path(one.path, target) if _is_root(one.path) else None for one in bindings
            }
            way = ways.pop() if len(ways) == 1 else None
            if way:
                candidates.append((way.count("."), name, way, place))
        if not candidates:
            return None
        _, name, way, place = min(candidates, key=lambda candidate: candidate[:2])
        self._needed.add((place, name))
        return f"{name}.{way}"

    def _anchor(self, variable: Variable) -> _Anchor:
        """Where to add an import: at the one that a variable comes from, or the first one."""
        owner, name = variable
        imports = [binding for binding in owner.bindings[name] if binding.kind == "import"]
        if not imports:  # a variable that is made of an imported name
            around = list(owner.chain())
            known = (
                one for one in self.program.imports() if root_of(one.path) or is_of_shim(one.path)
            )
            binding = min(known, key=lambda one: one.scope not in around)
            return self._anchor((binding.scope, binding.name))
        statement = self.program.parents[imports[0].node]
        if len(imports) > 1:
            for above in self.program.ancestors(statement):
                if above is owner.node or isinstance(above, cst.Module):
                    break
                if isinstance(above, cst.BaseCompoundStatement):
                    statement = above
        return _Anchor(statement, owner)

    def _add(self, anchor: _Anchor, statement: str, path: str, local: str) -> None:
        self._added.append(_Added(statement, path, local, anchor))

    def _line(self, node: cst.CSTNode) -> Line:
        for above in self.program.ancestors(node):
            if isinstance(above, (cst.SimpleStatementLine, cst.SimpleStatementSuite)):
                return above
        raise AssertionError("an import outside a statement")

    def _only_in_block(self, binding: Binding) -> bool:
        line = self._line(binding.node)
        block = self.program.parents.get(line)
        return isinstance(block, cst.IndentedBlock) and len(block.body) == 1


def _is_root(path: str) -> bool:
    root = root_of(path)
    return root is not None and not root.rest


def _is_legacy(path: str) -> bool:
    known = legacy_of(path) is not None or namespace_of(path) is not None
    return known or path.startswith("tensorflow.contrib.")
