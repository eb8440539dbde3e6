"""What a rule asks for at one place; the engine decides whether all of it can be had."""

from __future__ import annotations

from typing import NamedTuple

import libcst as cst

from ..model import Outcome
from ..resolve.program import Reference
from ..resolve.tree import Edit

__all__ = ["Proposal"]


class Proposal(NamedTuple):
    """One finding, with the edits that it stands for.

    Attributes:
      node: the place.
      code: the rule's code.
      symbol: the legacy symbol, as the finding names it.
      outcome: `manual` proposals have no edits.
      message: what is or would be done and why, or what a person must do.
      moves: references and the absolute path that each shall mean afterwards.
      gone: references that the edits take away.
      edits: further edits, each at a node; its children are already edited.
      group: proposals of one group are applied together or not at all.
      blocks: as this place must stay, so must the rest of its group.
      stays: the place needs no edit; a `safe` finding only says what to know about it.
    """

    node: cst.CSTNode
    code: str
    symbol: str
    outcome: Outcome
    message: str
    moves: tuple[tuple[Reference, str], ...] = ()
    gone: tuple[Reference, ...] = ()
    edits: tuple[tuple[cst.CSTNode, Edit], ...] = ()
    group: str = ""
    blocks: bool = False
    stays: bool = False
