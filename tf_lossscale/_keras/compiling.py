"""The class in which `compile` wraps the optimizer of a model, if the shim decides.

Programs of Keras 2 expect its methods from what `compile` makes: a `train_step` calls
`get_scaled_loss`, or tests for the class. Under an experimental policy they expect its loss scale.
"""

from typing import Any, Callable, Optional

from tf_lossscale._core.same_class import loss_scale_class
from tf_lossscale._keras import experimental, final
from tf_lossscale._keras.arguments import forget_earlier_wrapper, takes
from tf_lossscale._types import Optimizer
from tf_lossscale._versions.base import has
from tf_lossscale._versions.interventions import Scaling
from tf_lossscale._versions.releases import Since

SCALED = "mixed_float16"
"""The policy under which `compile` of every Keras scales the loss."""


def scaling_by_final_class(policy_name: str) -> Optional[Scaling]:
    """Returns what `compile` does under a final policy; None if Keras decides."""
    if policy_name != SCALED:
        return None
    return Scaling(_wrapper(final.LossScaleOptimizer, keras_does_alike=True))


def scaling_by_loss_scale(policy_name: str, loss_scale: Any) -> Optional[Scaling]:
    """Returns what `compile` does under an experimental policy; None if Keras decides.

    Args:
      policy_name: the name of the policy.
      loss_scale: its loss scale: `"dynamic"`, another argument of the experimental class, or None.
    """
    if loss_scale is None:
        # Before, Keras itself reads from the policy that there is nothing to scale.
        ignores_policy = policy_name == SCALED and has(Since.COMPILE_READS_NAME_OF_POLICY)
        return Scaling(wrap=None) if ignores_policy else None

    def make(optimizer: Optimizer) -> Optimizer:
        return experimental.LossScaleOptimizer(optimizer, loss_scale)

    is_default = isinstance(loss_scale, str) and policy_name == SCALED
    return Scaling(_wrapper(make, keras_does_alike=is_default))


def _wrapper(
    make: Callable[[Optimizer], Optimizer], keras_does_alike: bool
) -> Callable[[Optimizer], Optional[Optimizer]]:
    """Returns the function that wraps an optimizer, except one that it leaves to Keras.

    Keras keeps an optimizer that scales the loss. If our class cannot wrap an optimizer, Keras's
    own class may; but only if Keras would scale the loss like the policy. Otherwise our class
    raises an error that says why.
    """

    def wrap(optimizer: Optimizer) -> Optional[Optimizer]:
        if loss_scale_class(optimizer) or (keras_does_alike and not takes(optimizer)):
            return None
        forget_earlier_wrapper(optimizer)
        return make(optimizer)

    return wrap
