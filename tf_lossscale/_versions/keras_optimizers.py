"""How the optimizers of Keras 2 and Keras 3, and graph-mode Keras 2, differ between versions."""

import importlib
import itertools
import sys
import traceback
from typing import Any, ContextManager, Dict, List, NamedTuple, Optional, Sequence, Tuple

from tf_lossscale._versions.base import has, overridden, tf
from tf_lossscale._versions.keras import KerasFamily
from tf_lossscale._versions.releases import Since


def overrides(family: KerasFamily, optimizer: Any, *methods: str) -> bool:
    """Returns whether an optimizer overrides one of `methods` of its Keras base class."""
    cls = type(optimizer)
    return any(
        getattr(cls, name, None) is not getattr(family.base, name, None) or name in vars(optimizer)
        for name in methods
    )


def has_own_aggregation(family: KerasFamily, optimizer: Any) -> bool:
    """Returns whether an `OptimizerV2` sums gradients in its own way, as Horovod's do."""
    given = getattr(optimizer, "gradient_aggregator", None)
    module = getattr(given, "__module__", None) or ""
    if given is not None and module.split(".")[0] != family.package:
        return True
    return overrides(family, optimizer, "_aggregate_gradients", "_transform_unaggregated_gradients")


def has_own_transformation(family: KerasFamily, optimizer: Any) -> bool:
    """Returns whether an `OptimizerV2` changes gradients in its own way before it applies them."""
    given = getattr(optimizer, "gradient_transformers", None)
    return bool(given) or overrides(family, optimizer, "_transform_gradients")


def aggregate_gradients(optimizer: Any, pairs: Sequence[Any]) -> List[Any]:
    """Sums gradients as an `OptimizerV2` of TensorFlow 2.2 or later does when it applies them.

    The methods are private, but optimizers such as Horovod's override them. So they must be called:
    a sum of our own would leave out what the override does.
    """
    if not has(Since.LEGACY_AGGREGATES_PAIRS):
        variables = [variable for _, variable in pairs]
        return list(zip(optimizer._aggregate_gradients(pairs), variables))
    return list(optimizer._aggregate_gradients(optimizer._transform_unaggregated_gradients(pairs)))


def called_from_compile() -> bool:
    """Returns whether a property is read by the `compile` of TensorFlow 1.15.

    That `compile` compares the loss scale of an optimizer with that of a policy. Both must be
    objects: a comparison with a tensor raises an error in eager mode.
    """
    if has(Since.COMPILE_LEAVES_LOSS_SCALE):
        return False
    frame: Any = sys._getframe(2)
    return bool(frame.f_globals.get("__name__", "").endswith("keras.engine.training"))


def called_from_minimize_of_fit() -> bool:
    """Returns whether the caller is `fit` of TensorFlow 2.2 or 2.3, which has summed the gradients.

    Its call looks like that of a program whose gradients are not summed yet. Later versions leave
    the sum over the replicas to the optimizer.
    """
    if not has(Since.LEGACY_ACCEPTS_SUMS) or has(Since.FIT_LEAVES_SUM):
        return False
    # AutoGraph puts some frames of its own between.
    return any(
        frame.f_code.co_name == "_minimize"
        and frame.f_globals.get("__name__", "").endswith("keras.engine.training")
        for frame, _ in itertools.islice(traceback.walk_stack(sys._getframe(1)), 8)
    )


def show_to_keras_session(family: KerasFamily, variables: Sequence[Any]) -> None:
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

_KERAS_2_METHODS = ("get_scaled_loss", "get_unscaled_gradients", "loss_scale", "dynamic_counter")


def explain_missing_methods(cls: Any) -> None:
    """Adds advice to the AttributeError for a Keras 2 method of Keras 3's own class.

    Programs of Keras 2 test the class of the optimizer, and then call these methods. `hasattr`
    still returns False.
    """
    if hasattr(cls, _KERAS_2_METHODS[0]) or hasattr(cls, "__getattr__"):
        return

    def __getattr__(self: Any, name: str) -> Any:
        message = f"{type(self).__name__!r} object has no attribute {name!r}"
        if name in _KERAS_2_METHODS:
            message += (
                ": it is Keras 3's own class. Wrap the optimizer in "
                "tf_lossscale.keras.mixed_precision.LossScaleOptimizer before compile(), or call "
                "tf_lossscale.install(replace=True) first, so that compile() does."
            )
        raise AttributeError(message)

    cls.__getattr__ = __getattr__


def keras_3_backend() -> str:
    """Returns the backend of Keras 3: "tensorflow", "jax", "torch" and so on."""
    return str(sys.modules["keras"].config.backend())


def keras_3_does_not_track() -> Any:
    """Returns a context in which Keras 3 objects do not track the variables set on them."""
    return importlib.import_module("keras.src.utils.tracking").DotNotTrackScope()


def keras_3_takes_sums(family: KerasFamily, optimizer: Any, variables: Sequence[Any]) -> bool:
    """Returns whether a Keras 3 optimizer takes the same step if it is given summed gradients.

    Its `apply` sums the gradients of the replicas last. Before, it accumulates and clips the
    gradients of each replica, and assigns them to variables with `overwrite_with_gradient`. With
    any of these, sums would be treated differently.
    """
    options = ("clipnorm", "clipvalue", *_METHODS["keras3"].options)
    return (
        keras_3_can_be_given_sums(family, optimizer)
        and all(getattr(optimizer, name, None) is None for name in options)
        and not any(getattr(each, "overwrite_with_gradient", False) for each in variables)
    )


def keras_3_can_be_given_sums(family: KerasFamily, optimizer: Any) -> bool:
    """Returns whether `keras_3_is_given_sums` works: the class overrides none of these steps."""
    return all(
        hasattr(family.base, name) and getattr(type(optimizer), name) is getattr(family.base, name)
        for name in _KERAS_3_BEFORE_THE_SUM
    )


def keras_3_is_given_sums(optimizer: Any) -> ContextManager[None]:
    """Keeps a Keras 3 optimizer from summing the gradients of the replicas, within the block.

    `apply` has no argument for it, and there is no public method to override.
    """
    return overridden([optimizer], "_all_reduce_sum_gradients", lambda _, pairs: list(pairs))


def build_as_apply_does(optimizer: Any, variables: Sequence[Any]) -> None:
    """Builds a Keras 3 optimizer that is not built yet, with the paths that `apply` gives slots."""
    if not optimizer.built and variables:
        backend = sys.modules["keras.src.backend"]
        with tf.init_scope(), backend.name_scope(optimizer.name, caller=optimizer):
            optimizer.build(variables)
        optimizer.built = True


class UpdateMethods(NamedTuple):
    """The methods of one kind of optimizer, and what makes the check necessary."""

    # Takes the strategy and the pairs as they are applied, in a cross-replica context where there
    # are several replicas.
    update: str
    hooks: Tuple[str, ...]  # methods before `update` whose override may change gradients
    # Arguments of the optimizer that change gradients: finite gradients can have an infinite norm
    # or sum. (Clipping to a range cannot make them infinite.)
    options: Tuple[str, ...]
    decay: Optional[str] = None  # changes the variables before `update`, in a replica context
    # Takes the gradients and their accumulators in a step that updates no variable, in a replica
    # context; None if there is no such step.
    accumulate: Optional[str] = None
    average: Tuple[str, ...] = ()  # take the variables after `update`, if they are averaged
    keras_hooks: Tuple[str, ...] = ()  # like `hooks`; overrides by Keras change no gradients
    always_counts: bool = False  # whether `iterations` is incremented outside `update`


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
        (
            "apply",
            "apply_gradients",
            "_backend_apply_gradients",
            "_clip_gradients",
            "_filter_empty_gradients",
        ),
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

    None if gradients are applied as they are given, or clipped to a range.
    """
    methods = _METHODS[family.kind]
    changes = (
        overrides(family, optimizer, *methods.hooks)
        or any(defined_outside(optimizer, name, family.package) for name in methods.keras_hooks)
        or any(getattr(optimizer, option, None) is not None for option in methods.options)
        or (family.kind == "legacy" and _legacy_changes(family, optimizer))
    )
    return methods if changes else None


def defined_outside(optimizer: Any, name: str, *packages: str) -> bool:
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


def uncalled_hooks(family: KerasFamily, optimizer: Any) -> List[str]:
    """Returns the methods that an optimizer defines for another kind only, so no step calls them.

    A class that also overrides a hook of its own kind is written for both, and has none.
    """
    if family.kind == "legacy":
        return []  # the oldest kind
    defined = [name for name in _HOOKS if defined_outside(optimizer, name, family.package)]
    return [] if any(hasattr(family.base, name) for name in defined) else defined


def _legacy_changes(family: KerasFamily, optimizer: Any) -> bool:
    if not has(Since.LEGACY_ACCEPTS_SUMS):
        return False  # the methods for this came with the argument
    # Since TensorFlow 2.5 the step gets gradients that are already summed.
    sums = not has(Since.LEGACY_AGGREGATES_FIRST) and has_own_aggregation(family, optimizer)
    return sums or has_own_transformation(family, optimizer)
