"""The table of the two cross-shard symbols: the original at its last path, or the shim's."""

from __future__ import annotations

from ...rewrite.rename import V1
from ..moves import Move, Moves, Safe

__all__ = ["MOVES"]

_TPU_ONLY = (
    'needs a TPU and fails elsewhere with "No OpKernel"; --to shim gives one that also runs on '
    "GPUs and CPUs"
)


def _row(symbol: str) -> Move:
    return Move(symbol, Safe(f"{V1}.tpu.{symbol}", f"it {_TPU_ONLY}", at_path=f"it {_TPU_ONLY}"))


MOVES = Moves(
    [_row("CrossShardOptimizer"), _row("cross_replica_sum")],
    shim="it also runs on GPUs and CPUs",
)
