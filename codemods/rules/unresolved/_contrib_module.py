"""Renames or reports `c = tf.contrib` where nothing that is read from it stays on TensorFlow.

`tf.contrib` is no module of legacy symbols, so it is no place, and the rewrite of
`c.mixed_precision.LossScaleOptimizer` leaves what binds `c`, which TensorFlow 2 does not have. If
each read of the name moves, the value becomes the shim's `contrib`. If the name has no reads, or
what else holds the value cannot be seen, that line is reported. Where other things are read from
it, such as `c.layers`, nothing is done: `tf_upgrade_v2` rewrites or reports these.
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Iterator, Sequence
from typing import Callable, NamedTuple

import libcst as cst

from ...resolve import legacy_symbols, tree
from ...resolve.mentions import DISPLAYS
from ...resolve.places import NamespaceUse, Place, Reference
from ...resolve.scopes import Binding
from ..rule import Decision, Program, Proposal, Safety

__all__ = ["ContribModule"]

_CONTRIB = "contrib"
_TWIN = "tf_lossscale.contrib"
_RENAMED = f"use {legacy_symbols.shown_path(_TWIN)}"
_UNREAD = "TensorFlow 2 has no tf.contrib, and nothing in this file needs it here: remove this line"
_ELSEWHERE = (
    "TensorFlow 2 has no tf.contrib: import by name what other files or strings read from it "
    "here, then remove this line"
)
_CHOICES = (cst.BooleanOperation, cst.IfExp, cst.NamedExpr)
"""Expressions with the value of one of their parts."""
_TESTS = (cst.Expr, cst.If, cst.While)
"""What may have an assignment expression, and does not pass its value on."""


class _Fate(enum.IntEnum):
    """What becomes of a value; the last one of several reads decides."""

    RENAMED = 0
    REPORTED = 1
    NEEDED = 2


class _Found(NamedTuple):
    """What becomes of a value, and the places that must move for it."""

    fate: _Fate
    moved: frozenset[cst.CSTNode] = frozenset()


_NEEDED = _Found(_Fate.NEEDED)


class ContribModule:
    """What holds the module `tf.contrib` in a program.

    Args:
      program: the file.
      decision: what is decided about it.
      is_moved: whether the use of a module of legacy symbols gets a new path.
    """

    def __init__(
        self,
        program: Program,
        decision: Decision,
        is_moved: Callable[[Program, NamespaceUse, Decision], bool],
    ) -> None:
        self._program = program
        self._decision = decision
        self._is_moved = is_moved
        self._place_at: dict[cst.CSTNode, Place] = {}
        self._bound: dict[cst.CSTNode, list[Binding]] = {}

    def proposals(self) -> Iterator[Proposal]:
        """Proposes the shim's module for each value that is `tf.contrib`, or reports it."""
        imports = [binding for binding in self._program.imports() if _imports_contrib(binding)]
        chains = self._program.attributes(_CONTRIB)
        if not imports and not any(map(self._is_contrib, chains)):
            return
        self._place_at = {
            place.root: place for place in self._program.places() if place.root is not None
        }
        self._bound = self._bindings_of_values()
        reported: list[cst.Name] = []
        for name in self._program.scopes.loads:
            node = self._end_of(name)
            if not self._is_contrib(node) or self._program.is_stored(node):
                continue
            found = self._fate(node, frozenset())
            if found.fate is _Fate.REPORTED:
                reported.append(name)
                yield self._report(node, found)
            elif found.fate is _Fate.RENAMED:
                yield self._rename(name, node, found)
        for binding in imports:
            yield from self._import(binding, reported)

    def _bindings_of_values(self) -> dict[cst.CSTNode, list[Binding]]:
        found: dict[cst.CSTNode, list[Binding]] = {}
        for scope in self._program.scopes.all:
            for binding in itertools.chain.from_iterable(scope.bindings.values()):
                value = binding.node if binding.value is None else binding.value
                found.setdefault(value, []).append(binding)
        return found

    def _rename(self, name: cst.Name, node: cst.CSTNode, found: _Found) -> Proposal:
        path = min(self._program.paths_of(node))
        use = NamespaceUse(node, self._program.scopes.loads[name], path, name)
        proposal = Proposal(node, "LS909", _CONTRIB, Safety.SAFE, _RENAMED, ((use, _TWIN),))
        return proposal._replace(beside=found.moved)

    def _import(self, binding: Binding, reported: list[cst.Name]) -> Iterator[Proposal]:
        """Reports an import that stays for what is reported, or beside an assignment."""
        reads = self._program.loads_of(binding.scope, binding.name)
        bindings = binding.scope.bindings[binding.name]
        is_assigned = any(
            other.value is not None
            and (self._is_contrib(other.value) or self._program.paths_of(other.value) == {_TWIN})
            for other in bindings
        )
        if not _is_path_of_contrib(binding.path):  # `import tensorflow.contrib`
            ends = ((read, f"{tree.dotted(self._end_of(read))}.") for read in reads)
            reads = [read for read, end in ends if end.startswith(f"{binding.name}.{_CONTRIB}.")]
            is_assigned = False
        found = self._fate_of_reads(reads, frozenset())
        is_left = is_assigned or any(read in reported for read in reads)
        is_needed = found.fate is _Fate.NEEDED or self._is_guarded(binding.node)
        if is_left and not is_needed:
            yield self._report(binding.node, found)

    def _report(self, node: cst.CSTNode, found: _Found) -> Proposal:
        values = [node] if isinstance(node, cst.ImportAlias) else self._values_around(node)
        bindings = [binding for value in values for binding in self._bound.get(value, ())]
        is_read_otherwise = any(map(self._is_read_otherwise, bindings))
        message = _ELSEWHERE if is_read_otherwise else _UNREAD
        return Proposal.report(node, "LS909", _CONTRIB, message)._replace(beside=found.moved)

    def _is_guarded(self, node: cst.CSTNode) -> bool:
        """Whether only old versions run a place, or a `try` around it handles its failure.

        With the shim's module, it would not fail, and the handler would never run.
        """
        body = node
        for above in self._program.ancestors(node):
            if isinstance(above, (cst.Try, cst.TryStar)) and above.handlers and above.body is body:
                return True
            body = above
        return self._program.guards.depends_on_version(node)

    def _is_contrib(self, node: cst.CSTNode) -> bool:
        paths = self._program.paths_of(node)
        return bool(paths) and all(map(_is_path_of_contrib, paths))

    def _end_of(self, name: cst.Name) -> cst.CSTNode:
        """The chain of attributes that begins with a name."""
        node: cst.CSTNode = name
        parent = self._program.parents.get(node)
        while isinstance(parent, cst.Attribute) and parent.value is node:
            node, parent = parent, self._program.parents.get(parent)
        return node

    def _fate(self, node: cst.CSTNode, seen: frozenset[cst.CSTNode]) -> _Found:
        """What becomes of a chain that is `tf.contrib`, by the reads of what it is bound to."""
        if node in seen:
            return _Found(_Fate.RENAMED)
        values = self._values_around(node)
        if not values or self._is_guarded(node):
            return _NEEDED
        reads = [
            read
            for value in values
            for read in self._program.values.reads_of(value)
            if self._program.may_be_of_object(read) and not self._program.is_stored(read)
        ]
        found = self._fate_of_reads(reads, seen | {node})
        is_plain = reads and all(map(self._is_plain, values))
        if found.fate is _Fate.RENAMED and not is_plain:
            return found._replace(fate=_Fate.REPORTED)
        return found

    def _fate_of_reads(self, reads: Sequence[cst.CSTNode], seen: frozenset[cst.CSTNode]) -> _Found:
        found = [self._fate_of_read(read, seen) for read in reads]
        fate = max((part.fate for part in found), default=_Fate.RENAMED)
        return _Found(fate, frozenset(node for part in found for node in part.moved))

    def _fate_of_read(self, read: cst.CSTNode, seen: frozenset[cst.CSTNode]) -> _Found:
        """What a read of the module means for it: whether it moves, or binds it to another name."""
        if not isinstance(read, cst.Name):
            return _NEEDED  # of any object: `self.contrib`
        place = self._place_at.get(read)
        if place is not None:
            is_moved = isinstance(place, Reference) or self._is_moved(
                self._program, place, self._decision
            )
            return _Found(_Fate.RENAMED, frozenset([place.node])) if is_moved else _NEEDED
        end = self._end_of(read)
        return self._fate(end, seen) if self._is_contrib(end) else _NEEDED

    def _values_around(self, node: cst.CSTNode) -> list[cst.CSTNode]:
        """The values with the chain that names or attributes are bound to; none if it escapes."""
        parents = self._program.parents
        found = [node] if node in self._bound else []
        parent = parents.get(node)
        while isinstance(parent, _CHOICES):
            if isinstance(parent, cst.IfExp) and parent.test is node:
                return []
            node, parent = parent, parents.get(parent)
            found += [node] if node in self._bound else []
        if isinstance(parent, cst.Assign):
            return self._values_of_assignment(node, parent, found)
        if isinstance(parent, (cst.AnnAssign, *_TESTS)):
            return found
        _, above = self._program.outside(node, DISPLAYS)
        is_unpacked = isinstance(above, cst.Assign) and len(above.targets) == 1
        return found if is_unpacked and node in self._bound else []

    def _values_of_assignment(
        self, value: cst.CSTNode, assign: cst.Assign, found: list[cst.CSTNode]
    ) -> list[cst.CSTNode]:
        targets = [bound.target for bound in assign.targets]
        if not all(isinstance(target, (cst.Name, cst.Attribute)) for target in targets):
            return []
        return found if value in found else [*found, value]

    def _is_plain(self, value: cst.CSTNode) -> bool:
        """Whether only names are bound to a value, and only this file's code reads these."""
        assign = self._program.parents.get(value)
        targets = (
            [bound.target for bound in assign.targets] if isinstance(assign, cst.Assign) else []
        )
        if any(isinstance(target, cst.Attribute) for target in targets):
            return False
        return not any(map(self._is_read_otherwise, self._bound.get(value, ())))

    def _is_read_otherwise(self, binding: Binding) -> bool:
        """Whether other files may read a name, or a text that is evaluated shows it."""
        is_top = binding.scope is self._program.scopes.module_scope
        is_read_elsewhere = is_top and self._decision.may_read(binding.name)
        return is_read_elsewhere or self._program.evaluated_texts.show(binding.name)


def _imports_contrib(binding: Binding) -> bool:
    return _is_path_of_contrib(binding.path) or _is_dotted(binding.node)


def _is_dotted(alias: cst.CSTNode) -> bool:
    """Whether an import is `import tensorflow.contrib`, which binds the name of the package."""
    if not isinstance(alias, cst.ImportAlias) or alias.asname is not None:
        return False
    return "." in tree.dotted(alias.name) and _is_path_of_contrib(tree.dotted(alias.name))


def _is_path_of_contrib(path: str) -> bool:
    root = legacy_symbols.root_of(path)
    return root is not None and root.rest == _CONTRIB
