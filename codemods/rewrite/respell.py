"""Writes the new path of a symbol at each place, in the file's own style of imports.

If all uses of an imported (or assigned) name move to the same module, the name is imported from
that module instead, and the uses stay as they are. Otherwise each use is rewritten with a name that
is already bound to TensorFlow, or with an import that is added next to the old one.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import NamedTuple, Optional

import libcst as cst

from ..resolve.legacy_symbols import is_of_shim, root_of
from ..resolve.places import NamespaceUse, Place, Reference
from ..resolve.program import Program
from ..resolve.qualified_names import attribute_path, is_path
from ..resolve.scopes import Binding, Scope
from ..resolve.tree import Edit, root_name
from .comments import keeping_comments
from .imports import ImportEdits
from .remove_statement import removal_of

__all__ = ["respell"]

Variable = tuple[Scope, str]


class _Use(NamedTuple):
    """One load of a variable: the place of its attribute chain, and the new path of that place."""

    name: cst.Name
    place: Optional[Place]
    target: Optional[str]
    removed: bool


def respell(
    program: Program,
    moves: Mapping[Place, str],
    removed: Iterable[Reference],
    kept: Container[cst.CSTNode] = (),
) -> dict[cst.CSTNode, list[Edit]]:
    """The edits that give every reference in `moves` its new path, including the imports.

    The imports in `kept` stay as they are.
    """
    return _Speller(program, moves, set(removed), kept).edits()


class _Speller:
    def __init__(
        self,
        program: Program,
        moves: Mapping[Place, str],
        removed: set[Reference],
        kept: Container[cst.CSTNode],
    ) -> None:
        self.program = program
        self.kept = kept
        self.targets: dict[Place, str] = dict(moves.items())
        self.removed = removed
        self.imports = ImportEdits(program, kept)
        self.found: dict[cst.CSTNode, list[Edit]] = {}
        self.place_at: dict[cst.Name, Place] = {}
        for reference in program.references:
            if reference.root is not None:
                self.place_at[reference.root] = reference
        for space in program.namespaces:
            if space.root is not None:
                self.place_at[space.root] = space
        self.lost: dict[Variable, set[cst.Name]] = {}
        self.imported: dict[cst.CSTNode, Place] = {
            place.node: place for place in program.places() if place.root is None
        }

    def edits(self) -> dict[cst.CSTNode, list[Edit]]:
        variables = self._affected_variables()
        for variable in variables:
            if all(binding.kind == "value" for binding in variable[0].bindings[variable[1]]):
                self._alias(variable)
        for variable in variables:
            self._drop_alias(variable)
        for variable in variables:
            if any(binding.kind == "import" for binding in variable[0].bindings[variable[1]]):
                self._imported(variable)
        for variable in variables:
            lost = self.lost.get(variable, set())
            if lost and len(lost) == len(self.program.loads_of(*variable)):
                if not self.imports.drop(variable):
                    self._retarget(variable)
            elif lost or self._is_removed(variable):
                self.imports.drop_dotted(variable, self._left(variable, lost))
        self.imports.write(self.found)
        return self.found

    def _is_removed(self, variable: Variable) -> bool:
        """Whether an import of the variable is removed that nothing reads."""
        return any(
            self.imported.get(one.node) in self.removed for one in variable[0].bindings[variable[1]]
        )

    def _affected_variables(self) -> list[Variable]:
        """The variables that moved references use, each before the variables it depends on."""
        found: dict[Variable, None] = {}

        def visit(name: cst.Name, scope: Scope) -> None:
            owner = scope.owner(name.value)
            if owner is None or (owner, name.value) in found:
                return
            found[owner, name.value] = None
            for binding in owner.bindings[name.value]:
                root = root_name(binding.value) if binding.value is not None else None
                if root is not None:
                    visit(root, binding.scope)

        for place in [*self.targets, *self.removed]:
            if place.root is not None:
                visit(place.root, place.scope)
            else:
                binding = self._binding_of(place)
                found[binding.scope, binding.name] = None
        return list(found)

    def _binding_of(self, reference: Place) -> Binding:
        for bindings in reference.scope.bindings.values():
            for binding in bindings:
                if binding.node is reference.node:
                    return binding
        raise AssertionError("an import without a binding")

    def _uses(self, variable: Variable) -> list[_Use]:
        found = []
        for name in self.program.loads_of(*variable):
            place = self.place_at.get(name)
            target = self.targets.get(place) if place is not None else None
            removed = isinstance(place, Reference) and place in self.removed
            found.append(_Use(name, place, target, removed))
        return found

    def _new_module(self, uses: list[_Use]) -> Optional[str]:
        """The path that is right for most uses if the variable is imported from there.

        None if any use stays, because then the variable must stay, too; or if it would be the whole
        package `keras` of the shim, for which a name such as `mixed_precision` is misleading.
        """
        paths: dict[str, int] = {}
        for use in uses:
            if use.removed:
                continue
            path = _base_of(use)
            if path is None or path == "tf_lossscale.keras":
                return None
            paths[path] = paths.get(path, 0) + 1
        return max(
            paths, key=lambda path: (paths[path], not path.startswith("tf_lossscale")), default=None
        )

    def _alias(self, variable: Variable) -> None:
        """Rewrites an assigned name: `LSO = tf.contrib...`, `mp = tf.contrib.mixed_precision`."""
        owner, name = variable
        uses = self._uses(variable)
        spaces = [
            self._place_of(binding.value)
            for binding in owner.bindings[name]
            if binding.value is not None
        ]
        if spaces and all(isinstance(space, NamespaceUse) for space in spaces):
            path = self._new_module(uses)
            if path is not None:
                for space in spaces:
                    assert space is not None
                    self.targets[space] = path
                for use in uses:
                    if _base_of(use) == path:
                        self._keep_root(use, name)
                    elif not use.removed:
                        self._write_with_new_name(variable, use)
                return
        stays = {self.targets.get(space) for space in spaces if space is not None}
        for use in uses:
            if use.removed:
                self._lose(variable, use.name)
            elif use.target is not None and {use.target} != stays:
                self._write(variable, use)

    def _drop_alias(self, variable: Variable) -> None:
        """Removes an alias such as `mp = tf.train.experimental` if all its uses are removed."""
        owner, name = variable
        uses = self._uses(variable)
        bindings = owner.bindings[name]
        if not uses or not all(use.removed for use in uses) or len(bindings) > 1:
            return
        if self.program.is_read_elsewhere(owner, name):
            return
        root = root_name(bindings[0].value)
        edits = removal_of(self.program, bindings[0]) if root is not None else None
        below = bindings[0].scope.owner(root.value) if root is not None else None
        if root is None or edits is None or below is None:
            return
        for node, edit in edits:
            self.found.setdefault(node, []).append(edit)
        self._lose((below, root.value), root)

    def _place_of(self, value: Optional[cst.BaseExpression]) -> Optional[Place]:
        root = root_name(value) if value is not None else None
        return self.place_at.get(root) if root is not None else None

    def _imported(self, variable: Variable) -> None:
        owner, name = variable
        uses = self._uses(variable)
        bindings = owner.bindings[name]
        path = self._new_module(uses) if uses else None
        if not uses:
            targets = {
                self.targets.get(self.imported[binding.node])
                for binding in bindings
                if binding.node in self.imported
            }
            is_left = any(  # a branch of a version guard stays
                binding.node not in self.imported for binding in bindings if not _is_none(binding)
            )
            path = targets.pop() if len(targets) == 1 and not is_left else None
        if path is not None and self._may_retarget(bindings, uses, path):
            local = self.imports.retarget(variable, path, [use.name for use in uses])
            for use in uses:
                if _base_of(use) == path:
                    self._keep_root(use, local)
                elif not use.removed:
                    self._write_with_new_name(variable, use)
            return
        for use in uses:
            if use.removed:
                self._lose(variable, use.name)
            elif use.target is not None:
                self._write(variable, use)
        if all(use.target is None and not use.removed for use in uses):
            self._retarget(variable)

    def _retarget(self, variable: Variable) -> None:
        """Rewrites the imports of a name that nothing here reads, or that has other meanings."""
        owner, name = variable
        for binding in owner.bindings[name]:
            place = self.imported.get(binding.node)
            moved = self.targets.get(place) if place is not None else None
            if moved is not None:
                assert isinstance(binding.node, cst.ImportAlias)
                self.imports.retarget_one(binding.node, moved, name)

    def _may_retarget(self, bindings: list[Binding], uses: list[_Use], path: str) -> bool:
        goal = root_of(path)
        if goal is not None and not goal.rest:
            return False
        bindings = [binding for binding in bindings if not _is_none(binding)]
        if not all(binding.kind == "import" for binding in bindings):
            return False
        for binding in bindings:
            if binding.node in self.kept:
                return False
            if path == binding.path or not self._is_below_root(binding.path):
                return False
        left = [use for use in uses if not use.removed]
        if any(self._through_own_chain(use) is not None for use in left):
            return False  # the import is right for these
        return bool(left) or not uses

    def _is_below_root(self, path: str) -> bool:
        """Whether an import of `path` can be changed without taking other symbols away."""
        if is_of_shim(path):
            return path.count(".") > 1
        root = root_of(path)
        return root is not None and root.rest not in ("", "keras")

    def _keep_root(self, use: _Use, local: str) -> None:
        """Rewrites a use whose first name will refer to the new module."""
        if use.removed or use.place is None or use.target is None:
            return
        suffix = _suffix(use.place.node)
        new_suffix = use.target.split(".")[-len(suffix) :] if suffix else []
        if use.name.value != local or suffix != new_suffix:
            self._replace(use.place.node, ".".join([local, *new_suffix]))

    def _write(self, variable: Variable, use: _Use) -> None:
        """Rewrites a single use: keeps a part of its chain, or else finds or adds a name."""
        assert use.place is not None
        assert use.target is not None
        kept = self._through_own_chain(use)
        if kept is not None:
            base, suffix = kept
            self._replace_keeping(use.place.node, base, suffix)
            return
        self._write_with_new_name(variable, use)

    def _write_with_new_name(self, variable: Variable, use: _Use) -> None:
        assert use.place is not None
        assert use.target is not None
        self._lose(variable, use.name)
        text = self.imports.name_for(
            use.target, use.place, variable, by_name=isinstance(use.place.node, cst.Name)
        )
        self._replace(use.place.node, text)

    def _through_own_chain(self, use: _Use) -> Optional[tuple[cst.BaseExpression, str]]:
        """The longest part of the chain that leads to the new path, and the attributes to add."""
        assert use.place is not None
        assert use.target is not None
        node: Optional[cst.CSTNode] = use.place.node
        while node is not None:
            paths = self.program.origins.of_expression(node, use.place.scope)
            ways = {attribute_path(path, use.target) if is_path(path) else None for path in paths}
            if len(ways) == 1:
                way = ways.pop()
                if way is not None:
                    assert isinstance(node, cst.BaseExpression)
                    return node, way
            node = node.value if isinstance(node, cst.Attribute) else None
        return None

    def _lose(self, variable: Variable, name: cst.Name) -> None:
        self.lost.setdefault(variable, set()).add(name)

    def _left(self, variable: Variable, lost: set[cst.Name]) -> set[str]:
        """The dotted paths in the remaining uses of a variable."""
        left = set()
        for name in self.program.loads_of(*variable):
            if name in lost:
                continue
            parts = [name.value]
            node: cst.CSTNode = name
            parent = self.program.parents.get(node)
            while isinstance(parent, cst.Attribute) and parent.value is node:
                parts.append(parent.attr.value)
                node, parent = parent, self.program.parents.get(parent)
            left.add(".".join(parts))
        return left

    def _replace(self, node: cst.CSTNode, text: str) -> None:
        base, _, rest = text.partition(".")
        self._replace_keeping(node, cst.Name(base), rest)

    def _replace_keeping(self, node: cst.CSTNode, base: cst.BaseExpression, suffix: str) -> None:
        """Replaces `node` with `base` and `suffix`; `base` may be a part of `node`."""
        names = suffix.split(".") if suffix else []
        if base is node and not names:
            return

        def edit(old: cst.CSTNode) -> object:
            assert isinstance(old, (cst.Name, cst.Attribute))
            links = {link.attr.value: link for link in _links(old, base)}
            new = base
            for name in names:
                like = links.get(name) or cst.Attribute(new, cst.Name(name))
                new = like.with_changes(value=new, lpar=[], rpar=[])
            new = keeping_comments(old, new) or new
            return new if new is base else new.with_changes(lpar=old.lpar, rpar=old.rpar)

        self.found.setdefault(node, []).append(edit)


def _is_none(binding: Binding) -> bool:
    """Whether the binding is `None`, as in `except ImportError: name = None`."""
    return isinstance(binding.value, cst.Name) and binding.value.value == "None"


def _base_of(use: _Use) -> Optional[str]:
    """The path that the first name of a use must refer to so that its chain is the target."""
    if use.place is None or use.target is None:
        return None
    depth = len(_suffix(use.place.node))
    parts = use.target.split(".")
    return ".".join(parts[: len(parts) - depth]) if depth < len(parts) else None


def _links(chain: cst.CSTNode, base: cst.CSTNode) -> list[cst.Attribute]:
    """The attributes in `chain` down to `base`, the outermost first."""
    found = []
    while chain is not base and isinstance(chain, cst.Attribute):
        found.append(chain)
        chain = chain.value
    return found


def _suffix(node: cst.CSTNode) -> list[str]:
    names = []
    while isinstance(node, cst.Attribute):
        names.append(node.attr.value)
        node = node.value
    return names[::-1]
