"""The proposals of rules, which the engine decides about, and the places that need the shim."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Optional, Union

import libcst as cst

from ..facts import Need, When
from ..model import Group, Safety
from ..resolve.legacy_symbols import Legacy, shown_path
from ..resolve.places import NamespaceUse, Place, Reference, Unclear
from ..resolve.tree import Edit

__all__ = ["Edits", "Obstacle", "Proposal"]

Edits = tuple[tuple[cst.CSTNode, Edit], ...]


class Obstacle(NamedTuple):
    """A place that the final API does not fit.

    Attributes:
      node: the place.
      need: what it needs; the engine fills in the line and the column.
    """

    node: cst.CSTNode
    need: Need

    @classmethod
    def at(
        cls, reference: Reference, why: str, when: When = When.ALWAYS, names: tuple[str, ...] = ()
    ) -> Obstacle:
        """A reference of which the group of symbols goes to the shim."""
        legacy = reference.legacy
        need = Need(legacy.group, legacy.rule, legacy.name, why, when=when, names=names)
        return cls(reference.node, need)

    @classmethod
    def of_place(
        cls,
        place: Union[Place, Unclear],
        code: str,
        why: str,
        when: When = When.ALWAYS,
        names: tuple[str, ...] = (),
    ) -> Iterator[Obstacle]:
        """Sends the symbols that a place leads to, of a module all that it has, to the shim."""
        for group in place.groups:
            yield cls(place.node, Need(group, code, place.symbol, why, when=when, names=names))

    @classmethod
    def of_legacy(cls, node: cst.CSTNode, code: str, legacy: Legacy, why: str) -> Obstacle:
        """A place that may mean a legacy symbol, whose group goes to the shim."""
        return cls(node, Need(legacy.group, code, legacy.name, why))

    @classmethod
    def of_contrib(cls, node: cst.CSTNode, code: str, symbol: str, why: str) -> Obstacle:
        """A place for which the symbols of `tf.contrib.mixed_precision` go to the shim."""
        return cls(node, Need(Group.CONTRIB, code, symbol, why))

    @classmethod
    def of_optimizers(
        cls, node: cst.CSTNode, code: str, symbol: str, why: str, when: When = When.ALWAYS
    ) -> Obstacle:
        """A place for which the Keras optimizers go to the shim."""
        return cls(node, Need(Group.KERAS_OPTIMIZERS, code, symbol, why, when=when))

    @classmethod
    def of_policies(
        cls, node: cst.CSTNode, code: str, symbol: str, why: str, when: When = When.ALWAYS
    ) -> Obstacle:
        """A place for which the policies go to the shim."""
        return cls(node, Need(Group.POLICIES, code, symbol, why, when=when))


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
      stays: whether the place needs no edit, so that the finding is for information only.
      through: the paths of names that come through other files; where these are right after the
        rewrite of those files, there is nothing to report.
      beside: the nodes of places that must move, too; where one of them keeps its symbol, there is
        nothing to do.
    """

    node: cst.CSTNode
    code: str
    symbol: str
    outcome: Safety
    message: str
    moves: tuple[tuple[Place, str], ...] = ()
    removed: tuple[Reference, ...] = ()
    edits: Edits = ()
    stays: bool = False
    through: tuple[str, ...] = ()
    beside: frozenset[cst.CSTNode] = frozenset()

    @classmethod
    def safe(
        cls,
        reference: Reference,
        message: str,
        *,
        path: str = "",
        edits: Edits = (),
        removed: tuple[Reference, ...] = (),
    ) -> Proposal:
        """A rewrite that keeps the behavior.

        The reference means `path` afterwards, which is empty where it keeps its meaning, or where
        it is among those `removed` by the edits.
        """
        legacy = reference.legacy
        if legacy.never_existed:
            message = f"this path never existed in TensorFlow; {message}"
        moves = ((reference, path),) if path else ()
        made = cls(reference.node, legacy.rule, legacy.name, Safety.SAFE, message)
        return made._replace(moves=moves, edits=edits, removed=removed)

    @classmethod
    def unsafe(cls, reference: Reference, caveat: str, *, path: str, edits: Edits = ()) -> Proposal:
        """A rewrite that `--unsafe` makes; `caveat` says how the behavior can differ."""
        made = cls.safe(reference, caveat, path=path, edits=edits)
        return made.as_unsafe(made.message)

    @classmethod
    def moved(cls, reference: Reference, path: str, why: str) -> Optional[Proposal]:
        """The same symbol under its last path; None if the reference has that path already."""
        legacy = reference.legacy
        is_there = not legacy.is_private and not legacy.is_on_shim
        v1_path = f"tensorflow.compat.v1.{legacy.namespace}.{legacy.name}"
        if is_there and legacy.root == "v1" and path == v1_path:
            return None
        if is_there and legacy.is_of_final_api and not legacy.never_existed:
            return None
        return cls.safe(reference, _use(path, why), path=path)

    @classmethod
    def to_shim(cls, reference: Reference, why: str) -> Proposal:
        """The same symbol in the shim."""
        path = reference.legacy.twin
        return cls.safe(reference, _use(path, why), path=path)

    @classmethod
    def module_to_shim(cls, use: NamespaceUse, code: str) -> Proposal:
        """The module of this name in the shim."""
        path = use.module.twin
        made = cls(use.node, code, use.path, Safety.SAFE, _use(path))
        return made._replace(moves=((use, path),))

    @classmethod
    def edited(
        cls,
        node: cst.CSTNode,
        code: str,
        symbol: str,
        message: str,
        edits: Edits,
        removed: tuple[Reference, ...] = (),
    ) -> Proposal:
        """Edits that keep the behavior, at a place that keeps its symbol."""
        made = cls(node, code, symbol, Safety.SAFE, message)
        return made._replace(edits=edits, removed=removed)

    @classmethod
    def report(cls, node: cst.CSTNode, code: str, symbol: str, guidance: str) -> Proposal:
        """A place that a person must look at; `guidance` says what to do."""
        return cls(node, code, symbol, Safety.MANUAL, guidance)

    @classmethod
    def note(cls, node: cst.CSTNode, code: str, symbol: str, message: str) -> Proposal:
        """A place that is right as it is; the message says why."""
        return cls(node, code, symbol, Safety.SAFE, message, stays=True)

    def as_unsafe(self, caveat: str) -> Proposal:
        """The same edits, which only `--unsafe` makes; `caveat` is the message."""
        return self._replace(outcome=Safety.UNSAFE, message=caveat)


def _use(path: str, why: str = "") -> str:
    """The message for a place that gets another path."""
    return f"use {shown_path(path)}; {why}" if why else f"use {shown_path(path)}"
