"""Refuses the methods by which an optimizer around our class would step without the loss scale."""

from typing import Any, Callable, Sequence, Type

from tf_lossscale._types import Class, Method
from tf_lossscale._versions.base import do_not_convert

_MARK = "_refuses_updates"


def is_refused(method: Method) -> bool:
    """Returns whether a method of one of our classes only raises an error, and is not an API."""
    return _MARK in getattr(method, "__dict__", {})


def refuse_updates(
    methods: Sequence[str], error: Type[Exception], prefix: str = ""
) -> Callable[[Any], Any]:
    """Returns a class decorator that makes methods raise an error which says what to write.

    Args:
      methods: their names, of `UPDATE_METHODS`.
      error: the type of the error, as of TensorFlow's class.
      prefix: what its message begins with.
    """

    def decorate(cls: Class) -> Class:
        for method in methods:
            setattr(cls, method, _refusing(method, error, prefix))
        return cls

    return decorate


def _refusing(method: str, error: Type[Exception], prefix: str) -> Any:
    """Returns a method that raises the error, and looks like the method of this name."""

    @do_not_convert
    def refuse(self: Any, *args: object, **kwargs: object) -> None:
        inner = vars(self).get("_optimizer", vars(self).get("_opt"))
        raise error(
            f"{prefix}{method}() of a loss-scale optimizer would apply gradients that are not "
            "tested, and never update the loss scale: call apply_gradients(); or if another "
            "optimizer makes this call, put the loss-scale optimizer outside of it, as in "
            f"LossScaleOptimizer(TheOtherOptimizer({type(inner).__name__}(...)))."
        )

    refuse.__name__, refuse.__qualname__ = method, f"LossScaleOptimizer.{method}"
    vars(refuse)[_MARK] = True
    return refuse
