"""What an optimizer of TensorFlow or Keras is set to: its options, learning rate and slots."""

import contextlib
import numbers
from typing import Any, Callable, Dict, List, Optional, Tuple, Union

from tf_lossscale._types import Optimizer, Tensor, Variable, Variables
from tf_lossscale._versions.base import tf, tf1
from tf_lossscale._versions.keras import keras_family
from tf_lossscale._versions.variables import first_copy, plain_variable

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


def settings_of(optimizer: Optimizer) -> Dict[str, Optional[Union[bool, float]]]:
    """Returns the current settings of an optimizer that are plain numbers; no schedules.

    The value is None if an option is not used. Settings whose value cannot be read, such as the
    placeholders of a graph, are left out.
    """
    found: Dict[str, Optional[Union[bool, float]]] = {}
    options = _OPTIONS if keras_family(optimizer) is not None else ()
    with tf.init_scope():
        for name in (*_ATTRIBUTES, *options):
            # A user's property or a variable without a value raises any error.
            with contextlib.suppress(Exception):
                values = (
                    _attribute(optimizer, attribute) for attribute in _ATTRIBUTES.get(name, [name])
                )
                value = next((value for value in values if value is not None), None)
                is_unused = name in options and not value
                number = None if is_unused else _number(value)
                if is_unused or number is not None:
                    found[name] = number
    return found


def _attribute(optimizer: Optimizer, name: str) -> Any:
    # `OptimizerV2` creates the variables of its settings where one is read as an attribute; their
    # place in a checkpoint would differ from an unrecorded run.
    hyper = vars(optimizer).get("_hyper", {})
    return hyper[name] if name in hyper else getattr(optimizer, name, None)


def _number(value: Any) -> Optional[Union[bool, float]]:
    if hasattr(value, "numpy"):
        value = value.numpy()
    if isinstance(value, bool):
        return value
    is_number = isinstance(value, numbers.Real) or getattr(value, "shape", None) == ()
    return float(value) if is_number else None


def rate_of(optimizer: Optimizer) -> Optional[Tensor]:
    """Returns the learning rate of the next step: a number or a scalar tensor; None if unknown.

    A schedule of TensorFlow or Keras is called as the optimizer calls it. One of the program is
    not: it may count its calls.
    """
    with contextlib.suppress(Exception):  # a user's property raises any error
        names = _ATTRIBUTES["learning_rate"]
        found = (_attribute(optimizer, name) for name in names)
        rate = next((value for value in found if value is not None), None)
        if callable(rate) and not isinstance(rate, tf.Variable):
            rate = _scheduled(optimizer, rate)
        rate = _scalar(rate)
        decay = getattr(optimizer, "_initial_decay", None)  # of `OptimizerV2`
        if rate is not None and decay:
            rate = rate / (1.0 + decay * tf.cast(_iterations(optimizer), tf.float32))
        return rate
    return None


def _scheduled(optimizer: Optimizer, rate: Callable[..., Tensor]) -> Optional[Tensor]:
    function = getattr(rate, "func", rate)  # of a `functools.partial`
    module = (getattr(function, "__module__", None) or type(function).__module__).split(".")[0]
    if module not in ("tensorflow", "tensorflow_core", "keras", "tf_keras"):
        return None
    if keras_family(optimizer) is None:
        return rate()  # of `tf.compat.v1.train` in eager mode
    return rate(tf.cast(_iterations(optimizer), tf.float32))


def _iterations(optimizer: Optimizer) -> Variable:
    # Reading the property creates the variable; its place in a checkpoint would be another one. In
    # Keras 3.0 to 3.5 it is a plain attribute.
    attributes = vars(optimizer)
    iterations = attributes.get("_iterations", attributes.get("iterations"))
    return 0 if iterations is None else plain_variable(iterations)


def _scalar(value: Any) -> Optional[Tensor]:
    """Returns a number, or a float tensor of shape `[]` of the current graph."""
    if isinstance(value, numbers.Real):
        return float(value)
    plain = plain_variable(value)
    if isinstance(plain, tf.Tensor) and not tf.executing_eagerly():
        if plain.graph is not tf1.get_default_graph():
            return None
    elif isinstance(plain, tf.Variable):
        plain = tf.convert_to_tensor(plain)
    is_scalar = isinstance(plain, tf.Tensor) and plain.shape.rank == 0
    return plain if is_scalar and plain.dtype.is_floating else None


def slots_of(optimizer: Optimizer, variables: Variables) -> Optional[List[Variable]]:
    """Returns the slot variables of trained variables that exist now; None if that is not certain.

    A checkpoint may have been restored into slots that do not exist yet.
    """
    with contextlib.suppress(Exception):
        attributes = vars(optimizer)
        if attributes.get("_deferred_slot_restorations") or attributes.get(
            "_deferred_dependencies"
        ):
            return None
        if keras_family(optimizer) is None:
            slots = [
                optimizer.get_slot(first_copy(variable), name)
                for name in optimizer.get_slot_names()
                for variable in variables
            ]
            return [slot for slot in slots if slot is not None]
        shapes = {_sizes(variable) for variable in variables}
        own = attributes.get("_weights", attributes.get("_variables", []))
        return [slot for slot in own if _sizes(slot) and _sizes(slot) in shapes]
    return None


def _sizes(variable: Variable) -> Tuple[Optional[int], ...]:
    return tuple(tf.TensorShape(variable.shape).as_list())
