"""Where the Keras optimizers of each kind update variables, and what may change gradients before.

The methods are private: there is no public place between what a subclass or an option makes of the
gradients, and the update.
"""

from typing import Any, Dict, NamedTuple, Optional, Tuple

from tf_lossscale._versions.base import TF_VERSION
from tf_lossscale._versions.keras import KerasFamily
from tf_lossscale._versions.keras_optimizers import (
    has_own_aggregation,
    has_own_transformation,
    overrides,
)

__all__ = ["UpdateMethods", "update_methods"]


class UpdateMethods(NamedTuple):
    """The last methods of a step of an optimizer.

    Attributes:
      update: takes the strategy and the pairs as they are applied, in a cross-replica context where
        there are several replicas.
      decay: changes the variables before that, in a replica context; None if no method does.
      always_counts: whether `iterations` goes on outside `update`.
      accumulate: takes the gradients and their accumulators in a step that updates no variable, in
        a replica context; None if there is no such step.
      average: take the variables, and run after `update` where the optimizer keeps averages of
        them.
    """

    update: str
    decay: Optional[str]
    always_counts: bool
    accumulate: Optional[str] = None
    average: Tuple[str, ...] = ()


_METHODS: Dict[str, UpdateMethods] = {
    "legacy": UpdateMethods("_distributed_apply", None, False),
    "new": UpdateMethods("_distributed_apply_gradients_fn", "_apply_weight_decay", False),
    "keras3": UpdateMethods(
        "_distributed_tf_update_step",
        "_apply_weight_decay",
        True,
        "_backend_increment_gradient_accumulators",
        (
            "_update_model_variables_moving_average",
            "_overwrite_model_variables_with_average_value",
        ),
    ),
}

_HOOKS: Dict[str, Tuple[str, ...]] = {
    "legacy": ("apply_gradients",),
    "new": ("apply_gradients", "_clip_gradients"),
    "keras3": ("apply", "_backend_apply_gradients", "_clip_gradients", "_filter_empty_gradients"),
}

# Keras's own classes that have one of these leave the gradients as they are.
_HOOKS_OF_OTHERS: Dict[str, Tuple[str, ...]] = {
    "legacy": (),
    "new": (),
    "keras3": ("_all_reduce_sum_gradients", "_backend_update_step"),
}

# Finite gradients can have a norm, and a sum, that is not.
_OPTIONS: Dict[str, Tuple[str, ...]] = {
    "legacy": ("global_clipnorm",),
    "new": ("global_clipnorm",),
    "keras3": ("global_clipnorm", "gradient_accumulation_steps", "loss_scale_factor"),
}


def update_methods(family: KerasFamily, optimizer: Any) -> Optional[UpdateMethods]:
    """Returns the last methods of a step in which finite gradients can become others before.

    Args:
      family: the optimizer's.
      optimizer: the optimizer.

    Returns:
      None where gradients are applied as they are given, or clipped to a range.
    """
    changes = (
        overrides(family, optimizer, *_HOOKS[family.kind])
        or any(_is_of_others(family, optimizer, name) for name in _HOOKS_OF_OTHERS[family.kind])
        or any(getattr(optimizer, option, None) is not None for option in _OPTIONS[family.kind])
        or (family.kind == "legacy" and _legacy_changes(family, optimizer))
    )
    return _METHODS[family.kind] if changes else None


def _is_of_others(family: KerasFamily, optimizer: Any, name: str) -> bool:
    """Whether a method is not one of Keras."""
    owner = next((each for each in type(optimizer).__mro__ if name in vars(each)), None)
    return owner is not None and owner.__module__.split(".")[0] != family.package


def _legacy_changes(family: KerasFamily, optimizer: Any) -> bool:
    if TF_VERSION < (2, 2):
        return False  # it has no such methods
    # From TensorFlow 2.5 on gradients are added up before the step.
    adds_up = TF_VERSION < (2, 5) and has_own_aggregation(family, optimizer)
    return adds_up or has_own_transformation(family, optimizer)
