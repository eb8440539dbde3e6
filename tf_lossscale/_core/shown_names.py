"""Gives private classes the names under which programs know them, for Python's own messages."""

import inspect
from typing import Any, Callable

from tf_lossscale._types import Class


def methods_shown_as(name: str) -> Callable[[Any], Any]:
    """Returns a class decorator that lets errors name the methods after the public class `name`.

    Python 3.10 and later name a function in the error for wrong arguments, as in
    `LossScaleOptimizer.apply_gradients() missing 1 required positional argument`.
    """

    def decorate(cls: Class) -> Class:
        for method, value in vars(cls).items():
            function = value.fget if isinstance(value, property) else value
            function = getattr(function, "__func__", function)  # of a class method
            is_own = getattr(function, "__qualname__", "").startswith(cls.__qualname__ + ".")
            while is_own and inspect.isfunction(function):
                function.__qualname__ = f"{name}.{method}"
                function = vars(function).get("__wrapped__")
        return cls

    return decorate
