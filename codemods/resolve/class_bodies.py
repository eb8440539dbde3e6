"""Tells which names the body of a class has bound where a statement in it reads them.

Python reads a name of the module until the class has bound it: `tpu = tpu.CrossShardOptimizer`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Optional

import libcst as cst

from .tree import Parents

__all__ = ["ClassBody", "NamesAt"]

_BINDING = (
    cst.AnnAssign, cst.Assign, cst.AugAssign, cst.ClassDef, cst.FunctionDef, cst.Import,
    cst.ImportFrom,
)  # fmt: skip
"""Statements that bind their names whenever they are run."""
_DISPLAYS = (cst.Element, cst.List, cst.Tuple)


class NamesAt(NamedTuple):
    """The names of a class where one statement in its body reads them.

    Attributes:
      unbound: the names that the class binds later, so that the module's are read.
      unsure: the names that it may or may not have bound, as in a branch.
    """

    unbound: frozenset[str]
    unsure: frozenset[str]


class _Bound(NamedTuple):
    """Where the body of a class binds a name.

    Attributes:
      first: the number of the first statement that binds it.
      is_once: whether that statement binds it once.
      always: the number of the first one that binds it whenever it is run; None if none does.
    """

    first: int
    is_once: bool
    always: Optional[int]


class ClassBody:
    """The order in which the statements in the body of a class bind and read its names.

    Args:
      node: the class.
      bound: the nodes that bind each name.
      loads: the names that the body reads, outside of functions and classes in it.
      parents: each node's parent.
    """

    def __init__(
        self,
        node: cst.ClassDef,
        bound: Mapping[str, Sequence[cst.CSTNode]],
        loads: Sequence[cst.Name],
        parents: Parents,
    ) -> None:
        self._parents = parents
        self._statements = list(_statements(node))
        self._numbers = {statement: at for at, statement in enumerate(self._statements)}
        self._deleted = {load.value for load in loads if self._is_deleted(load)}
        read = {load.value for load in loads}.intersection(bound)
        self._bound = {name: self._where_bound(bound[name]) for name in read}
        unbound: dict[int, set[str]] = {}
        unsure: dict[int, set[str]] = {}
        for load in loads:
            if load.value in self._bound and not self._is_deleted(load):
                at = self.statement_of(load)
                if self._is_unbound(load, at):
                    unbound.setdefault(at, set()).add(load.value)
                elif not self._is_bound(load.value, at):
                    unsure.setdefault(at, set()).add(load.value)
        self._names = {
            at: NamesAt(
                frozenset(unbound.get(at, set()) - unsure.get(at, set())),
                frozenset(unsure.get(at, set())),
            )
            for at in {*unbound, *unsure}
        }

    def names_at(self, at: int) -> Optional[NamesAt]:
        """The names that the statement with a number reads before they are bound, if any."""
        return self._names.get(at)

    def statement_of(self, node: cst.CSTNode) -> int:
        """The number of the statement in the body that contains a node."""
        return self._numbers[self._path(node)[-1]]

    def _path(self, node: cst.CSTNode) -> list[cst.CSTNode]:
        """A node and what is around it, up to the statement in the body."""
        path = [node]
        while path[-1] not in self._numbers:
            path.append(self._parents[path[-1]])
        return path

    def _assigns(self, at: int) -> bool:
        """Whether a statement binds a name at all; `name: int` only annotates it."""
        statement = self._statements[at]
        return not isinstance(statement, cst.AnnAssign) or statement.value is not None

    def _where_bound(self, nodes: Sequence[cst.CSTNode]) -> Optional[_Bound]:
        """Where nodes bind a name; None if they only annotate it."""
        numbers = sorted(filter(self._assigns, map(self.statement_of, nodes)))
        if not numbers:
            return None
        always = (at for at in numbers if isinstance(self._statements[at], _BINDING))
        return _Bound(numbers[0], numbers[1:2] != numbers[:1], next(always, None))

    def _is_unbound(self, load: cst.Name, at: int) -> bool:
        """Whether a load is run before anything in the body binds its name."""
        bound = self._bound[load.value]
        if bound is None or at < bound.first:
            return True
        return at == bound.first and bound.is_once and self._is_read_first(load)

    def _is_read_first(self, load: cst.Name) -> bool:
        """Whether a statement runs a load before it binds its name: in a value, a default, a base.

        An annotation is evaluated after its assignment. Other statements have their own order.
        """
        path = self._path(load)
        statement = path[-1]
        if isinstance(statement, (cst.AnnAssign, cst.Assign)):
            return path[-2] is statement.value
        return isinstance(statement, (cst.AugAssign, cst.ClassDef, cst.FunctionDef))

    def _is_bound(self, name: str, at: int) -> bool:
        """Whether an earlier statement has bound a name in any case, and none deletes it."""
        bound = self._bound[name]
        is_earlier = bound is not None and bound.always is not None and bound.always < at
        return is_earlier and name not in self._deleted

    def _is_deleted(self, load: cst.Name) -> bool:
        """Whether a statement deletes the name itself, as in `del tf`."""
        parent = self._parents[load]
        while isinstance(parent, _DISPLAYS):
            parent = self._parents[parent]
        return isinstance(parent, cst.Del)


def _statements(node: cst.ClassDef) -> Iterator[cst.CSTNode]:
    """The statements in the body of a class, also those that share a line."""
    if isinstance(node.body, cst.SimpleStatementSuite):
        yield from node.body.body
        return
    for line in node.body.body:
        if isinstance(line, cst.SimpleStatementLine):
            yield from line.body
        else:
            yield line
