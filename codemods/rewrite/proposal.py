"""The proposals of rules, which the engine decides about, and the paths that they give symbols."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Optional, Union

import libcst as cst

from ..facts import Decision, Need, When
from ..model import Group, Options, Safety
from ..resolve.legacy_symbols import (
    Family,
    Legacy,
    groups_named,
    legacy_of,
    namespace_of,
    root_of,
)
from ..resolve.places import Place, Reference, Unclear
from ..resolve.tree import Edit

__all__ = [
    "FINAL",
    "SHIM",
    "V1",
    "Obstacle",
    "Proposal",
    "groups_of_place",
    "is_renamed",
    "obstacles_at",
    "shim_path",
    "shown_path",
    "symbol_of",
    "twin_of",
]

SHIM = "tf_lossscale"
V1 = "tensorflow.compat.v1"
FINAL = "tensorflow.keras.mixed_precision"

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
        return made._replace(outcome=Safety.UNSAFE)

    @classmethod
    def moved(cls, reference: Reference, path: str, why: str) -> Optional[Proposal]:
        """The same symbol under its last path; None if the reference has that path already."""
        legacy = reference.legacy
        is_there = not legacy.is_private and not legacy.is_on_shim
        if is_there and legacy.root == "v1" and path == f"{V1}.{legacy.namespace}.{legacy.name}":
            return None
        if is_there and legacy.family is Family.FINAL and not legacy.never_existed:
            return None
        message = f"use {shown_path(path)}; {why}" if why else f"use {shown_path(path)}"
        return cls.safe(reference, message, path=path)

    @classmethod
    def report(cls, node: cst.CSTNode, code: str, symbol: str, guidance: str) -> Proposal:
        """A place that a person must look at; `guidance` says what to do."""
        return cls(node, code, symbol, Safety.MANUAL, guidance)

    @classmethod
    def note(cls, node: cst.CSTNode, code: str, symbol: str, message: str) -> Proposal:
        """A place that is right as it is; the message says why."""
        return cls(node, code, symbol, Safety.SAFE, message, stays=True)


def is_renamed(legacy: Legacy, options: Options, decision: Decision) -> bool:
    """Whether a run gives a symbol another path, where a name leads to it."""
    is_moved_final = legacy.is_keras_optimizer and options.for_keras_3
    goes = not legacy.is_final_path or is_moved_final or decision.goes_to_shim(legacy.group)
    return bool(legacy.rule) and goes and not (legacy.is_on_shim and options.to_shim)


def shim_path(reference: Reference) -> str:
    """The path in the shim that corresponds to the current path of the reference."""
    return _twin(reference.legacy)


def twin_of(path: str) -> str:
    """The path in the shim of what a legacy path names, a symbol or a module."""
    legacy, module = legacy_of(path), namespace_of(path)
    if legacy is not None:
        return _twin(legacy)
    return f"{SHIM}.{module.name}" if module is not None else path


def _twin(legacy: Legacy) -> str:
    """The path of a legacy symbol in the shim."""
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


def groups_of_place(place: Union[Place, Unclear]) -> tuple[Group, ...]:
    """The groups of symbols that a place leads to; a module leads to all groups that it has.

    What comes through another file may be a symbol of each group that has the name.
    """
    if isinstance(place, Unclear):
        return tuple(group for group in Group if group in groups_named(place.name))
    if isinstance(place, Reference):
        return (place.legacy.group,)
    module = namespace_of(place.path)
    if module is None or module.name.startswith("keras"):
        return (Group.KERAS_OPTIMIZERS, Group.POLICIES)
    return (Group(module.family.value),)


def obstacles_at(
    place: Union[Place, Unclear],
    code: str,
    why: str,
    when: When = When.ALWAYS,
    names: tuple[str, ...] = (),
) -> Iterator[Obstacle]:
    """Sends the symbols that a place leads to, of a module all that it has, to the shim."""
    for group in groups_of_place(place):
        need = Need(group, code, symbol_of(place), why, when=when, names=names)
        yield Obstacle(place.node, need)


def symbol_of(place: Union[Place, Unclear]) -> str:
    """The symbol or module that a place leads to, as findings show it."""
    if isinstance(place, Unclear):
        return place.name
    if isinstance(place, Reference):
        return place.legacy.name
    module = namespace_of(place.path)
    return module.name if module is not None else place.path


def shown_path(path: str) -> str:
    """A path as programs write it: `tf.keras...`, `tfls.keras...`."""
    first, _, rest = path.partition(".")
    return f"{'tfls' if first == SHIM else 'tf' if root_of(path) else first}.{rest}"
