"""Runs the native parser on a stack that deep nesting does not overflow.

LibCST's parser recurses in native code: some thousand nested parentheses overflow the eight
megabytes of a main thread's stack and kill the process, and with it the run. Memory of a stack is
taken as far as it is used only.
"""

from __future__ import annotations

import threading
from typing import Callable, TypeVar

__all__ = ["with_deep_stack"]

_STACK = 256 * 1024 * 1024

_T = TypeVar("_T")


def with_deep_stack(function: Callable[[], _T]) -> _T:
    """`function()`, on a thread with a deep stack. What it raises is raised here."""
    results: list[_T] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            results.append(function())
        except BaseException as error:  # handed to the caller
            raised.append(error)

    before = threading.stack_size(_STACK)
    try:
        thread = threading.Thread(target=run)
        thread.start()
    except RuntimeError:  # no memory for such a stack: the usual one does for usual files
        return function()
    finally:
        threading.stack_size(before)
    thread.join()
    if raised:
        raise raised[0]
    return results[0]
