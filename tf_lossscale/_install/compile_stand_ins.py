"""Lets `Model.compile` wrap optimizers in our class.

Under `mixed_float16`, `compile` wraps an optimizer that does not scale the loss. If the class at
the public path is ours, the wrapper must be ours, too: a `train_step` that tests
`isinstance(optimizer, LossScaleOptimizer)` would otherwise not scale the loss.
"""

import importlib
import sys
from types import ModuleType
from typing import Any, Optional

from tf_lossscale import _namespace, _paths
from tf_lossscale._versions.originals import StandIn

__all__ = ["is_stand_in", "stand_in"]

_FINAL = _paths.NAMESPACES["keras.mixed_precision"]["LossScaleOptimizer"]
_EXPERIMENTAL = _paths.NAMESPACES["keras.mixed_precision.experimental"]["LossScaleOptimizer"]

# What `compile` names; up to TensorFlow 2.3 the class of the first name was the experimental one.
_NAMES = ("LossScaleOptimizer", "BaseLossScaleOptimizer", "LossScaleOptimizerV1")


def stand_in(value: Any, always: bool) -> Optional[Any]:
    """Returns a new value for the global variable of `compile`, which makes it use our class.

    Args:
      value: its current value: a class, or the module of the classes.
      always: whether all optimizers are wrapped in our class, and not only those of models with
        one of our experimental policies, which define how to scale.

    Returns:
      The stand-in; None if none is needed, because this Keras has experimental policies itself.
    """
    if isinstance(value, StandIn):
        value = value.installed
    if not isinstance(value, ModuleType):
        return _Class(value, always)
    needed = always or hasattr(value, "BaseLossScaleOptimizer")  # from TensorFlow 2.9 on
    return _Module(value, always) if needed else None


def is_stand_in(value: Any, always: bool) -> bool:
    """Returns whether `value` is a stand-in already, and wraps at least as many optimizers."""
    return isinstance(value, StandIn) and value.always >= always


class _Module(StandIn):
    """Stands in for the module of Keras's loss-scale classes; only these classes are replaced."""

    def __init__(self, installed: ModuleType, always: bool) -> None:
        super().__init__(installed, always)
        for name in _NAMES:
            if hasattr(installed, name):
                setattr(self, name, _Class(getattr(installed, name), always))


class _Class(StandIn):
    """Stands in for a loss-scale class: creates our class, recognizes instances of both."""

    def __instancecheck__(self, instance: Any) -> bool:
        return isinstance(instance, self.installed)  # our classes are subclasses of it

    def __call__(self, optimizer: Any, *loss_scale: Any, **options: Any) -> Any:
        """Wraps an optimizer in our class, or in Keras's own class if ours does not accept it.

        Args:
          optimizer: the optimizer that was passed to `compile`.
          *loss_scale: the loss scale of an experimental policy, for the experimental class.
          **options: `name`, in Keras 3.
        """
        # Imported late, because it imports TensorFlow.
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
