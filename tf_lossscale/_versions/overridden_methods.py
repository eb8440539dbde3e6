"""Replaces methods of objects for the duration of a block."""

import contextlib
from typing import Any, Callable, Iterator, Sequence

__all__ = ["is_overridden", "overridden"]


@contextlib.contextmanager
def overridden(
    owners: Sequence[Any], method: str, replacement: Callable[[Any], Any]
) -> Iterator[None]:
    """Replaces a method of each owner by `replacement(owner)`, within the block.

    Blocks may be nested or overlap, because the replicas of a process take turns while a step is
    built: the method is restored when the last block is left.

    Args:
      owners: the objects.
      method: name of the method.
      replacement: takes an owner, and returns the function to call instead, without `self`.
    """
    depth = _depth(method)
    for owner in owners:
        own = vars(owner)
        own[depth] = own.get(depth, 0) + 1
        if own[depth] == 1:
            own[method] = replacement(owner)
    try:
        yield
    finally:
        for owner in owners:
            own = vars(owner)
            own[depth] -= 1
            if own[depth] == 0:
                del own[depth], own[method]


def is_overridden(owner: Any, method: str) -> bool:
    """Returns whether this is within `overridden([..., owner, ...], method, ...)`."""
    return _depth(method) in vars(owner)


def _depth(method: str) -> str:
    return "_tfls_overrides_of_" + method
