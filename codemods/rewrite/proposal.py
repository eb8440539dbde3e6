"""The proposals of rules, which the engine decides about, and the paths that they give symbols."""

from __future__ import annotations

from typing import NamedTuple, Optional

import libcst as cst

from ..model import Group, Safety
from ..resolve.legacy_symbols import Family, Legacy
from ..resolve.places import Place, Reference
from ..resolve.program import Program
from ..resolve.tree import Edit

__all__ = ["FINAL", "SHIM", "V1", "Proposal", "is_renamed", "shim_path"]

SHIM = "tf_lossscale"
V1 = "tensorflow.compat.v1"
FINAL = "tensorflow.keras.mixed_precision"


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


def is_renamed(program: Program, legacy: Legacy) -> bool:
    """Whether a run gives a symbol another path, where a name leads to it."""
    moves = legacy.family is Family.FINAL and program.options.for_keras_3
    goes = not legacy.is_final_path or moves or program.goes_to_shim(legacy.group)
    return bool(legacy.rule) and goes


def shim_path(reference: Reference) -> str:
    """The path in the shim that corresponds to the current path of the reference."""
    legacy = reference.legacy
    namespace = legacy.namespace
    if (
        legacy.family in (Family.V1, Family.CROSS_SHARD)
        and (legacy.root == "v1" or namespace == "mixed_precision")
        and not namespace.startswith("contrib.")
    ):
        # Not for `tf.contrib`, which 1.15 also has under `import tensorflow.compat.v1 as tf`.
        namespace = "compat.v1." + namespace
    if legacy.never_existed and legacy.family is Family.CROSS_SHARD:
        namespace = "compat.v1.tpu"
    if legacy.family is Family.EXPERIMENTAL:
        namespace = "keras.mixed_precision.experimental"
    return f"{SHIM}.{namespace}.{legacy.name}"
