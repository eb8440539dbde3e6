"""What a rule proposes at one place; the engine decides whether it is applied."""

from __future__ import annotations

from typing import NamedTuple, Optional

import libcst as cst

from ..model import Safety
from ..resolve.program import Reference
from ..resolve.tree import Edit

__all__ = ["Group", "Proposal"]


class Group(NamedTuple):
    """Places that are rewritten together or not at all.

    Attributes:
      name: equal for all of them.
      needs_all: a place that a comment suppresses holds the others back, too.
    """

    name: str
    needs_all: bool = False


class Proposal(NamedTuple):
    """One finding, with the edits that it stands for.

    Attributes:
      node: the place.
      code: the rule's code.
      symbol: the legacy symbol, as the finding names it.
      outcome: `manual` proposals have no edits.
      message: what is done and why, or what a person must do.
      moves: references, each with the absolute path that it means afterwards.
      removed: references that the edits take away.
      edits: further edits, each at a node; its children are already edited.
      group: the group that it is applied with, or not at all; None: it is applied alone.
      blocks: this place must stay, and so must the rest of its group.
      stays: the place needs no edit; the finding is for information only.
    """

    node: cst.CSTNode
    code: str
    symbol: str
    outcome: Safety
    message: str
    moves: tuple[tuple[Reference, str], ...] = ()
    removed: tuple[Reference, ...] = ()
    edits: tuple[tuple[cst.CSTNode, Edit], ...] = ()
    group: Optional[Group] = None
    blocks: bool = False
    stays: bool = False
