"""Finds the references that a rule migrates, and their paths in the shim."""

from __future__ import annotations

from collections.abc import Iterator

from ..resolve.legacy_symbols import Family, Legacy
from ..resolve.places import Reference
from ..resolve.program import Program

__all__ = ["FINAL", "SHIM", "V1", "is_renamed", "references", "shim_path"]

SHIM = "tf_lossscale"
V1 = "tensorflow.compat.v1"
FINAL = "tensorflow.keras.mixed_precision"


def references(program: Program, *codes: str) -> Iterator[Reference]:
    """The references that the rule with these codes migrates."""
    for reference in program.references:
        if reference.legacy.rule in codes:
            yield reference


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
