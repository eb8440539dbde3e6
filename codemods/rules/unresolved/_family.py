"""Findings for places whose origin cannot be resolved statically."""

from __future__ import annotations

from collections.abc import Iterator

from ...model import Safety
from ...resolve.legacy_symbols import Family, Legacy
from ...resolve.program import Program
from ...rewrite.proposal import Group, Proposal
from ..groups import KERAS_OPTIMIZERS, group_of

__all__ = ["proposals"]


def proposals(program: Program, why: str, code: str, message: str) -> Iterator[Proposal]:
    """A manual finding for each unclear place of one kind.

    `{name}` and `{through}` in `message` become the name and the module or expression before it.

    If the place may mean a class whose arguments change, that class stays everywhere.
    """
    for unclear in program.unclear:
        if unclear.why == why:
            legacy = unclear.legacy
            yield Proposal(
                node=unclear.node,
                code=code,
                symbol=unclear.name,
                outcome=Safety.MANUAL,
                message=message.format(through=unclear.through, name=unclear.name),
                group=None if legacy is None else _group_of(legacy),
                blocks=legacy is not None and legacy.family is Family.EXPERIMENTAL,
            )


def _group_of(legacy: Legacy) -> Group:
    return KERAS_OPTIMIZERS if legacy.is_keras_optimizer else group_of(legacy)
