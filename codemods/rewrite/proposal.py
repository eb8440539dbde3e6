"""The proposal of a rule for one place; the engine decides whether to apply it."""

from __future__ import annotations

from typing import NamedTuple, Optional

import libcst as cst

from ..model import Group, Safety
from ..resolve.places import Place, Reference
from ..resolve.tree import Edit

__all__ = ["Proposal"]


class Proposal(NamedTuple):
    """One finding, with its edits.

    Attributes:
      node: the place.
      code: the rule's code.
      symbol: the legacy symbol, as shown in the finding.
      outcome: `safe`, `unsafe` or `manual`; `manual` proposals have no edits.
      message: the change and the reason for it, or what the user must do.
      moves: references and modules, each with the absolute path that replaces it.
      removed: references that the edits remove.
      edits: further edits, each at a node whose children have already been edited.
      group: the symbols that are decided together with it; None if the place stands alone.
      blocks: whether the final API is not possible here, so that the group goes to the shim.
      stays: whether the place needs no edit, so that the finding is for information only.
      through: the paths of names that come through another module; see `Finding`.
    """

    node: cst.CSTNode
    code: str
    symbol: str
    outcome: Safety
    message: str
    moves: tuple[tuple[Place, str], ...] = ()
    removed: tuple[Reference, ...] = ()
    edits: tuple[tuple[cst.CSTNode, Edit], ...] = ()
    group: Optional[Group] = None
    blocks: bool = False
    stays: bool = False
    through: tuple[str, ...] = ()
