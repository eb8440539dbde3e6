"""The proposals of rules, which the engine decides about, and the paths that they give symbols."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Optional

import libcst as cst

from ..model import Group, Safety
from ..resolve.legacy_symbols import Family, Legacy, namespace_of, root_of
from ..resolve.places import Place, Reference
from ..resolve.program import Program
from ..resolve.tree import Edit

__all__ = [
    "FINAL",
    "SHIM",
    "V1",
    "Proposal",
    "is_renamed",
    "needs_of_place",
    "shim_path",
    "shown_path",
    "symbol_of",
]

SHIM = "tf_lossscale"
V1 = "tensorflow.compat.v1"
FINAL = "tensorflow.keras.mixed_precision"

Edits = tuple[tuple[cst.CSTNode, Edit], ...]


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
    edits: Edits = ()
    group: Optional[Group] = None
    blocks: bool = False
    stays: bool = False
    through: tuple[str, ...] = ()

    @classmethod
    def safe(
        cls,
        reference: Reference,
        message: str,
        *,
        path: str = "",
        edits: Edits = (),
        removed: tuple[Reference, ...] = (),
        group: Optional[Group] = None,
    ) -> Proposal:
        """A rewrite that keeps the behavior.

        The reference means `path` afterwards, which is empty where it keeps its meaning, or where
        it is among those `removed` by the edits. The group is that of its symbol if it is None.
        """
        legacy = reference.legacy
        if legacy.never_existed:
            message = f"this path never existed in TensorFlow; {message}"
        made = cls(reference.node, legacy.rule, legacy.name, Safety.SAFE, message)
        moves = ((reference, path),) if path else ()
        group = legacy.group if group is None else group
        return made._replace(moves=moves, edits=edits, removed=removed, group=group)

    @classmethod
    def unsafe(cls, reference: Reference, caveat: str, *, path: str, edits: Edits = ()) -> Proposal:
        """A rewrite that `--unsafe` makes; `caveat` says how the behavior can differ."""
        made = cls.safe(reference, caveat, path=path, edits=edits)
        return made._replace(outcome=Safety.UNSAFE)

    @classmethod
    def moved(cls, reference: Reference, path: str, why: str) -> Optional[Proposal]:
        """The same symbol under its last path; None if the reference has that path already."""
        legacy = reference.legacy
        if legacy.root == "v1" and path == f"{V1}.{legacy.namespace}.{legacy.name}":
            return None
        return cls.safe(reference, f"use {shown_path(path)}; {why}", path=path)

    @classmethod
    def needs_shim(cls, reference: Reference, why: str) -> Proposal:
        """A reference that the final API does not fit: its group of symbols goes to the shim."""
        legacy = reference.legacy
        return cls.place_needs_shim(reference.node, legacy.rule, legacy.name, legacy.group, why)

    @classmethod
    def place_needs_shim(
        cls, node: cst.CSTNode, code: str, symbol: str, group: Group, why: str
    ) -> Proposal:
        """Another place that sends a group of symbols to the shim."""
        return cls(node, code, symbol, Safety.SAFE, why, group=group, blocks=True)

    @classmethod
    def report(cls, node: cst.CSTNode, code: str, symbol: str, guidance: str) -> Proposal:
        """A place that a person must look at; `guidance` says what to do."""
        return cls(node, code, symbol, Safety.MANUAL, guidance)


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


def needs_of_place(program: Program, place: Place, code: str, why: str) -> Iterator[Proposal]:
    """Sends the symbols that a place leads to, of a module all that it has, to the shim."""
    if isinstance(place, Reference):
        groups = [place.legacy.group]
    else:
        module = namespace_of(place.path)
        if module is None or module.name.startswith("keras"):
            groups = [Group.KERAS_OPTIMIZERS, Group.POLICIES]
        else:
            groups = [Group(module.family.value)]
    for group in groups:
        if not program.goes_to_shim(group):
            yield Proposal.place_needs_shim(place.node, code, symbol_of(place), group, why)


def symbol_of(place: Place) -> str:
    """The symbol or module that a place leads to, as findings show it."""
    if isinstance(place, Reference):
        return place.legacy.name
    module = namespace_of(place.path)
    return module.name if module is not None else place.path


def shown_path(path: str) -> str:
    """A path as programs write it: `tf.keras...`, `tfls.keras...`."""
    first, _, rest = path.partition(".")
    return f"{'tfls' if first == SHIM else 'tf' if root_of(path) else first}.{rest}"
