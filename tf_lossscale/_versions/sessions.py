"""Runs something before each call of `Session.run`."""

import functools
from typing import Any, Callable

from tf_lossscale._versions.base import first_module

__all__ = ["before_each_run", "remote_target"]

_session: Any = first_module("tensorflow.python.client.session")


def before_each_run(first: Callable[[Any], None]) -> Callable[[], None]:
    """Has `first` called with the Session before each run, also by `make_callable`.

    Every run first passes new operations of the graph on, by this private method.

    Args:
      first: what to call; an error that it raises ends the run.

    Returns:
      A function that ends this.
    """
    cls = _session.BaseSession
    original = cls._extend_graph

    @functools.wraps(original)
    def extend(session: Any) -> Any:
        first(session)
        return original(session)

    cls._extend_graph = extend

    def undo() -> None:
        if cls._extend_graph is extend:
            cls._extend_graph = original

    return undo


def remote_target(session: Any) -> str:
    """Returns the address of the server that a Session runs on; empty if it is this process."""
    target = session.sess_str
    return target.decode() if isinstance(target, bytes) else str(target)
