"""Lets `Model.compile` wrap optimizers in our class.

Under `mixed_float16` `compile` wraps an optimizer that does not scale the loss. Where the class at
the public path is ours, the wrapper must be ours as well, or a `train_step` that scales the loss of
a `LossScaleOptimizer` would find that the optimizer is none.
"""

import importlib
import sys
from types import ModuleType
from typing import Any, Optional

from tf_lossscale import _namespace, _paths
from tf_lossscale._versions.compilers import StandIn

__all__ = ["is_stand_in", "stand_in"]

_FINAL = _paths.NAMESPACES["keras.mixed_precision"]["LossScaleOptimizer"]
_EXPERIMENTAL = _paths.NAMESPACES["keras.mixed_precision.experimental"]["LossScaleOptimizer"]

# What `compile` names; up to TensorFlow 2.3 the class of the first name was the experimental one.
_NAMES = ("LossScaleOptimizer", "BaseLossScaleOptimizer", "LossScaleOptimizerV1")


def stand_in(value: Any, always: bool) -> Optional[Any]:
    """Returns what takes the place of such a global variable, so that optimizers become ours.

    Args:
      value: its value: a class, or the module of the classes.
      always: whether all optimizers become ours, and not only those under an experimental policy of
        ours, which says how to scale.

    Returns:
      The stand-in; None where none is needed, as this Keras has experimental policies of its own.
    """
    if isinstance(value, StandIn):
        value = value.installed
    if not isinstance(value, ModuleType):
        return _Class(value, always)
    needed = always or hasattr(value, "BaseLossScaleOptimizer")  # from TensorFlow 2.9 on
    return _Module(value, always) if needed else None


def is_stand_in(value: Any, always: bool) -> bool:
    """Returns whether `value` is from `stand_in`, and makes no fewer optimizers ours."""
    return isinstance(value, StandIn) and value.always >= always


class _Module(StandIn):
    """A module of Keras's loss-scale classes, but for these classes."""

    def __init__(self, installed: ModuleType, always: bool) -> None:
        super().__init__(installed, always)
        for name in _NAMES:
            if hasattr(installed, name):
                setattr(self, name, _Class(getattr(installed, name), always))


class _Class(StandIn):
    """Stands for a loss-scale class: makes optimizers of ours, and knows those of both."""

    def __instancecheck__(self, instance: Any) -> bool:
        return isinstance(instance, self.installed)  # ours are, too

    def __call__(self, optimizer: Any, *loss_scale: Any, **options: Any) -> Any:
        """Wraps an optimizer in our class; those that our class does not take, in Keras's own.

        Args:
          optimizer: the optimizer that `compile` was given.
          *loss_scale: that of an experimental policy, which the experimental class takes.
          **options: the name, in Keras 3.
        """
        # Late, because it imports TensorFlow.
        ours: Any = importlib.import_module("tf_lossscale._keras.compiled")
        policy = ours.experimental_policy(sys._getframe(1).f_locals.get("self"))
        if not ours.takes(optimizer) or not (self.always or policy):
            return self.installed(optimizer, *loss_scale, **options)
        if policy is not None:
            if not policy.scales:
                return optimizer
            loss_scale = (policy.loss_scale_of_compile,)
        ours.forget_earlier_wrapper(optimizer)
        return _namespace.load(_EXPERIMENTAL if loss_scale else _FINAL)(optimizer, *loss_scale)
