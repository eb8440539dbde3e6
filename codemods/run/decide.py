"""Makes one decision for each program and group of symbols: the final API or the shim.

The files of a run that import each other are one program. A group of symbols goes to the shim in
all of it if one place of it needs that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..model import FileFacts, FileResult, Group, with_followers

__all__ = ["decided", "groups_on_shim"]


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


def decided(result: FileResult, on_shim: frozenset[Group]) -> FileResult:
    """The result of a file after the decision about its program."""
    if on_shim:
        largest = max(result.variants, key=len, default=frozenset())
        result = result.variants.get(on_shim) or result.variants.get(largest) or result
    return result._replace(facts=None, variants={})
