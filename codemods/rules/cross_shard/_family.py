"""The table of the two cross-shard symbols: the original at its last path, or the shim's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Optional

from ...resolve.program import Program, Reference
from ...rewrite.proposal import Group, Proposal
from ...rewrite.rename import V1
from ..findings import safe, unsafe
from ..moves import Move, Moves, Safe

__all__ = ["MOVES"]

_NEEDS_TPU = 'it needs a TPU and fails elsewhere with "No OpKernel"'
_TPU_ONLY = f"{_NEEDS_TPU}; --to shim gives one that also runs on GPUs and CPUs"


def _row(symbol: str) -> Move:
    return Move(symbol, Safe(f"{V1}.tpu.{symbol}", _TPU_ONLY, at_path=_TPU_ONLY))


_ON_SHIM = "left on the shim, where it also runs on GPUs and CPUs; tf.compat.v1.tpu.{} needs a TPU"


class _CrossShardMoves(Moves):
    """What runs on GPUs and CPUs, as the shim's symbols do, leaves them with `--unsafe` only."""

    def to_final(
        self, program: Program, reference: Reference, group: Optional[Group] = None
    ) -> Iterator[Proposal]:
        """The original at its last path; on the shim, a note."""
        name = reference.legacy.name
        if not reference.legacy.is_on_shim:
            yield from super().to_final(program, reference, group)
        elif program.options.unsafe:
            caveat = f"{_NEEDS_TPU}; the shim's also runs on GPUs and CPUs"
            yield unsafe(reference, caveat, path=f"{V1}.tpu.{name}", group=group)
        else:
            yield safe(reference, _ON_SHIM.format(name))._replace(stays=True, group=None)


MOVES = _CrossShardMoves(
    [_row("CrossShardOptimizer"), _row("cross_replica_sum")],
    shim="it also runs on GPUs and CPUs",
)
