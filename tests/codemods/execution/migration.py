"""Moves programs through the engine, stage by stage, and says what came of them."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import NamedTuple

from tf_lossscale_codemods.model import Finding, Options, Safety, Target
from verbs import transform_once as transform

from .leftovers import leftovers
from .program import ANY, MANUAL, REWRITTEN, Program

STAGES: Mapping[str, Options] = {
    "shim": Options(target=Target.SHIM),
    "final2": Options(target=Target.FINAL, keras=2),
    "final3": Options(target=Target.FINAL, keras=3),
    "unsafe2": Options(target=Target.FINAL, keras=2, unsafe=True),
    "unsafe3": Options(target=Target.FINAL, keras=3, unsafe=True),
}


class Migrated(NamedTuple):
    """What one stage made of a program: its source after the edits, and what was found."""

    source: str
    findings: tuple[Finding, ...]


def migrated(program: Program, stage: str) -> Migrated:
    """The program after one stage."""
    return migrated_source(program.source, stage)


@functools.lru_cache(maxsize=None)
def migrated_source(source: str, stage: str) -> Migrated:
    """A source after one stage.

    Raises:
      ValueError: if the engine cannot process it.
    """
    result = transform(source.encode(), STAGES[stage])
    if result.error is not None:
        raise ValueError(f"{stage}: {result.error}\n{source}")
    return Migrated(result.source.decode(), result.findings)


def complaints(program: Program, stage: str, result: Migrated) -> list[str]:
    """What is wrong with a migration before anything is run; empty when all is well."""
    expected = program.expects[stage]
    wrong = []
    left = [finding for finding in result.findings if finding.is_left]
    again = migrated_source(result.source, stage)
    if again.source != result.source:
        wrong.append("a second run changes it again")
    new = {one.code for one in again.findings if one.is_left} - {one.code for one in left}
    new |= {one.code for one in again.findings if one.applied}
    wrong += [f"a second run adds {code}" for code in sorted(new)]
    if expected == REWRITTEN:
        # An unsafe rewrite that this stage does not apply is an offer, not something left.
        left = [finding for finding in left if finding.outcome is not Safety.UNSAFE]
        wrong += [f"left: {one.code} {one.outcome.value} {one.message}" for one in left]
        wrong += [f"still used: {path}" for path in leftovers(result.source)]
        wrong += ["nothing was rewritten"] if result.source == program.source else []
    reported = [one for one in result.findings if not one.applied]
    if expected == ANY and not reported and leftovers(result.source):
        wrong.append(f"neither rewritten nor reported: {leftovers(result.source)}")
    if expected == MANUAL and not any(one.outcome is Safety.MANUAL for one in left):
        wrong.append("nothing was reported as manual")
    return wrong
