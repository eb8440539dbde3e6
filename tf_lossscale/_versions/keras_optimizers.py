"""How the optimizers of Keras 2 and Keras 3, and graph-mode Keras 2, differ between versions."""

import importlib
import sys
from typing import Any, ContextManager, List

from tf_lossscale._types import Optimizer, Variables
from tf_lossscale._versions.base import tf
from tf_lossscale._versions.interventions import overridden
from tf_lossscale._versions.keras import KerasFamily, KerasKind


def overrides(family: KerasFamily, optimizer: Optimizer, *methods: str) -> bool:
    """Returns whether an optimizer overrides one of `methods` of its Keras base class."""
    cls = type(optimizer)
    return any(
        getattr(cls, name, None) is not getattr(family.base, name, None) or name in vars(optimizer)
        for name in methods
    )


def show_to_keras_session(family: KerasFamily, variables: Variables) -> None:
    """Makes graph-mode Keras initialize `variables` in its Session.

    Keras initializes only variables that it has created itself. It has no public function that adds
    others.
    """
    if not tf.executing_eagerly():
        for variable in variables:
            sys.modules[family.base.__module__].backend.track_variable(variable)


# The methods of a step up to the sum over the replicas. All are private but the first two.
_KERAS_3_BEFORE_THE_SUM = (
    "apply",
    "apply_gradients",
    "_all_reduce_sum_gradients",
    "_backend_apply_gradients",
    "_backend_update_step",
    "_clip_gradients",
)


def keras_3_backend() -> str:
    """Returns the backend of Keras 3: "tensorflow", "jax", "torch" and so on."""
    return str(sys.modules["keras"].config.backend())


def keras_3_does_not_track() -> Any:
    """Returns a context in which Keras 3 objects do not track the variables set on them."""
    return importlib.import_module("keras.src.utils.tracking").DotNotTrackScope()


def keras_3_takes_sums(family: KerasFamily, optimizer: Optimizer, variables: Variables) -> bool:
    """Returns whether a Keras 3 optimizer takes the same step if it is given summed gradients.

    Its `apply` sums the gradients of the replicas last. Before, it accumulates and clips the
    gradients of each replica, and assigns them to variables with `overwrite_with_gradient`. With
    any of these, sums would be treated differently.
    """
    options = (
        *("clipnorm", "clipvalue", "global_clipnorm"),
        *("gradient_accumulation_steps", "loss_scale_factor"),
    )
    return (
        keras_3_can_be_given_sums(family, optimizer)
        and all(getattr(optimizer, name, None) is None for name in options)
        and not any(getattr(variable, "overwrite_with_gradient", False) for variable in variables)
    )


def keras_3_can_be_given_sums(family: KerasFamily, optimizer: Optimizer) -> bool:
    """Returns whether `keras_3_is_given_sums` works: the class overrides none of these steps."""
    return all(
        hasattr(family.base, name) and getattr(type(optimizer), name) is getattr(family.base, name)
        for name in _KERAS_3_BEFORE_THE_SUM
    )


def keras_3_is_given_sums(optimizer: Optimizer) -> ContextManager[None]:
    """Keeps a Keras 3 optimizer from summing the gradients of the replicas, within the block.

    `apply` has no argument for it, and there is no public method to override.
    """
    return overridden([optimizer], "_all_reduce_sum_gradients", lambda _, pairs: list(pairs))


def build_as_apply_does(optimizer: Optimizer, variables: Variables) -> None:
    """Builds a Keras 3 optimizer that is not built yet, with the paths that `apply` gives slots."""
    if not optimizer.built and variables:
        backend = sys.modules["keras.src.backend"]
        with tf.init_scope(), backend.name_scope(optimizer.name, caller=optimizer):
            optimizer.build(variables)
        optimizer.built = True


def defined_outside(optimizer: Optimizer, name: str, *packages: str) -> bool:
    """Returns whether a class of none of these packages defines an attribute of `optimizer`."""
    owner = next((cls for cls in type(optimizer).__mro__ if name in vars(cls)), None)
    return owner is not None and owner.__module__.split(".")[0] not in packages


# Methods by which programs change a step. Each kind of optimizer calls only some of them.
_HOOKS = (
    "_aggregate_gradients",
    "_compute_gradients",
    "_resource_apply_dense",
    "_resource_apply_sparse",
    "_transform_gradients",
    "_transform_unaggregated_gradients",
    "aggregate_gradients",
    "apply",
    "compute_gradients",
    "get_gradients",
    "update_step",
)


def uncalled_hooks(family: KerasFamily, optimizer: Optimizer) -> List[str]:
    """Returns the methods that an optimizer defines for another kind only, so no step calls them.

    A class that also overrides a hook of its own kind is written for both, and has none.
    """
    if family.kind is KerasKind.LEGACY:
        return []  # the oldest kind
    defined = [name for name in _HOOKS if defined_outside(optimizer, name, family.package)]
    return [] if any(hasattr(family.base, name) for name in defined) else defined
