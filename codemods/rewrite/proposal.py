"""The proposal of a rule for one place; the engine decides whether to apply it."""

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
      name: the name of the group, which is the same for all its places.
      needs_all: whether a place that a comment suppresses prevents the others, too.
    """

    name: str
    needs_all: bool = False


class Proposal(NamedTuple):
    """One finding, with its edits.

    Attributes:
      node: the place.
      code: the rule's code.
      symbol: the legacy symbol, as shown in the finding.
      outcome: `safe`, `unsafe` or `manual`; `manual` proposals have no edits.
      message: the change and the reason for it, or what the user must do.
      moves: references, each with the absolute path that replaces it.
      removed: references that the edits remove.
      edits: further edits, each at a node whose children have already been edited.
      group: the group whose places are rewritten together; None if the place stands alone.
      blocks: whether neither this place nor the rest of its group may be rewritten.
      stays: whether the place needs no edit, so that the finding is for information only.
      comment: the text for `--mark`, without line numbers, which comments change; if empty, the
        message.
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
    comment: str = ""
