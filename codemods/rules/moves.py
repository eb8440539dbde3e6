"""The tables of moves: where each symbol of a family goes, for the rules without logic."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, Optional, Union

import libcst as cst

from ..model import Safety, Target
from ..resolve.instance_checks import tests_unknown_instance
from ..resolve.program import Program, Reference
from ..resolve.tree import Edit
from ..rewrite.arguments import with_renamed
from ..rewrite.proposal import Group, Proposal
from ..rewrite.rename import SHIM, V1, references, shim_path
from .findings import manual, safe, unsafe

__all__ = ["Manual", "Move", "Moves", "Safe", "Unsafe"]

_MADE_ELSEWHERE = (
    "this test is False for an instance of TensorFlow's own class, and where the tested value is "
    "made cannot be determined from this file: test for both classes"
)


class Safe(NamedTuple):
    """The same symbol has another path.

    Attributes:
      path: its absolute path.
      message: why, which the finding says after the path.
      at_path: what a finding says where the symbol has this path already; empty: there is none.
    """

    path: str
    message: str
    at_path: str = ""


class Unsafe(NamedTuple):
    """A similar symbol, written with `--unsafe` only; otherwise the shim's is.

    Attributes:
      path: its absolute path.
      renames: each parameter of the legacy symbol, in order, with its new name; None: it goes.
      caveat: how the behavior can differ.
    """

    path: str
    renames: Mapping[str, Optional[str]]
    caveat: str


class Manual(NamedTuple):
    """No symbol takes its place; `guidance` says what to do instead."""

    guidance: str


class Move(NamedTuple):
    """One row: a symbol and where `--to final` takes it; None: to the shim, too."""

    symbol: str
    final: Union[Safe, Unsafe, Manual, None]


class Moves:
    """The table of one family. A family with more to decide overrides `proposals`.

    Example:
      >>> moves = Moves(
      ...     [Move("LossScale", Manual("subclass nothing"))], shim="it behaves as in 2.21"
      ... )
      >>> moves["LossScale"].final.guidance
      'subclass nothing'
    """

    def __init__(self, rows: Iterable[Move], shim: str) -> None:
        """Makes the table.

        Args:
          rows: one for each symbol.
          shim: why to use the shim's symbols, which a finding says after their path.
        """
        self._rows = {row.symbol: row for row in rows}
        self._shim = shim

    def __getitem__(self, symbol: str) -> Move:
        """The row of a symbol."""
        if symbol not in self._rows:
            raise KeyError(f"{symbol} has no row in MOVES of its family")
        return self._rows[symbol]

    def check(self, program: Program, code: str) -> Iterator[Proposal]:
        """The proposals of the rule `code`."""
        for reference in references(program, code):
            yield from self.proposals(program, reference)

    def proposals(self, program: Program, reference: Reference) -> Iterator[Proposal]:
        """What becomes of one reference: a proposal, or none where it may stay."""
        if program.options.target is Target.SHIM:
            yield self.to_shim_of(program, reference)
        else:
            yield from self.to_final(program, reference)

    def to_shim_of(
        self, program: Program, reference: Reference, group: Optional[Group] = None
    ) -> Proposal:
        """The shim's twin of the symbol; unsafe in a test on a value that may be TensorFlow's.

        Evidence for safe in a test such as `isinstance`: every value that is tested is made in
        this program by a class that is known. The program then makes the shim's instances.
        """
        proposal = self.to_shim(reference, group)
        if tests_unknown_instance(program, reference):
            return proposal._replace(outcome=Safety.UNSAFE, message=_MADE_ELSEWHERE)
        return proposal

    def to_shim(self, reference: Reference, group: Optional[Group] = None) -> Proposal:
        """The shim's twin of the symbol."""
        return _moved(reference, shim_path(reference), self._shim, group)

    def to_shim_if_not_there(
        self, reference: Reference, group: Optional[Group] = None
    ) -> Iterator[Proposal]:
        """The same; none where the symbol is the shim's already."""
        if not reference.legacy.is_on_shim:
            yield self.to_shim(reference, group)

    def to_final(
        self, program: Program, reference: Reference, group: Optional[Group] = None
    ) -> Iterator[Proposal]:
        """What the row of the symbol says; none where the symbol is there already."""
        final = self[reference.legacy.name].final
        if isinstance(final, Manual):
            yield manual(reference, final.guidance, group=group)
        elif isinstance(final, Unsafe) and program.options.unsafe:
            call = program.call_of(reference.node)
            edits = ((call, _renaming(final)),) if call is not None else ()
            yield unsafe(reference, final.caveat, path=final.path, edits=edits, group=group)
        elif not isinstance(final, Safe):
            yield from self.to_shim_if_not_there(reference, group)
        elif not _is_at(reference, final.path):
            yield _moved(reference, final.path, final.message, group)
        elif final.at_path:
            yield safe(reference, final.at_path)._replace(stays=True, group=None)


def _moved(reference: Reference, path: str, why: str, group: Optional[Group]) -> Proposal:
    shown = path.replace(f"{SHIM}.", "tfls.").replace("tensorflow.", "tf.")
    return safe(reference, f"use {shown}; {why}", path=path, group=group)


def _is_at(reference: Reference, path: str) -> bool:
    legacy = reference.legacy
    return legacy.root == "v1" and path == f"{V1}.{legacy.namespace}.{legacy.name}"


def _renaming(final: Unsafe) -> Edit:
    def renamed(node: cst.CSTNode) -> cst.CSTNode:
        assert isinstance(node, cst.Call)
        return with_renamed(node, final.renames)

    return renamed
