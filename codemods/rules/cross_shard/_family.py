"""Where the two cross-shard symbols go: the surviving path of the original, or the shim."""

from __future__ import annotations

from collections.abc import Iterator

from ...model import Safety, Target
from ...resolve.program import Program, Reference
from ...rewrite.proposal import Proposal
from ...rewrite.rename import V1, move, references, shim_path

__all__ = ["proposals"]

_SHIM = "the shim's runs on GPUs and CPUs too"
_TPU_ONLY = (
    'it needs a TPU and fails elsewhere with "No OpKernel"; --to shim gives one that runs on GPUs '
    "and CPUs too"
)
_FINAL = f"TensorFlow's own under its last path; {_TPU_ONLY}"
_STAYS = f"TensorFlow's own, at its last path already; {_TPU_ONLY}"
_BUG = "a bug found: the path it had exists in no TensorFlow; "


def proposals(program: Program, rule: str) -> Iterator[Proposal]:
    """Moves every reference of `rule` that is not there yet, and reports what needs a TPU."""
    for reference in references(program, rule):
        bug = _BUG if reference.legacy.never_existed else ""
        if program.options.target is Target.SHIM:
            yield move(program, reference, shim_path(reference), bug + _SHIM)
        elif not _is_final(reference):
            path = f"{V1}.tpu.{reference.legacy.name}"
            yield move(program, reference, path, bug + _FINAL)
        else:
            yield Proposal(
                node=reference.node,
                code=rule,
                symbol=reference.legacy.name,
                outcome=Safety.SAFE,
                message=_STAYS,
                stays=True,
            )


def _is_final(reference: Reference) -> bool:
    legacy = reference.legacy
    return legacy.root == "v1" and legacy.namespace == "tpu" and not legacy.never_existed
