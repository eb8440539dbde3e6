"""Where the experimental policy API goes: to the final one, or to the shim."""

from __future__ import annotations

from collections.abc import Iterator

from .model import Target
from .moves import FINAL, move, references, shim_path
from .program import Program, Reference
from .proposal import Proposal

__all__ = ["NEVER_EXISTED", "SHIM_MESSAGE", "final_path", "proposals"]

SHIM_MESSAGE = "the shim's policy API does what TensorFlow 2.8's did"
NEVER_EXISTED = "a bug found: the path it had exists in no TensorFlow; "
_NAMES = {"set_policy": "set_global_policy"}


def final_path(reference: Reference) -> str:
    """The final API's twin of a policy symbol."""
    name = reference.legacy.name
    return f"{FINAL}.{_NAMES.get(name, name)}"


def proposals(program: Program, rule: str, message: str) -> Iterator[Proposal]:
    """Moves every reference of `rule`."""
    for reference in references(program, rule, "experimental"):
        bug = NEVER_EXISTED if reference.legacy.never_existed else ""
        if program.options.target is Target.SHIM:
            yield move(program, reference, shim_path(reference), bug + SHIM_MESSAGE)
        else:
            yield move(program, reference, final_path(reference), bug + message)
