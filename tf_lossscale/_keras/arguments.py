"""Checks what the constructors are given: the inner optimizer and the loss scale."""

import inspect
from typing import Any, Dict, Optional, Union, cast

from tf_lossscale._core.loss_scales import (
    DynamicLossScale,
    FixedLossScale,
    as_loss_scale,
    is_standard,
)
from tf_lossscale._core.minimum import MINIMUM, minimum_in_config
from tf_lossscale._core.same_class import loss_scale_class
from tf_lossscale._types import (
    Config,
    CustomObjects,
    DynamicLossScaleObject,
    LossScaleArgument,
    LossScaleObject,
    Optimizer,
)
from tf_lossscale._versions.base import has, tf1
from tf_lossscale._versions.files import registered_class
from tf_lossscale._versions.keras import KerasFamily, KerasKind, keras_family
from tf_lossscale._versions.keras_optimizers import keras_3_backend, uncalled_hooks
from tf_lossscale._versions.releases import Since

# Keras 2 sets the same attribute since TensorFlow 2.6, so each class detects the other's wrappers.
MARK = "_is_wrapped_by_loss_scale_optimizer"


def check_inner(inner: Optimizer) -> KerasFamily:
    """Returns the family of `inner`, which must be a Keras optimizer that is not wrapped yet."""
    family = keras_family(inner)
    if family is None:
        advice = "Pass the optimizer itself, such as tf.keras.optimizers.SGD(0.1)."
        if isinstance(inner, tf1.train.Optimizer):
            advice = (
                "For a tf.compat.v1.train.Optimizer use "
                "compat.v1.mixed_precision.MixedPrecisionLossScaleOptimizer."
            )
        raise TypeError(
            '"inner_optimizer" must be an instance of `tf.keras.optimizers.Optimizer` or '
            f"`tf.keras.optimizers.experimental.Optimizer`, but got: {inner}. {advice}"
        )
    if not _runs_on_tensorflow(family):
        raise RuntimeError(
            "tf_lossscale scales losses with TensorFlow only, but Keras runs on "
            f"{keras_3_backend()}: set the environment variable KERAS_BACKEND=tensorflow "
            "before Keras is imported, or use Keras's own LossScaleOptimizer."
        )
    if loss_scale_class(inner):
        raise TypeError(
            f"LossScaleOptimizer cannot wrap another LossScaleOptimizer, but got: {inner}. Wrap "
            "its inner_optimizer, or use it as it is."
        )
    if getattr(inner, MARK, False):
        raise ValueError(
            '"inner_optimizer" is already wrapped by a LossScaleOptimizer. An optimizer can only '
            f"be wrapped by a single LossScaleOptimizer; {inner} needs a second instance for the "
            "second one."
        )
    _warn_of_uncalled_hooks(family, inner)
    return family


def _warn_of_uncalled_hooks(family: KerasFamily, inner: Optimizer) -> None:
    """Logs the methods of the program's class that Keras never calls.

    Not an error: Keras accepts such a class, too. But it drops, for example, a sum over all workers
    without a word.
    """
    hooks = uncalled_hooks(family, inner)
    if hooks:
        newer, older, instead = _KINDS[family.kind]
        tf1.logging.warning(
            f"{type(inner).__name__} defines {', '.join(hooks)}, which {newer} never call, so "
            f"nothing of it takes effect. Override {instead} instead, or derive the class from an "
            f"optimizer of {older}."
        )


NAME_ON_KERAS_3 = "loss_scale_optimizer"

OPTIONS_OF_KERAS_3 = (
    *("clipnorm", "clipvalue", "global_clipnorm", "gradient_accumulation_steps", "weight_decay"),
    *("ema_momentum", "ema_overwrite_frequency", "use_ema"),
)
"""Options of every optimizer: the installed class forwards them, and it may write its defaults."""


def take_arguments_of_keras_3(inner: Optimizer, kwargs: Dict[str, Any]) -> Optional[str]:
    """Removes the arguments from `kwargs` that only the constructor of Keras 3 has.

    It takes `name`, and the options of every optimizer if they have their default values. For
    optimizers of Keras 2, nothing is removed, so that Python raises its error. Returns the name.
    """
    family = keras_family(inner)
    if family is None or family.kind is not KerasKind.KERAS_3:
        return None
    defaults = {
        parameter.name: parameter.default
        for cls in family.base.__mro__
        if "__init__" in vars(cls)
        for parameter in inspect.signature(cls.__init__).parameters.values()
    }
    for option in (*OPTIONS_OF_KERAS_3, "loss_scale_factor"):
        if option in kwargs and kwargs.pop(option) != defaults.get(option):
            raise ValueError(
                f"LossScaleOptimizer does not support `{option}`. Instead, set `{option}` on the "
                "`inner_optimizer`."
            )
    return kwargs.pop("name", None)


# What the warning about uncalled hooks calls a kind and the one before it, and what to override.
_KINDS = {
    KerasKind.NEW: (
        "the new-style optimizers of Keras 2",
        "tf.keras.optimizers.legacy",
        "aggregate_gradients(), apply_gradients() or update_step()",
    ),
    KerasKind.KERAS_3: ("the optimizers of Keras 3", "tf-keras", "apply() or update_step()"),
}


def are_summed(
    skip_gradients_aggregation: bool = False,
    experimental_aggregate_gradients: bool = True,
    name: Optional[str] = None,
    **unknown: Any,
) -> bool:
    """Returns whether gradients are summed over the replicas, by arguments of `apply_gradients`."""
    if unknown:
        raise TypeError(
            f"apply_gradients() has no argument {', '.join(sorted(unknown))}: pass only the pairs, "
            "name, and skip_gradients_aggregation or experimental_aggregate_gradients."
        )
    return skip_gradients_aggregation or not experimental_aggregate_gradients


def takes(optimizer: Optimizer) -> bool:
    """Returns whether our class can wrap an optimizer that was passed to `compile`.

    It cannot on another Keras 3 backend, nor what Keras wraps a `tf.compat.v1` optimizer in.
    """
    family = keras_family(optimizer)
    return family is not None and _runs_on_tensorflow(family)


def _runs_on_tensorflow(family: KerasFamily) -> bool:
    return family.kind is not KerasKind.KERAS_3 or keras_3_backend() == "tensorflow"


def forget_earlier_wrapper(optimizer: Optimizer) -> None:
    """Allows a second `compile` to wrap the same optimizer again where Keras's own class does."""
    family = keras_family(optimizer)
    if family is None:
        return
    if family.kind is KerasKind.KERAS_3 or not has(Since.KERAS_MARKS_WRAPPED):
        optimizer.__dict__.pop(MARK, None)


def final_loss_scale(
    dynamic: bool,
    initial_scale: Optional[float],
    dynamic_growth_steps: Optional[int],
    minimum_scale: float = MINIMUM,
) -> Union[float, LossScaleObject]:
    """Converts the final class's arguments to a `DynamicLossScale`, or a float if it is fixed."""
    if not isinstance(dynamic, bool):
        raise TypeError(
            '"dynamic" argument to LossScaleOptimizer.__init__ must be a bool, but got: '
            f"{dynamic!r}. A loss scale is given by initial_scale, or to the experimental class."
        )
    if not dynamic:
        if initial_scale is None:
            raise ValueError('"initial_scale" must be specified if "dynamic" is False')
        if dynamic_growth_steps is not None:
            raise ValueError(
                '"dynamic_growth_steps" must be None if "dynamic" is False, but got: '
                f"{dynamic_growth_steps}"
            )
        if minimum_scale != MINIMUM:
            raise ValueError(
                f'"minimum_scale" is {minimum_scale}, but a fixed loss scale does not shrink: '
                "leave it out, or use a dynamic one."
            )
        return float(initial_scale)
    growth_steps = 2000 if dynamic_growth_steps is None else dynamic_growth_steps
    if int(growth_steps) < 1:
        raise ValueError(
            '"dynamic_growth_steps" must be at least 1: the number of finite steps in a row '
            f"after which the loss scale doubles. Got: {dynamic_growth_steps}"
        )
    initial = 2**15 if initial_scale is None else initial_scale
    return DynamicLossScale(initial, growth_steps, minimum_scale=minimum_scale)


def experimental_loss_scale(loss_scale: LossScaleArgument) -> Union[float, LossScaleObject]:
    """Converts `loss_scale` to a float, which is a fixed scale, or a `LossScale`."""
    if isinstance(loss_scale, (int, float)) and not isinstance(loss_scale, bool):
        return float(loss_scale)
    if isinstance(loss_scale, dict):
        loss_scale = loss_scale_from_config(loss_scale)
    try:
        scale = as_loss_scale(loss_scale)
    except ValueError:
        scale = None
    if scale is None:
        raise ValueError(
            "Invalid value passed to loss_scale. loss_scale must be the string "
            f'"dynamic" (recommended), an int, a float, a FixedLossScale, or a DynamicLossScale. '
            f"Got value: {loss_scale!r}"
        )
    is_dynamic = is_standard(scale, DynamicLossScale)
    if is_dynamic and cast(DynamicLossScaleObject, scale).increment_period < 1:
        raise ValueError(f"DynamicLossScale.increment_period must be at least 1. Got: {scale}")
    return scale


def as_final_arguments(loss_scale: LossScaleArgument) -> Optional[Config]:
    """Returns the final class's arguments for what `experimental_loss_scale` returned, or None."""
    if is_standard(loss_scale, FixedLossScale):
        loss_scale = float(loss_scale.get_config()["loss_scale_value"])
    if isinstance(loss_scale, float):
        return {"dynamic": False, "initial_scale": loss_scale}
    if not is_standard(loss_scale, DynamicLossScale) or loss_scale.multiplier != 2:
        return None
    return {
        "initial_scale": loss_scale.initial_loss_scale,
        "dynamic_growth_steps": loss_scale.increment_period,
        **minimum_in_config(loss_scale),
    }


def loss_scale_from_config(
    config: Config, custom_objects: Optional[CustomObjects] = None
) -> LossScaleObject:
    """Returns the loss scale of a `{"class_name": ..., "config": ...}`, as up to TensorFlow 2.3."""
    name: Any = config.get("class_name")
    standard = {scale.__name__: scale for scale in (FixedLossScale, DynamicLossScale)}
    cls = (custom_objects or {}).get(name) or registered_class(name) or standard.get(name)
    if cls is None:
        raise ValueError(
            f"Could not interpret the loss scale of the saved optimizer: {config!r}; it must be a "
            "FixedLossScale, a DynamicLossScale, or of a class in custom_objects"
        )
    return cls.from_config(config["config"])
