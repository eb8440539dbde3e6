"""Refuses the methods by which an optimizer around our class would step without the loss scale."""

import sys
from types import FrameType
from typing import Any, Callable, Optional, Sequence, Type

from tf_lossscale._types import Class, Method, Optimizer
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
    @do_not_convert
    def refuse(self: Any, *args: object, **kwargs: object) -> None:
        outer = _optimizer_around(self)
        reason = "would apply gradients that are not tested, and never update the loss scale"
        if outer is None:
            raise error(
                f"{prefix}{method}() of a loss-scale optimizer {reason}: call apply_gradients()."
            )
        inner = vars(self).get("_optimizer", vars(self).get("_opt"))
        names = type(outer).__name__, type(inner).__name__
        raise error(
            f"{prefix}{names[0]} calls {method}() of the loss-scale optimizer inside it, which "
            f"{reason}: put the loss-scale optimizer outside, as in LossScaleOptimizer("
            f"{names[0]}({names[1]}(...)))."
        )

    refuse.__name__, refuse.__qualname__ = method, f"LossScaleOptimizer.{method}"
    vars(refuse)[_MARK] = True
    return refuse


def _optimizer_around(wrapper: Optimizer) -> Optional[Optimizer]:
    """Returns the optimizer one of whose methods has called a method of `wrapper`, or None."""
    frame: Optional[FrameType] = sys._getframe(2)
    while frame is not None:
        caller = frame.f_locals.get("self")
        if caller is not wrapper and callable(getattr(type(caller), "apply_gradients", None)):
            return caller
        frame = frame.f_back
    return None
