"""The settings of TensorFlow's and Keras's optimizers, under one name for all versions."""

import contextlib
import numbers
from typing import Any, Dict, Optional, Union

from tf_lossscale._versions.base import tf
from tf_lossscale._versions.keras import keras_family

__all__ = ["settings_of"]

_ATTRIBUTES = {
    # The attribute in Keras, and the one in `tf.compat.v1.train`.
    "learning_rate": ("learning_rate", "_learning_rate", "_lr"),
    "momentum": ("momentum", "_momentum"),
    "nesterov": ("nesterov", "_use_nesterov"),
    "beta_1": ("beta_1", "_beta1"),
    "beta_2": ("beta_2", "_beta2"),
    "rho": ("rho", "_rho", "_decay"),
    "epsilon": ("epsilon", "_epsilon"),
    "initial_accumulator_value": ("initial_accumulator_value", "_initial_accumulator_value"),
}
_OPTIONS = ("clipnorm", "clipvalue", "global_clipnorm", "weight_decay")
"""Those of Keras that are None, 0 or not there if they are not used."""


def settings_of(optimizer: Any) -> Dict[str, Optional[Union[bool, float]]]:
    """Returns the current settings of an optimizer that are plain numbers; no schedules.

    The value is None if an option is not used. Settings whose value cannot be read, such as the
    placeholders of a graph, are left out.
    """
    found: Dict[str, Optional[Union[bool, float]]] = {}
    with tf.init_scope():
        for name, attributes in _ATTRIBUTES.items():
            for attribute in attributes:
                value = _number(optimizer, attribute)
                if value is not None:
                    found[name] = value
                    break
        if keras_family(optimizer) is not None:
            for name in _OPTIONS:
                with contextlib.suppress(Exception):
                    is_set = bool(getattr(optimizer, name, None))
                    value = _number(optimizer, name) if is_set else None
                    if value is not None or not is_set:
                        found[name] = value
    return found


def _number(optimizer: Any, name: str) -> Optional[Union[bool, float]]:
    # An attribute can be a property of a user's class, or a variable that has no value.
    with contextlib.suppress(Exception):
        value = getattr(optimizer, name)
        if hasattr(value, "numpy"):
            value = value.numpy()
        if isinstance(value, bool):
            return value
        if isinstance(value, numbers.Real) or getattr(value, "shape", None) == ():
            return float(value)
    return None
