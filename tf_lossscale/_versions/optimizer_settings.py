"""The settings of TensorFlow's and Keras's optimizers, under one name for all versions."""

import contextlib
import numbers
from typing import Any, Dict, Optional, Union

from tf_lossscale._versions.base import tf
from tf_lossscale._versions.keras import keras_family

__all__ = ["settings_of"]

_ATTRIBUTES = {
    # The attribute in Keras, and the one in `tf.compat.v1.train`. The public one of the learning
    # rate calls a schedule.
    "learning_rate": ("_learning_rate", "learning_rate", "_lr"),
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
            # A user's property or a variable without a value raises any error.
            with contextlib.suppress(Exception):
                values = (_attribute(optimizer, each) for each in attributes)
                value = _number(next(each for each in values if each is not None))
                if value is not None:
                    found[name] = value
        if keras_family(optimizer) is not None:
            for name in _OPTIONS:
                with contextlib.suppress(Exception):
                    option = _attribute(optimizer, name)
                    value = _number(option) if option else None
                    if value is not None or not option:
                        found[name] = value
    return found


def _attribute(optimizer: Any, name: str) -> Any:
    # `OptimizerV2` creates the variables of its settings where one is read as an attribute; their
    # place in a checkpoint would not be that of an unrecorded run.
    hyper = vars(optimizer).get("_hyper", {})
    return hyper[name] if name in hyper else getattr(optimizer, name, None)


def _number(value: Any) -> Optional[Union[bool, float]]:
    if hasattr(value, "numpy"):
        value = value.numpy()
    if isinstance(value, bool):
        return value
    is_number = isinstance(value, numbers.Real) or getattr(value, "shape", None) == ()
    return float(value) if is_number else None
