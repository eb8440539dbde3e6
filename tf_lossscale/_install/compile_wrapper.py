"""What `Model.compile` wraps optimizers in while the shim is installed.

Under `mixed_float16`, `compile` wraps an optimizer that does not scale the loss. If the class at
the public path is ours, the wrapper must be ours, too: a `train_step` that tests
`isinstance(optimizer, LossScaleOptimizer)` would otherwise not scale the loss.
"""

import sys
from types import ModuleType
from typing import Any, Optional, Tuple

from tf_lossscale import _namespace, _paths
from tf_lossscale._versions.originals import StandIn, variable_of_compile


def wrapper_for(module: Any, replace: bool) -> Optional[Tuple[str, StandIn]]:
    """Returns what `compile` names in a module of Keras, and what is to stand there; or None."""
    name = variable_of_compile(module)
    value = getattr(module, name, None)
    # Otherwise only those of models with an experimental policy of ours, which says how to scale.
    always = replace or name == "LossScaleOptimizer"
    if isinstance(value, StandIn):
        if value.always >= always:
            return None
        value = value.installed
    # Up to TensorFlow 2.8, whose module lacks this class, Keras has experimental policies itself.
    is_older = isinstance(value, ModuleType) and not hasattr(value, "BaseLossScaleOptimizer")
    is_wrapped = value is not None and (always or not is_older)
    return (name, _Wrapper(value, always)) if is_wrapped else None


# What `compile` names; up to TensorFlow 2.3 the class of the first name was the experimental one.
_NAMES = ("LossScaleOptimizer", "BaseLossScaleOptimizer", "LossScaleOptimizerV1")


class _Wrapper(StandIn):
    """Stands in for a loss-scale class: creates our class, recognizes instances of both.

    It may also stand in for the module of Keras's loss-scale classes. Then it replaces only these.
    """

    def __getattr__(self, name: str) -> Any:
        value = super().__getattr__(name)
        return _Wrapper(value, self.always) if name in _NAMES else value

    def __instancecheck__(self, instance: Any) -> bool:
        return isinstance(instance, self.installed)  # our classes are subclasses of it

    def __call__(self, optimizer: Any, *loss_scale: Any, **options: Any) -> Any:
        """Wraps an optimizer in our class, or in Keras's own class if ours does not accept it.

        `compile` passes the loss scale of an experimental policy, and in Keras 3 a `name`.
        """
        # Imported late, because it imports TensorFlow.
        from tf_lossscale._keras import arguments, policy as policies
        from tf_lossscale._versions.keras import policy_of_layer

        model = sys._getframe(1).f_locals.get("self")
        policy = policies.experimental_policy_of(policy_of_layer(model))
        if not arguments.takes(optimizer) or not (self.always or policy):
            return self.installed(optimizer, *loss_scale, **options)
        if policy is not None:
            if not policy.scales:
                return optimizer
            loss_scale = (policy.loss_scale_of_compile,)
        arguments.forget_earlier_wrapper(optimizer)
        namespace = "keras.mixed_precision" + (".experimental" if loss_scale else "")
        symbol = _paths.NAMESPACES[namespace]["LossScaleOptimizer"]
        return _namespace.load(symbol)(optimizer, *loss_scale)
