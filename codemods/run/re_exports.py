"""Whether names that come through other modules of the run are right after the rewrite."""

from __future__ import annotations

from collections.abc import Mapping

from ..model import FileFacts, Finding
from ..resolve.legacy_symbols import is_of_shim, legacy_of, namespace_of, root_of
from ..resolve.qualified_names import LOCAL
from .programs import Modules

__all__ = ["ReExports"]

_STEPS = 20
"""How many modules a name may pass through."""


class ReExports:
    """What the modules of a run bind.

    Args:
      facts: what is known about files, by their absolute paths.
      modules: finds the module that an import names.
    """

    def __init__(self, facts: Mapping[str, FileFacts], modules: Modules) -> None:
        self._facts = facts
        self._modules = modules

    def settle(self, finding: Finding, file: str) -> bool:
        """Whether modules bind all names of a finding, and are rewritten or right as they are."""
        return bool(finding.through) and all(
            self._is_known(path, file, _STEPS) for path in finding.through
        )

    def _is_known(self, path: str, file: str, steps: int) -> bool:
        """Whether what a path means is bound in a module, and right after its rewrite."""
        parts = path.split(".")
        for end in range(len(parts) - 1, 0, -1):
            head = ".".join(parts[:end])
            module = self._modules.find(head, file) if head.strip(".") or end > 1 else None
            if module is not None:
                bound = self._facts.get(module, FileFacts()).bound.get(parts[end], ())
                rest = parts[end + 1 :]
                return bool(bound and steps) and all(
                    self._is_right(meaning, rest, module, steps - 1) for meaning in bound
                )
        return False

    def _is_right(self, meaning: str, rest: list[str], module: str, steps: int) -> bool:
        if meaning.startswith("<"):
            return meaning == LOCAL
        if is_of_shim(meaning):
            return True
        if root_of(meaning) is None:
            return self._is_known(".".join([meaning, *rest]), module, steps)
        if not rest:
            return legacy_of(meaning) is not None
        space = namespace_of(meaning)
        return space is not None and (space.is_final or "mixed_precision" in space.name)
