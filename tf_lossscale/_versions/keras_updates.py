"""The methods that make the last part of a step of a Keras optimizer, in every version.

The late check of `_keras/late_check.py` replaces them during a step. They are private: no version
has a public hook between what an option or a subclass makes of the gradients, and the update. Keras
3's public `apply` and Keras 2's `apply_gradients` come before both.
"""

from typing import Any, Dict, NamedTuple, Optional, Tuple

from tf_lossscale._versions.base import has
from tf_lossscale._versions.keras import KerasFamily
from tf_lossscale._versions.keras_optimizers import (
    has_own_aggregation,
    has_own_transformation,
    overrides,
)
from tf_lossscale._versions.releases import Since

__all__ = ["UpdateMethods", "update_methods"]


class UpdateMethods(NamedTuple):
    """The methods of one kind of optimizer, and what makes the check necessary.

    Attributes:
      update: takes the strategy and the pairs as they are applied, in a cross-replica context where
        there are several replicas.
      hooks: methods before `update` whose override may change gradients.
      options: arguments of the optimizer that change gradients: finite gradients can have an
        infinite norm or sum. (Clipping to a range cannot make them infinite.)
      decay: changes the variables before `update`, in a replica context; None if no method does.
      accumulate: takes the gradients and their accumulators in a step that updates no variable, in
        a replica context; None if there is no such step.
      average: take the variables, and run after `update` if the optimizer averages them.
      keras_hooks: like `hooks`, but some of Keras's own optimizers override them, without changing
        gradients.
      always_counts: whether `iterations` is incremented outside `update`.
    """

    update: str
    hooks: Tuple[str, ...]
    options: Tuple[str, ...]
    decay: Optional[str] = None
    accumulate: Optional[str] = None
    average: Tuple[str, ...] = ()
    keras_hooks: Tuple[str, ...] = ()
    always_counts: bool = False


_METHODS: Dict[str, UpdateMethods] = {
    # `OptimizerV2`: TensorFlow 1.15 to 2.10, then `optimizers.legacy` up to tf-keras 2.21.
    "legacy": UpdateMethods("_distributed_apply", ("apply_gradients",), ("global_clipnorm",)),
    # Keras 2 from TensorFlow 2.11 on.
    "new": UpdateMethods(
        "_distributed_apply_gradients_fn",
        ("apply_gradients", "_clip_gradients"),
        ("global_clipnorm",),
        decay="_apply_weight_decay",
    ),
    # Keras 3.0 on.
    "keras3": UpdateMethods(
        "_distributed_tf_update_step",
        ("apply", "_backend_apply_gradients", "_clip_gradients", "_filter_empty_gradients"),
        ("global_clipnorm", "gradient_accumulation_steps", "loss_scale_factor"),
        decay="_apply_weight_decay",
        accumulate="_backend_increment_gradient_accumulators",
        average=(
            "_update_model_variables_moving_average",
            "_overwrite_model_variables_with_average_value",
        ),
        keras_hooks=("_all_reduce_sum_gradients", "_backend_update_step"),
        always_counts=True,
    ),
}


def update_methods(family: KerasFamily, optimizer: Any) -> Optional[UpdateMethods]:
    """Returns the last methods of a step in which finite gradients may become non-finite.

    Returns:
      None if gradients are applied as they are given, or clipped to a range.
    """
    methods = _METHODS[family.kind]
    changes = (
        overrides(family, optimizer, *methods.hooks)
        or any(_is_not_of_keras(family, optimizer, name) for name in methods.keras_hooks)
        or any(getattr(optimizer, option, None) is not None for option in methods.options)
        or (family.kind == "legacy" and _legacy_changes(family, optimizer))
    )
    return methods if changes else None


def _is_not_of_keras(family: KerasFamily, optimizer: Any, name: str) -> bool:
    owner = next((cls for cls in type(optimizer).__mro__ if name in vars(cls)), None)
    return owner is not None and owner.__module__.split(".")[0] != family.package


def _legacy_changes(family: KerasFamily, optimizer: Any) -> bool:
    if not has(Since.LEGACY_ACCEPTS_SUMS):
        return False  # the methods for this came with the argument
    # Since TensorFlow 2.5 the step gets gradients that are already summed.
    sums = not has(Since.LEGACY_AGGREGATES_FIRST) and has_own_aggregation(family, optimizer)
    return sums or has_own_transformation(family, optimizer)
