"""What the grammar hands out: one legacy program and what must become of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

REWRITTEN = "rewritten"
"""Every legacy name must go, safely: nothing is left to do."""
MANUAL = "manual"
"""At least one place must be left and reported as manual."""
ANY = "any"
"""Rewritten or reported; what counts is that the program still computes the same."""


class Program(NamedTuple):
    """One random program. It prints one JSON object: what it did, step by step.

    Attributes:
      name: unique in the bundle; names the family and the number.
      family: which grammar wrote it: `keras`, `traps`, `contrib`, `v1` or `cross_shard`.
      source: the legacy program.
      original: the TensorFlow whose originals say what is right, "1.15", "2.3" or "2.4".
      expects: what must become of it, by stage (`migration.STAGES`). Only the stages named here
        are migrated, so a grammar leaves out a stage that its program has no right answer in.
      ignores: per stage, keys of the result that may differ, as documented.
    """

    name: str
    family: str
    source: str
    original: str
    expects: Mapping[str, str]
    ignores: Mapping[str, tuple[str, ...]]


def indented(lines: Iterable[str], levels: int = 1) -> list[str]:
    """The lines, moved in; empty lines stay empty."""
    return ["    " * levels + line if line else "" for line in lines]
