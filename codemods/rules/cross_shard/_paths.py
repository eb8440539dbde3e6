"""The last path of the two cross-shard symbols, which need a TPU there, or the shim's."""

from __future__ import annotations

from collections.abc import Iterator

from ...resolve.program import Program
from ...rewrite.proposal import Proposal
from ...rewrite.rename import V1, references
from ..findings import moved, safe, unsafe

__all__ = ["to_last_path"]

_NEEDS_TPU = 'it needs a TPU and fails elsewhere with "No OpKernel"'
_TPU_ONLY = f"{_NEEDS_TPU}; --to shim gives one that also runs on GPUs and CPUs"
_ON_SHIM = "left on the shim, where it also runs on GPUs and CPUs; tf.compat.v1.tpu.{} needs a TPU"


def to_last_path(program: Program, code: str) -> Iterator[Proposal]:
    """Proposes the last path; a note where the symbol is there, or on the shim."""
    for reference in references(program, code):
        name = reference.legacy.name
        path = f"{V1}.tpu.{name}"
        if reference.legacy.is_on_shim and program.options.unsafe:
            caveat = f"{_NEEDS_TPU}; the shim's also runs on GPUs and CPUs"
            yield unsafe(reference, caveat, path=path)
        elif reference.legacy.is_on_shim:
            yield safe(reference, _ON_SHIM.format(name))._replace(stays=True)
        else:
            made = moved(program, reference, path, _TPU_ONLY)
            yield made or safe(reference, _TPU_ONLY)._replace(stays=True)
