"""What a record says about a loss-scale optimizer, of TensorFlow, Keras or ours, and its process.

The classes are recognized by their attributes, which ours have in common with the originals.
"""

import contextlib
import hashlib
import platform
import sys
from typing import Any, List, NamedTuple, Optional, Sequence

import numpy as np

from tf_lossscale._recording.record import RunHeader, ScaleParameters
from tf_lossscale._versions.base import tf

__all__ = ["LossScale", "hash_of", "inner_optimizer", "loss_scale_of", "run_header", "shape_of"]


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


def inner_optimizer(optimizer: Any) -> Any:
    """Returns the wrapped optimizer."""
    if hasattr(optimizer, "_loss_scale_manager"):
        return optimizer._opt
    if hasattr(type(optimizer), "inner_optimizer") or hasattr(optimizer, "step_counter"):
        return optimizer.inner_optimizer
    return optimizer._optimizer


def loss_scale_of(optimizer: Any) -> LossScale:
    """Returns the loss scale of an optimizer."""
    if hasattr(optimizer, "_loss_scale_manager"):
        return _of_manager(optimizer._loss_scale_manager)
    if hasattr(type(optimizer), "dynamic_counter"):
        return _of_keras_2(optimizer)
    if hasattr(optimizer, "step_counter"):
        return _of_keras_3(optimizer)
    return _of_v1(optimizer._loss_scale)  # or the Keras class up to TensorFlow 2.3


def _of_manager(manager: Any) -> LossScale:
    name = type(manager).__name__ if _is_known(manager) else None
    rule, good, bad = ScaleParameters(), None, None
    if name == "FixedLossScaleManager":
        rule = ScaleParameters("fixed")
    elif name == "ExponentialUpdateLossScaleManager":
        good, bad = manager._num_good_steps, manager._num_bad_steps
        every, factor = manager._incr_every_n_steps, manager._incr_ratio
        bad_every, bad_factor = manager._decr_every_n_nan_or_inf, manager._decr_ratio
        with contextlib.suppress(TypeError, ValueError):  # one is a tensor of a graph
            numbers = int(every), float(factor), int(bad_every), float(bad_factor)
            rule = ScaleParameters("exponential", None, *numbers)
    return LossScale(rule, manager.get_loss_scale(), good, bad, tests_gradients=True)


def _of_v1(loss_scale: Any) -> LossScale:
    name = type(loss_scale).__name__ if _is_known(loss_scale) else None
    if name == "DynamicLossScale":
        rule = _dynamic(loss_scale.increment_period, loss_scale.multiplier)
        return LossScale(rule, loss_scale(), loss_scale._num_good_steps, None, True)
    rule = ScaleParameters("fixed") if name == "FixedLossScale" else ScaleParameters()
    return LossScale(rule, loss_scale(), None, None, False)


def _of_keras_2(optimizer: Any) -> LossScale:
    scale, counter = tf.convert_to_tensor(optimizer.loss_scale), optimizer.dynamic_counter
    if not optimizer.dynamic or counter is None:  # without a counter, of a user's own class
        rule = ScaleParameters() if optimizer.dynamic else ScaleParameters("fixed")
        return LossScale(rule, scale, None, None, False)
    rule = _dynamic(optimizer.dynamic_growth_steps, optimizer._loss_scale.multiplier)
    return LossScale(rule, scale, counter, None, True)


def _dynamic(growth_steps: Any, multiplier: Any) -> ScaleParameters:
    factor = float(multiplier)
    return ScaleParameters("dynamic", None, int(growth_steps), factor, 1, 1 / factor)


def _of_keras_3(optimizer: Any) -> LossScale:
    rule = ScaleParameters("keras3", None, int(optimizer.dynamic_growth_steps))
    return LossScale(rule, optimizer.dynamic_scale.value, optimizer.step_counter.value, None, True)


def _is_known(loss_scale: Any) -> bool:
    # A user's own class may update the scale in another way.
    return type(loss_scale).__module__.split(".")[0] in (
        "tensorflow",
        "tensorflow_core",
        "tf_lossscale",
    )


def hash_of(variables: Sequence[Any]) -> Optional[str]:
    """Returns a hash of the values of variables; None where they have none yet.

    That is so in the graph of a Session.
    """
    digest = hashlib.sha256()
    with tf.init_scope():
        if not tf.executing_eagerly():
            return None
        try:
            for variable in variables:
                value = np.asarray(_first_copy(variable).numpy())
                digest.update(np.ascontiguousarray(value).tobytes())
        except Exception:  # not initialized, or without `numpy`
            return None
    return digest.hexdigest()[:16]


def _first_copy(variable: Any) -> Any:
    """Returns the copy of the first replica; the variable itself without copies."""
    plain = variable.value if hasattr(type(variable), "path") else variable  # of Keras 3
    copies = getattr(plain, "values", None)
    return copies[0] if isinstance(copies, tuple) else plain


def shape_of(variable: Any) -> List[int]:
    """Returns the shape of a variable; -1 for an unknown dimension."""
    return [-1 if each is None else int(each) for each in tf.TensorShape(variable.shape).as_list()]


def run_header(replicas: int, xla: Optional[bool]) -> RunHeader:
    """Returns the first line of a record, which describes this process."""
    devices = {each.device_type for each in tf.config.experimental.list_physical_devices()}
    keras = next(
        (sys.modules[name] for name in ("tf_keras", "keras") if name in sys.modules), None
    ) or getattr(tf, "keras", None)
    version = getattr(keras, "__version__", None)
    return RunHeader(
        tensorflow=tf.__version__,
        keras=None if version is None else str(version),
        python=platform.python_version(),
        devices=sorted(each for each in devices if not each.startswith("XLA_")),
        replicas=replicas,
        xla=xla,
    )
