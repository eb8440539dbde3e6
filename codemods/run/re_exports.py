"""Whether a name that comes through another module of the run is right after the rewrite."""

from __future__ import annotations

from collections.abc import Mapping

from ..model import FileFacts, Finding
from ..resolve.legacy_symbols import is_of_shim, legacy_of, namespace_of, root_of
from .programs import Modules

__all__ = ["is_settled"]

_STEPS = 20
"""How many modules a name may pass through."""


def is_settled(
    finding: Finding, file: str, facts: Mapping[str, FileFacts], modules: Modules
) -> bool:
    """Whether modules of the run bind all names of a finding, and are rewritten or right as is."""
    return bool(finding.through) and all(
        _is_known(path, file, facts, modules, _STEPS) for path in finding.through
    )


def _is_known(
    path: str, file: str, facts: Mapping[str, FileFacts], modules: Modules, steps: int
) -> bool:
    """Whether what a path means is bound in the run, and right after the rewrite of its module."""
    parts = path.split(".")
    for end in range(len(parts) - 1, 0, -1):
        head = ".".join(parts[:end])
        module = modules.find(head, file) if head.strip(".") or end > 1 else None
        if module is None:
            continue
        known = facts.get(module)
        bound = known.bound.get(parts[end]) if known is not None else None
        if not bound or not steps:
            return False
        return all(
            _is_right(meaning, parts[end + 1 :], module, facts, modules, steps - 1)
            for meaning in bound
        )
    return False


def _is_right(
    meaning: str,
    rest: list[str],
    module: str,
    facts: Mapping[str, FileFacts],
    modules: Modules,
    steps: int,
) -> bool:
    if meaning.startswith("<"):
        return meaning == "<local>"
    if is_of_shim(meaning):
        return True
    if root_of(meaning) is None:
        return _is_known(".".join([meaning, *rest]), module, facts, modules, steps)
    if not rest:
        return legacy_of(meaning) is not None
    space = namespace_of(meaning)
    return space is not None and (space.is_final or "mixed_precision" in space.name)
