"""Runs a function on a large stack, so that the parser can handle deeply nested source.

LibCST's parser recurses in native code: a few thousand nested parentheses overflow the main
thread's stack of 8 MB and kill the process. A larger stack costs memory only where it is used.
"""

from __future__ import annotations

import threading
from typing import Callable, TypeVar

__all__ = ["with_deep_stack"]

_STACK = 256 * 1024 * 1024

_T = TypeVar("_T")


def with_deep_stack(function: Callable[[], _T]) -> _T:
    """Calls `function` on a thread with a large stack; returns or raises what it does."""
    results: list[_T] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            results.append(function())
        except BaseException as error:  # raised again in the calling thread
            raised.append(error)

    before = threading.stack_size(_STACK)
    try:
        thread = threading.Thread(target=run)
        thread.start()
    except RuntimeError:  # no memory for it: most files need only the default stack
        return function()
    finally:
        threading.stack_size(before)
    thread.join()
    if raised:
        raise raised[0]
    return results[0]
