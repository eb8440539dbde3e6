"""What a record says about a loss-scale optimizer, of TensorFlow, Keras or ours."""

import hashlib
from typing import Any, List, NamedTuple, Optional, Sequence

import numpy as np

from tf_lossscale._recording.record import ScaleParameters
from tf_lossscale._versions.base import tf
from tf_lossscale._versions.recorded_classes import Recorded

__all__ = [
    "LossScale",
    "Variables",
    "hash_of",
    "inner_optimizer",
    "loss_scale_of",
    "skips_after_all",
]


class LossScale(NamedTuple):
    """The loss scale of an optimizer.

    Attributes:
      parameters: its update rule; the scale and the counts of the first step are not filled in.
      value: the current scale: a tensor, variable or number.
      good_steps: the variable that counts finite steps, or None.
      bad_steps: the variable that counts non-finite steps, or None.
      tests_gradients: whether exactly the steps with finite gradients are applied.
    """

    parameters: ScaleParameters
    value: Any
    good_steps: Optional[Any]
    bad_steps: Optional[Any]
    tests_gradients: bool


def inner_optimizer(kind: Recorded, optimizer: Any) -> Any:
    """Returns the wrapped optimizer."""
    if kind.family == "contrib":
        return optimizer._opt
    return optimizer.inner_optimizer if kind.family == "keras3" else optimizer._optimizer


def skips_after_all(optimizer: Any, inner: Any) -> bool:
    """Returns whether a step may be skipped after the inner optimizer was called to apply it.

    Our Keras optimizers test the gradients again where the inner optimizer transforms them.
    """
    family = getattr(optimizer, "_family", None)
    if family is None:
        return False
    from tf_lossscale._versions.keras_updates import update_methods

    return update_methods(family, inner) is not None


def loss_scale_of(kind: Recorded, optimizer: Any) -> LossScale:
    """Returns the loss scale of an optimizer."""
    if kind.family == "contrib":
        return _of_manager(optimizer._loss_scale_manager)
    if kind.family == "v1":
        return _of_v1(optimizer._loss_scale)
    if kind.family == "keras3":
        return _of_keras_3(optimizer)
    if hasattr(type(optimizer), "dynamic_counter"):
        return _of_keras_2(optimizer)
    return _of_v1(optimizer._loss_scale)  # up to TensorFlow 2.3


def _of_manager(manager: Any) -> LossScale:
    known = _is_known(manager)
    rule, good, bad = ScaleParameters(), None, None
    if known and type(manager).__name__ == "FixedLossScaleManager":
        rule = ScaleParameters("fixed")
    elif known and type(manager).__name__ == "ExponentialUpdateLossScaleManager":
        good, bad = manager._num_good_steps, manager._num_bad_steps
        numbers: Any = [
            _constant(each)
            for each in (
                manager._incr_every_n_steps,
                manager._incr_ratio,
                manager._decr_every_n_nan_or_inf,
                manager._decr_ratio,
            )
        ]
        if None not in numbers:
            every, factor, shrink_every, shrink_factor = numbers
            rule = ScaleParameters(
                "exponential", None, int(every), factor, int(shrink_every), shrink_factor
            )
    return LossScale(rule, manager.get_loss_scale(), good, bad, tests_gradients=True)


def _of_v1(loss_scale: Any) -> LossScale:
    if _is_known(loss_scale) and type(loss_scale).__name__ == "FixedLossScale":
        return LossScale(ScaleParameters("fixed"), loss_scale(), None, None, False)
    if not _is_known(loss_scale) or type(loss_scale).__name__ != "DynamicLossScale":
        return LossScale(ScaleParameters(), loss_scale(), None, None, False)
    multiplier = float(loss_scale.multiplier)
    rule = ScaleParameters(
        "dynamic", None, int(loss_scale.increment_period), multiplier, 1, 1 / multiplier
    )
    return LossScale(rule, loss_scale(), loss_scale._num_good_steps, None, True)


def _of_keras_2(optimizer: Any) -> LossScale:
    scale = tf.convert_to_tensor(optimizer.loss_scale)
    if not optimizer.dynamic:
        return LossScale(ScaleParameters("fixed"), scale, None, None, False)
    if optimizer.dynamic_counter is None:  # of a user's own class
        return LossScale(ScaleParameters(), scale, None, None, False)
    multiplier = float(optimizer._loss_scale.multiplier)
    steps = int(optimizer.dynamic_growth_steps)
    rule = ScaleParameters("dynamic", None, steps, multiplier, 1, 1 / multiplier)
    return LossScale(rule, scale, optimizer.dynamic_counter, None, True)


def _of_keras_3(optimizer: Any) -> LossScale:
    if hasattr(type(optimizer), "dynamic_counter"):  # ours, which updates as Keras 2 does
        return _of_keras_2(optimizer)
    rule = ScaleParameters("keras3", None, int(optimizer.dynamic_growth_steps))
    return LossScale(rule, optimizer.dynamic_scale.value, optimizer.step_counter.value, None, True)


def _is_known(loss_scale: Any) -> bool:
    # A user's own class may update the scale in another way.
    return type(loss_scale).__module__.split(".")[0] in (
        "tensorflow",
        "tensorflow_core",
        "tf_lossscale",
    )


def _constant(value: Any) -> Optional[float]:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None  # a tensor of a graph


class Variables:
    """The variables of a step, as a record describes them.

    Args:
      variables: of TensorFlow, or of Keras 3.
    """

    def __init__(self, variables: Sequence[Any]) -> None:
        self._variables = [_plain(each) for each in variables]
        self.names = [_name(each) for each in variables]
        self.shapes = [_shape(each) for each in variables]

    def values(self) -> Optional[List[np.ndarray]]:
        """Returns their values; None where they have none yet, such as in a Session's graph."""
        with tf.init_scope():
            if not tf.executing_eagerly():
                return None
            try:
                return [np.asarray(_first_copy(each).numpy()) for each in self._variables]
            except Exception:  # not initialized, or without `numpy`
                return None


def hash_of(values: Optional[Sequence[np.ndarray]]) -> Optional[str]:
    """Returns a hash of the values of variables."""
    if values is None:
        return None
    digest = hashlib.sha256()
    for value in values:
        digest.update(np.ascontiguousarray(value).tobytes())
    return digest.hexdigest()[:16]


def _name(variable: Any) -> str:
    # Other attributes of a distributed variable are looked up in a copy, which creates operations.
    name = variable.path if _is_of_keras_3(variable) else variable.name
    return str(name).split(":")[0]


def _plain(variable: Any) -> Any:
    return variable.value if _is_of_keras_3(variable) else variable


def _is_of_keras_3(variable: Any) -> bool:
    return hasattr(type(variable), "path")


def _first_copy(variable: Any) -> Any:
    """Returns the copy of the first replica; the variable itself without copies."""
    copies = getattr(variable, "values", None)
    return copies[0] if isinstance(copies, tuple) else variable


def _shape(variable: Any) -> List[int]:
    try:
        return [-1 if each is None else int(each) for each in tf.TensorShape(variable.shape)]
    except (TypeError, ValueError):  # the dimensions of TensorFlow 1.15
        sizes = tf.TensorShape(variable.shape).as_list()
        return [-1 if each is None else int(each) for each in sizes]
