"""Runs something after each call of a `tf.function` from eager mode."""

import functools
from typing import Any, Callable

from tf_lossscale._versions.base import do_not_convert, tf

__all__ = ["after_each_call"]


def after_each_call(then: Callable[[], None]) -> Callable[[], None]:
    """Has `then` called after each call of any `tf.function`, outside graphs.

    There is no public hook; the class of all such functions is the same.

    Args:
      then: what to call.

    Returns:
      A function that ends this.
    """
    cls: Any = type(tf.function(lambda: None))
    original = cls.__call__

    @functools.wraps(original)
    def call(function: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(function, *args, **kwargs)
        if tf.executing_eagerly():
            then()
        return result

    ours = do_not_convert(call)
    cls.__call__ = ours

    def undo() -> None:
        if cls.__call__ is ours:
            cls.__call__ = original

    return undo
