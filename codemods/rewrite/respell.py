"""Writes the new path of a symbol at each place, in the file's own style of imports.

If all uses of an imported (or assigned) name move to the same module, the name is imported from
that module instead, and the uses stay as they are. Otherwise each use is rewritten with a name that
is already bound to TensorFlow, or with an import that is added next to the old one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Optional

import libcst as cst

from ..facts import Decision
from ..resolve.legacy_symbols import is_of_shim, root_of
from ..resolve.places import NamespaceUse, Place, Reference
from ..resolve.program import Program
from ..resolve.qualified_names import attribute_path, is_path
from ..resolve.scopes import Binding, BindingKind, Scope, dotted
from ..resolve.tree import Edit, Edited, root_name, walk
from .comments import keeping_comments, removal_of
from .imports import ImportEdits, Variable

__all__ = ["bindings_to_values", "is_only_target", "respell"]

_KERAS_OF_SHIM = "tf_lossscale.keras"
"""Not imported in place of a module below it: it would get a name such as `mixed_precision`."""


class _Use(NamedTuple):
    """One load of a variable: the place of its attribute chain, and the new path of that place.

    Without a path, it stays; `is_removed` is set if another edit takes it away.
    """

    name: cst.Name
    place: Optional[Place]
    target: Optional[str]
    is_removed: bool

    @property
    def is_whole(self) -> bool:
        """Whether the place is the name itself, without attributes."""
        return self.place is not None and self.place.node is self.name

    @property
    def base(self) -> Optional[str]:
        """The path that its first name must refer to so that its chain is the target."""
        if self.place is None or self.target is None:
            return None
        parts, depth = self.target.split("."), dotted(self.place.node).count(".")
        return ".".join(parts[: len(parts) - depth]) if depth < len(parts) else None


def respell(
    program: Program,
    moves: Mapping[Place, str],
    removed: Iterable[Reference],
    decision: Decision,
    kept: Container[cst.CSTNode] = (),
) -> dict[cst.CSTNode, list[Edit]]:
    """The edits that give every reference in `moves` its new path, including the imports.

    The imports in `kept` stay as they are.
    """
    return _Speller(program, moves, set(removed), decision, kept).edits()


class _Speller:
    """Gives moved places their new paths, with the imports that these need.

    A name that is imported for moved places only goes, or its import moves. Where a place cannot be
    reached by a name that exists, an import is added.

    Attributes:
      targets: the new path of each place that moves.
      removed: the places whose code is removed.
      found: the edits of each node.
      lost: for each variable, the reads of it that are gone.
    """

    def __init__(
        self,
        program: Program,
        moves: Mapping[Place, str],
        removed: set[Reference],
        decision: Decision,
        kept: Container[cst.CSTNode],
    ) -> None:
        self.program = program
        self.kept = kept
        self.targets = dict(moves)
        self.removed = removed
        self.imports = ImportEdits(program, decision, kept)
        self.found: dict[cst.CSTNode, list[Edit]] = {}
        self.lost: dict[Variable, set[cst.Name]] = {}
        places = [*program.places(), *self.targets]
        self.place_at = {place.root: place for place in places if place.root is not None}
        self.imported = {place.node: place for place in places if place.root is None}

    def edits(self) -> dict[cst.CSTNode, list[Edit]]:
        """Returns the edits of all references, and of the imports that they need or no longer need.

        A variable whose references are all replaced loses its import. One with other references
        keeps it, without the submodules that only the replaced ones needed.
        """
        variables = self._affected_variables()
        for variable in variables:
            self._spell(variable)
        for variable in variables:
            lost = self.lost.get(variable, set())
            if lost and len(lost) == len(self.program.loads_of(*variable)):
                self._drop(variable)
            else:
                self.imports.drop_dotted(variable, *self._paths(variable, lost))
        for node, edits in self.imports.edits().items():
            self.found.setdefault(node, []).extend(edits)
        return self.found

    def _affected_variables(self) -> list[Variable]:
        """The variables that moved references use, each before the variables it depends on."""
        found: list[Variable] = []
        seen: set[Variable] = set()

        def visit(name: str, scope: Scope) -> None:
            owner = scope.owner(name)
            if owner is None or (owner, name) in seen:
                return
            seen.add((owner, name))
            for binding in owner.bindings[name]:
                root = root_name(binding.value)
                if root is not None:
                    visit(root.value, binding.scope)
            found.append((owner, name))

        bound = {binding.node: binding for binding in self.program.imports()}
        for place in [*self.targets, *self.removed]:
            if place.root is not None:
                visit(place.root.value, place.scope)
            else:
                visit(bound[place.node].name, place.scope)
        found.reverse()
        assigned = [variable for variable in found if not _has_import(variable)]
        return [*assigned, *filter(_has_import, found)]

    def _uses(self, variable: Variable) -> list[_Use]:
        found = []
        for name in self.program.loads_of(*variable):
            place = self.place_at.get(name)
            target = self.targets.get(place) if place is not None else None
            removed = isinstance(place, Reference) and place in self.removed
            found.append(_Use(name, place, target, removed))
        return found

    def _spell(self, variable: Variable) -> None:
        """Rewrites the uses of a name, and what binds it if it has one new path.

        Without one, each use is rewritten by itself. The name stays bound if uses of it stay, or if
        nothing here reads it, and then each of its imports is rewritten by itself, too. Otherwise
        `edits` removes them, once no use is left.
        """
        uses = self._uses(variable)
        path = self._new_path(variable, uses)
        local = variable[1]
        if path is not None:
            local = self._rebind(variable, path, uses)
        elif self._may_be_other(variable):
            uses = list(self._staying_where_whole(variable, uses))
        for use in uses:
            self._spell_use(variable, use, path, local)
        has_use_that_stays = any(use.target is None and not use.is_removed for use in uses)
        stays_bound = has_use_that_stays or not uses
        if path is None and stays_bound:
            self._retarget_each(variable)

    def _may_be_other(self, variable: Variable) -> bool:
        """Whether a name may have a value that is no module or symbol, such as None."""
        bindings = _bindings(variable)
        return any(binding.value and self._place_of(binding) is None for binding in bindings)

    def _staying_where_whole(self, variable: Variable, uses: Iterable[_Use]) -> Iterator[_Use]:
        """The uses of a name that may be None: `if mp is not None` goes on to read it.

        But not where the use gets another path than the values of the name.
        """
        paths: set[Optional[str]] = {None}
        for binding in _bindings(variable):
            nodes = walk(binding.value) if binding.value is not None else ()
            places = [self.place_at.get(node) for node in nodes if isinstance(node, cst.Name)]
            places.append(self.imported.get(binding.node))
            paths.update(self.targets.get(place) for place in places if place is not None)
        for use in uses:
            stays = use.is_whole and paths <= {None, use.target}
            yield use._replace(target=None) if stays else use

    def _rebind(self, variable: Variable, path: str, uses: Sequence[_Use]) -> str:
        """Gives a name the meaning `path` where it is bound; returns what it is called then."""
        for binding in _bindings(variable):
            place = self._place_of(binding)
            if place is None or place.root is None:
                continue  # an import, which `retarget` changes
            self.targets[place] = path  # what is assigned: a use of the name that it begins with
        if not _has_import(variable):
            return variable[1]
        has_use_that_stays = any(use.target is None and not use.is_removed for use in uses)
        names = [use.name for use in uses]
        return self.imports.retarget(variable, path, names, keeps_name=has_use_that_stays)

    def _spell_use(self, variable: Variable, use: _Use, path: Optional[str], local: str) -> None:
        """Rewrites one use of a name, which then means `path` and is called `local`.

        Without `path`, the name keeps its meanings.
        """
        if use.is_removed:
            self._lose(variable, use.name)
            return
        if use.place is None or use.target is None:
            return  # it stays as it is
        if path is not None and use.base == path:
            self._replace(use.place.node, local + use.target[len(path) :])
            return
        keeps_meanings = path is None
        self._write(variable, use.name, use.place, use.target, keeps_root=keeps_meanings)

    def _new_path(self, variable: Variable, uses: Sequence[_Use]) -> Optional[str]:
        """The path that a name is to mean; None if it is not given another meaning.

        Uses that stay and other files read the name for what it is bound to, so it moves with that,
        if that has one new path; likewise a name that is assigned a symbol, or shares its value
        with others. Any other name is free to mean the module that most uses need. An import that
        other symbols need stays.
        """
        bindings = bindings_to_values(variable)
        places = [self._place_of(binding) for binding in bindings]
        path_of_values = self._common_target(places)
        is_imported = _has_import(variable)
        if not self._may_move(is_imported, bindings, places):
            return None
        holds_symbol = any(isinstance(place, Reference) for place in places)
        shares_value = not all(is_only_target(self.program, binding) for binding in bindings)
        if (holds_symbol or shares_value) and not is_imported:
            return path_of_values
        remaining = [use for use in uses if not use.is_removed]
        has_use_that_stays = any(use.target is None for use in remaining)
        if has_use_that_stays:
            return path_of_values
        if self._is_read_for_value(variable, is_imported):
            return path_of_values
        if not uses:
            return _new_module([path_of_values], bindings)
        path = _new_module([use.base for use in remaining], bindings)  # None if all are removed
        if path is None or not is_imported:
            return path
        return self._meaning_of_module(variable[1], bindings, path)

    def _is_read_for_value(self, variable: Variable, is_imported: bool) -> bool:
        """Whether something other than the file's own code reads what a name is bound to."""
        if self.imports.is_read_elsewhere(variable):
            return True
        if not is_imported and self.imports.is_read_by_attribute(variable):
            return True
        return self.program.evaluated_texts.show(variable[1])

    def _meaning_of_module(
        self, name: str, bindings: Sequence[Binding], path: str
    ) -> Optional[str]:
        """What an imported name is to mean whose reads in the file's own code need `path`.

        A module that still exists stays rather than the one above it, and so does any that a text
        may read. The own name of a removed one, which a text may read, means the shim's module.
        The file's own reads then need no import, or have one of their own.
        """
        places = map(self._place_of, bindings)
        modules = [place.module for place in places if isinstance(place, NamespaceUse)]
        twins = {module.twin for module in modules}
        if len(modules) < len(bindings) or path in twins:
            return path
        may_be_read = self.program.evaluated_texts.may_read(name)
        if all(module.is_current for module in modules):
            is_above = all(binding.path.startswith(f"{path}.") for binding in bindings)
            return None if is_above or may_be_read else path
        is_own_name = {twin.rpartition(".")[2] for twin in twins} == {name}
        return min(twins) if may_be_read and is_own_name else path

    def _may_move(
        self, is_imported: bool, bindings: Sequence[Binding], places: Sequence[Optional[Place]]
    ) -> bool:
        """Whether all that binds a name can change."""
        if is_imported:
            return all(map(self._may_retarget, bindings))
        return all(map(self._may_reassign, bindings, places))

    def _may_reassign(self, binding: Binding, place: Optional[Place]) -> bool:
        """Whether what is assigned to a name can change.

        Not `tf = tensorflow`, which is no place, and `first = second = tf.train.experimental` only
        if the module itself moves, with both names.
        """
        if place is None or isinstance(place, Reference) or place in self.targets:
            return place is not None
        return is_only_target(self.program, binding)

    def _common_target(self, places: Sequence[Optional[Place]]) -> Optional[str]:
        """The new path that all places have; None if they differ, or if one has none."""
        paths = {self.targets.get(place) if place is not None else None for place in places}
        return next(iter(paths)) if len(paths) == 1 else None

    def _may_retarget(self, binding: Binding) -> bool:
        """Whether a binding is an import that can change without taking other symbols away."""
        if binding.kind is not BindingKind.IMPORT or binding.node in self.kept:
            return False
        if is_of_shim(binding.path):
            return binding.path.count(".") > 1
        root = root_of(binding.path)
        return root is not None and root.rest not in ("", "keras")

    def _place_of(self, binding: Binding) -> Optional[Place]:
        """The symbol or module that a binding names."""
        root = root_name(binding.value)
        if root is None:
            return self.imported.get(binding.node)
        place = self.place_at.get(root)
        return place if place is not None and place.node is binding.value else None

    def _drop(self, variable: Variable) -> None:
        """Removes what binds a name that nothing reads; an assignment only with all of its uses."""
        if self.imports.drop(variable):
            return
        self._retarget_each(variable)
        binding, *others = _bindings(variable)
        root = root_name(binding.value)
        below = binding.scope.owner(root.value) if root is not None else None
        is_removed = all(use.is_removed for use in self._uses(variable))
        if root is None or below is None or others or not is_removed:
            return
        edits = removal_of(self.program, binding)
        if edits is not None and not self.imports.is_read_elsewhere(variable):
            for node, edit in edits:
                self.found.setdefault(node, []).append(edit)
            self._lose((below, root.value), root)

    def _retarget_each(self, variable: Variable) -> None:
        """Rewrites the imports of a name that nothing here reads, or that has other meanings."""
        owner, name = variable
        for binding in owner.bindings[name]:
            place = self.imported.get(binding.node)
            moved = self.targets.get(place) if place is not None else None
            if moved is not None:
                assert isinstance(binding.node, cst.ImportAlias)
                self.imports.retarget_one(binding.node, moved, name)

    def _write(
        self, variable: Variable, name: cst.Name, place: Place, target: str, keeps_root: bool
    ) -> None:
        """Rewrites a single use: keeps a part of its chain, or else finds or adds a name."""
        kept = self._through_own_chain(place, target) if keeps_root else None
        if kept is not None:
            self._replace_keeping(place.node, *kept)
        else:
            self._lose(variable, name)
            self._replace(place.node, self.imports.name_for(target, place, variable))

    def _through_own_chain(
        self, place: Place, target: str
    ) -> Optional[tuple[cst.BaseExpression, str]]:
        """The longest part of the chain that leads to the new path, and the attributes to add."""
        node: Optional[cst.CSTNode] = place.node
        while isinstance(node, (cst.Name, cst.Attribute)):
            paths = self.program.origins.of_expression(node, place.scope)
            ways = {attribute_path(path, target) if is_path(path) else None for path in paths}
            way = ways.pop() if len(ways) == 1 else None
            if way is not None:
                return node, way
            node = node.value if isinstance(node, cst.Attribute) else None
        return None

    def _lose(self, variable: Variable, name: cst.Name) -> None:
        self.lost.setdefault(variable, set()).add(name)

    def _paths(self, variable: Variable, lost: set[cst.Name]) -> tuple[set[str], set[str]]:
        """The dotted paths in the uses of a variable: those that stay, and those that go."""
        stay, go = set[str](), set[str]()
        for use in self._uses(variable):
            node: cst.CSTNode = use.name
            parent = self.program.parents.get(node)
            while isinstance(parent, cst.Attribute) and parent.value is node:
                node, parent = parent, self.program.parents.get(parent)
            goes = use.name in lost or use.target is not None
            (go if goes else stay).add(dotted(node))
        return stay, go

    def _replace(self, node: cst.CSTNode, text: str) -> None:
        base, _, rest = text.partition(".")
        if text != dotted(node):
            self._replace_keeping(node, cst.Name(base), rest)

    def _replace_keeping(self, node: cst.CSTNode, base: cst.BaseExpression, suffix: str) -> None:
        """Replaces `node` with `base` and `suffix`; `base` may be a part of `node`."""
        names = suffix.split(".") if suffix else []
        if base is node and not names:
            return

        def edit(old: cst.CSTNode) -> Edited:
            assert isinstance(old, (cst.Name, cst.Attribute))
            links: dict[str, cst.Attribute] = {}
            link: cst.BaseExpression = old
            while link is not base and isinstance(link, cst.Attribute):
                links[link.attr.value] = link
                link = link.value
            new = base
            for name in names:
                like = links.get(name) or cst.Attribute(new, cst.Name(name))
                new = like.with_changes(value=new, lpar=[], rpar=[])
            new = keeping_comments(old, new) or new
            return new if new is base else new.with_changes(lpar=old.lpar, rpar=old.rpar)

        self.found.setdefault(node, []).append(edit)


def is_only_target(program: Program, binding: Binding) -> bool:
    """Whether an assignment binds nothing else, so that its value can change for this name."""
    target = program.parents.get(binding.node)
    assign = program.parents.get(target) if target is not None else None
    return isinstance(assign, cst.Assign) and len(assign.targets) == 1


def bindings_to_values(variable: Variable) -> list[Binding]:
    """The bindings of a name; `except ImportError: name = None` is no other meaning."""
    values = ((binding, getattr(binding.value, "value", "")) for binding in _bindings(variable))
    return [binding for binding, value in values if value != "None"]


def _new_module(paths: Sequence[Optional[str]], bindings: Sequence[Binding]) -> Optional[str]:
    """The path that most uses need, if the bindings do not have it and it can have a name."""
    counts = Counter(paths)
    if not counts or None in counts or _KERAS_OF_SHIM in counts:
        return None
    path = max(counts, key=lambda path: (counts[path], path is not None and not is_of_shim(path)))
    root = root_of(path) if path is not None else None
    if (root is not None and not root.rest) or path in [binding.path for binding in bindings]:
        return None
    return path


def _bindings(variable: Variable) -> list[Binding]:
    return variable[0].bindings[variable[1]]


def _has_import(variable: Variable) -> bool:
    return any(binding.kind is BindingKind.IMPORT for binding in _bindings(variable))
