"""Makes one decision for each program and group of symbols: the final API or the shim.

The files of a run that import each other are one program. A group of symbols goes to the shim in
all of it if one place of it needs that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..model import FileFacts, FileResult, Finding, Group, with_followers
from ..resolve.legacy_symbols import is_of_shim, legacy_of, namespace_of, root_of
from .programs import Modules

__all__ = ["decided", "groups_on_shim"]

_STEPS = 20
"""How many modules a name may pass through."""


def groups_on_shim(
    programs: Iterable[Iterable[str]], facts: Mapping[str, FileFacts], compiles: bool
) -> dict[str, frozenset[Group]]:
    """The groups of each file that go to the shim only because of other files of its program.

    Args:
      programs: the files of each program.
      facts: what is known about each file.
      compiles: whether Keras may make or wrap optimizers itself.
    """
    found = {}
    for program in programs:
        known = [file for file in program if file in facts]
        needs = frozenset(group for file in known for group in facts[file].on_shim)
        classes = {name for file in known for name in facts[file].classes}
        if classes >= {"final", "experimental", "tested"}:  # a test would no longer tell them apart
            needs |= {Group.KERAS_OPTIMIZERS}
        needed = with_followers(needs, compiles)
        for file in known:
            found[file] = needed & facts[file].groups
    return found


def decided(
    file: str,
    result: FileResult,
    on_shim: frozenset[Group],
    facts: Mapping[str, FileFacts],
    modules: Modules,
) -> FileResult:
    """The result of a file after the decision about its program.

    Findings about names that come through a module of the run are dropped if that module is
    rewritten, or defines them itself.
    """
    if on_shim:
        largest = max(result.variants, key=len, default=frozenset())
        result = result.variants.get(on_shim) or result.variants.get(largest) or result
    kept = [one for one in result.findings if not _is_settled(one, file, facts, modules)]
    return result._replace(findings=tuple(kept), facts=None, variants={})


def _is_settled(
    finding: Finding, file: str, facts: Mapping[str, FileFacts], modules: Modules
) -> bool:
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
        if bound is None or not bound or not steps:
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
