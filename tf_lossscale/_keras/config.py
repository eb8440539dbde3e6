"""Writes configurations in the form of the installed Keras, and reads the form of any version."""

import copy
import inspect
from types import ModuleType
from typing import Any, Dict, Optional

from tf_lossscale._core.minimum import minimum_in_config
from tf_lossscale._core.same_class import behaves_as
from tf_lossscale._keras.arguments import (
    NAME_ON_KERAS_3,
    OPTIONS_OF_KERAS_3,
    as_final_arguments,
    experimental_loss_scale,
    final_loss_scale,
    loss_scale_from_config,
)
from tf_lossscale._namespace import load
from tf_lossscale._paths import symbol_at
from tf_lossscale._types import Class, Config, CustomObjects, LossScaleObject, Optimizer, ScaleState
from tf_lossscale._versions.base import has, tf
from tf_lossscale._versions.callers import calling_keras, conversion_to_legacy
from tf_lossscale._versions.files import deserialize_optimizer, registered_class_name
from tf_lossscale._versions.keras import (
    KerasKind,
    default_family,
    is_keras_3,
    keras_family,
    loaded_families,
)
from tf_lossscale._versions.releases import Since

_NOT_ARGUMENTS = (
    *("inner_optimizer", "dynamic", "initial_scale", "dynamic_growth_steps"),
    *("optimizer", "loss_scale", "name", "is_legacy_optimizer", "loss_scale_factor"),
    *OPTIONS_OF_KERAS_3,
)
"""Keys of the originals. A subclass that writes others has arguments of these names."""


def to_config(optimizer: Optimizer) -> Config:
    """Returns the configuration of a loss-scale optimizer.

    It has the form of TensorFlow 2.4 and later. If the installed Keras has no final class, it has
    the form of TensorFlow 2.0 to 2.3, because the installed class can read no other from a file.
    Our class and the later ones of TensorFlow read both. Only the old form has a place for a
    multiplier, and for a loss scale of a user's own class.
    """
    convert = conversion_to_legacy(optimizer)
    if convert is None:
        keras = optimizer._family.keras
        return _config_around(optimizer, keras.optimizers.serialize(optimizer.inner_optimizer))
    # TensorFlow 2.11 does not convert the inner optimizer itself.
    config = _config_around(optimizer, convert(optimizer.inner_optimizer))
    return dict(config, **{_CONVERTED_ROLE: optimizer.role})


_CONVERTED_ROLE = "tf_lossscale_converted_role"
"""A key of configurations that are in no file, from which Keras makes a legacy optimizer at once.

Keras makes the final class of every loss-scale optimizer. With the role it becomes the same class
as before.
"""


def _config_around(optimizer: Optimizer, inner: Optimizer) -> Config:
    """Returns the configuration of an optimizer around the serialized `inner`.

    In the old form if only that can hold the loss scale, or the installed Keras reads no other.
    """
    family = optimizer._family
    state = optimizer._state
    only_old = state.decides or (state.dynamic and state.multiplier != 2)
    if family.installed_final is None or only_old:
        return {"optimizer": inner, "loss_scale": _state_as_loss_scale(state)}
    settings = {
        "initial_scale": optimizer.initial_scale,
        "dynamic_growth_steps": optimizer.dynamic_growth_steps,
        **minimum_in_config(state),
    }
    if family.kind is not KerasKind.KERAS_3:
        return {"inner_optimizer": inner, "dynamic": optimizer.dynamic, **settings}
    config = {"name": optimizer.name, "inner_optimizer": inner, **settings}
    # Keras 3's own class has no fixed scale: it must fail on a file that holds `dynamic=False`.
    return config if optimizer.dynamic else dict(config, dynamic=False)


def serialized_loss_scale(scale: LossScaleObject) -> Config:
    """Returns what `loss_scale_from_config` reads."""
    return {"class_name": registered_class_name(behaves_as(scale)), "config": scale.get_config()}


def _state_as_loss_scale(state: ScaleState) -> Config:
    """Returns the loss scale of an optimizer as TensorFlow 2.0 to 2.3 serialize it."""
    if state.decides:
        return serialized_loss_scale(state.loss_scale)
    if not state.dynamic:
        return {"class_name": "FixedLossScale", "config": {"loss_scale_value": state.initial_scale}}
    arguments = {
        "initial_loss_scale": state.initial_scale,
        "increment_period": state.growth_steps,
        "multiplier": float(state.multiplier),
        **minimum_in_config(state),
    }
    return {"class_name": "DynamicLossScale", "config": arguments}


def from_config(cls: Class, config: Config, custom_objects: Optional[CustomObjects]) -> Optimizer:
    """Makes an instance of `cls`, one of our classes or a subclass, from a config of any version.

    It has the keys `inner_optimizer`, `dynamic`, `initial_scale` and `dynamic_growth_steps`; or,
    from TensorFlow 2.0 to 2.3, `optimizer` and `loss_scale`. It is not changed.
    """
    config = {  # an inner optimizer that Keras has already made is not copied
        key: copy.deepcopy(value) if isinstance(value, dict) else value
        for key, value in config.items()
    }
    if _CONVERTED_ROLE in config:
        # Keras adds a schedule that the learning rate of the inner optimizer is.
        config.pop("learning_rate", None)
        if config.pop(_CONVERTED_ROLE) == "experimental" and cls.role == "final":
            return from_config(_public_experimental(), config, custom_objects)
    # A configuration of the old form that Keras converts also has the converted inner optimizer.
    has_old_form_only = "optimizer" in config and "inner_optimizer" not in config
    serialized = config["optimizer" if has_old_form_only else "inner_optimizer"]
    inner = _inner(cls, serialized, custom_objects)
    own = {key: value for key, value in config.items() if key not in _NOT_ARGUMENTS}
    scale = config.get("loss_scale")
    if isinstance(scale, dict):
        config["loss_scale"] = loss_scale_from_config(scale, custom_objects)
    if cls.role != "final":
        return _experimental_of(cls, inner, config, own)
    return _final_of(cls, inner, config, own)


# The constructor picks the class of the instance by the inner optimizer. That of a subclass may
# have other names for its arguments, or take them by name only.


def _experimental_of(cls: Class, inner: Optimizer, config: Config, own: Config) -> Optimizer:
    """Makes an instance of the experimental class; `own` are the arguments of a subclass."""
    if "loss_scale" in config:
        scale = config["loss_scale"]
    else:
        minimum = {key: own.pop(key) for key in ("minimum_scale",) if key in own}
        scale = final_loss_scale(**dict(_DEFAULTS, **_settings_in(config)), **minimum)
    # The originals, too, pass these names, and an object that the constructor may read.
    named = dict(own, optimizer=inner, loss_scale=scale)
    return cls(**named) if _accepts(cls, **named) else cls(inner, scale, **own)


def _final_of(cls: Class, inner: Optimizer, config: Config, own: Config) -> Optimizer:
    """Makes an instance of the final class, or of the experimental one if only that can hold it."""
    arguments = _settings_in(config)
    if "loss_scale" in config:
        scale = config["loss_scale"]
        converted = as_final_arguments(experimental_loss_scale(scale))
        if _is_public(cls) and not (converted and has(Since.EXPERIMENTAL_HAS_OWN_LOSS_SCALE)):
            # Files of both classes name the final one, which Keras has from 2.4 on.
            return _public_experimental()(inner, scale)
        if converted is None:
            raise ValueError(
                f"{cls.__name__}.from_config() was given a loss scale that the final class cannot "
                "hold: a DynamicLossScale.multiplier other than 2, or a LossScale of another "
                "class. Derive the class from the experimental LossScaleOptimizer."
            )
        arguments = converted
    arguments.update(own)
    arguments.update(_name_on_keras_3(cls, inner, config, arguments))
    if has(Since.FROM_CONFIG_PASSES_POSITION) or _accepts(cls, inner, **arguments):
        return cls(inner, **arguments)
    return cls(inner_optimizer=inner, **arguments)


_DEFAULTS: Dict[str, Any] = {"dynamic": True, "initial_scale": None, "dynamic_growth_steps": None}


def _settings_in(config: Config) -> Config:
    """Returns the arguments of the final class that a configuration has."""
    return {name: config[name] for name in _DEFAULTS if name in config}


def _name_on_keras_3(cls: Class, inner: Optimizer, config: Config, arguments: Config) -> Config:
    """Returns the name as an argument, if a program has given one and the constructor takes it."""
    name = config.get("name")
    family = keras_family(inner)
    if name in (None, NAME_ON_KERAS_3) or family is None or family.kind is not KerasKind.KERAS_3:
        return {}
    takes_it = _is_public(cls) or _accepts(cls, inner, name=name, **arguments)
    return {"name": name} if takes_it else {}


def _is_public(cls: Class) -> bool:
    """Returns whether a class is one of ours, and not a user's subclass."""
    return "role" in vars(vars(cls).get("_derived_from", cls))


def _public_experimental() -> Class:
    # By its public path, because the module of that class imports this one.
    return load(symbol_at("keras.mixed_precision.experimental.LossScaleOptimizer"))


def _accepts(cls: Class, *args: object, **kwargs: object) -> bool:
    try:
        inspect.signature(cls.__init__).bind(None, *args, **kwargs)
    except TypeError:
        return False
    return True


def _inner(cls: Class, serialized: Config, custom_objects: Optional[CustomObjects]) -> Optimizer:
    """Returns the inner optimizer of a configuration, which Keras may have made already.

    It is of the Keras that `cls` is bound to, if it is to one; or else of the Keras that reads the
    file.
    """
    if not isinstance(serialized, dict):
        return serialized  # Keras has already deserialized it
    # A class that is already bound to one kind of inner optimizer reads this kind.
    is_bound = any("_derived_from" in vars(base) for base in cls.__mro__)
    family = cls._family if is_bound or cls._family != default_family() else None
    keras = _keras_for(serialized) if family is None else family.keras
    if is_keras_3(keras):
        return deserialize_optimizer(keras, _for_keras_3(keras, serialized), custom_objects, False)
    reads_legacy = (serialized.get("config") or {}).get("is_legacy_optimizer") is not False
    legacy = reads_legacy if family is None else family.kind is KerasKind.LEGACY
    return deserialize_optimizer(keras, serialized, custom_objects, legacy)


def _keras_for(serialized: Config) -> ModuleType:
    """Returns the Keras that is reading a file, or else the loaded one that wrote `serialized`."""
    config = serialized.get("config") or {}
    from_keras_3 = "gradient_accumulation_steps" in config
    from_keras_2 = "is_legacy_optimizer" in config or "decay" in config
    calling = calling_keras()
    if calling is not None:
        return calling
    if from_keras_3 or from_keras_2:
        for family in loaded_families():
            if is_keras_3(family.keras) == from_keras_3:
                return family.keras
    return tf.keras


def _for_keras_3(keras: ModuleType, serialized: Config) -> Config:
    """Returns a serialized optimizer in the form of Keras 3, which it may already have."""
    arguments = dict(serialized.get("config") or {})
    if "lr" in arguments:
        arguments["learning_rate"] = arguments.pop("lr")
    decay = arguments.pop("decay", None)
    if decay:  # in Keras 2, learning_rate / (1 + decay * iterations)
        schedules = keras.optimizers.schedules
        schedule = schedules.InverseTimeDecay(arguments["learning_rate"], 1, decay)
        arguments["learning_rate"] = schedules.serialize(schedule)
    for name in ("is_legacy_optimizer", "jit_compile"):  # Keras 3 has neither; results are the same
        arguments.pop(name, None)
    class_name = serialized["class_name"].rpartition(">")[2]  # "Custom>Adam" in 2.11
    return {**serialized, "class_name": class_name, "config": arguments}
