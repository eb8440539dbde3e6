"""The layouts in which classes store a loss scale.

This module contains only data. `finding` recognizes these layouts in TensorFlow checkpoints, and
`keras_files` in Keras files.
"""

from typing import Dict, NamedTuple, Optional, Tuple, Union

__all__ = [
    "BAD_STEPS",
    "CONTRIB",
    "COUNTERS",
    "GOOD_STEPS",
    "KERAS_1_14",
    "KERAS_2_3",
    "KERAS_2_11",
    "KERAS_3",
    "KERAS_NAMES",
    "LAYOUTS",
    "LOSS_SCALE",
    "UNKNOWN",
    "V1",
    "Configured",
    "Contents",
    "Layout",
    "State",
    "Variable",
]

LOSS_SCALE = "loss scale"
GOOD_STEPS = "good steps"
BAD_STEPS = "bad steps"


class Layout(NamedTuple):
    """A layout in which a loss scale is stored.

    Attributes:
      family: the name of the class for `convert --to`; empty for an unknown class.
      written_by: the class that writes it.
      tensorflow: the versions of TensorFlow that have the class or the layout.
      restored_by: the classes that can read it, those of the shim first.
      roles: the role of each variable, by the last part of its key.
      notes: notes for the user of such a file.
    """

    family: str
    written_by: str
    tensorflow: str
    restored_by: Tuple[str, ...]
    roles: Dict[str, str]
    notes: Tuple[str, ...] = ()


class Variable(NamedTuple):
    """A variable of a loss scale; `value` is None if it is not a number."""

    key: str
    role: str
    dtype: str
    value: Optional[Union[int, float]]


class State(NamedTuple):
    """A loss scale in a file."""

    layout: Layout
    variables: Tuple[Variable, ...]


class Configured(NamedTuple):
    """A loss-scale optimizer that the configuration in a model file describes."""

    class_name: str
    settings: Dict[str, object]
    note: str


class Contents(NamedTuple):
    """The loss-scale state in a file.

    Attributes:
      path: the file, or the prefix of a TensorFlow checkpoint.
      format: the name of its format.
      states: the loss scales in it.
      configured: the loss-scale optimizers that it describes without their state.
    """

    path: str
    format: str
    states: Tuple[State, ...]
    configured: Tuple[Configured, ...] = ()


_V1_ROLES = {"current_loss_scale": LOSS_SCALE, "good_steps": GOOD_STEPS}
_KERAS = "tf_lossscale.keras.mixed_precision[.experimental].LossScaleOptimizer"

CONTRIB = Layout(
    family="contrib",
    written_by="ExponentialUpdateLossScaleManager of tf.contrib.mixed_precision",
    tensorflow="1.15 and earlier",
    restored_by=(
        "tf_lossscale.contrib.mixed_precision.ExponentialUpdateLossScaleManager",
        "tf.contrib.mixed_precision.ExponentialUpdateLossScaleManager (TensorFlow 1.15 and "
        "earlier)",
    ),
    roles={"loss_scale": LOSS_SCALE, "good_steps": GOOD_STEPS, "bad_steps": BAD_STEPS},
)

V1 = Layout(
    family="v1",
    written_by="DynamicLossScale, alone or in a MixedPrecisionLossScaleOptimizer",
    tensorflow="1.14 and later",
    restored_by=(
        "tf_lossscale.compat.v1.mixed_precision.DynamicLossScale",
        "tf.compat.v1.mixed_precision.DynamicLossScale (2.4 and later; tf.train.experimental in "
        "1.14 and 1.15, tf.compat.v1.train.experimental in all)",
    ),
    roles=_V1_ROLES,
)

KERAS_NAMES = Layout(
    family="keras",
    written_by="LossScaleOptimizer of tf.keras, in graph mode",
    tensorflow="1.14 and later",
    restored_by=(_KERAS, "LossScaleOptimizer of tf.keras, in graph mode"),
    roles=_V1_ROLES,
    notes=("the variable names do not show which version of tf.keras wrote them",),
)

KERAS_1_14 = Layout(
    family="keras",
    written_by="tf.keras.mixed_precision.experimental.LossScaleOptimizer",
    tensorflow="1.14 to 2.2",
    restored_by=(
        f"{_KERAS} around a Keras 2 optimizer (`legacy` from 2.11 on)",
        "tf.keras.mixed_precision.experimental.LossScaleOptimizer (TensorFlow 1.14 to 2.2)",
    ),
    roles=_V1_ROLES,
    notes=(
        "from this layout, the classes of TensorFlow 2.3 and later restore the loss scale and the "
        "slots, but not the iterations and hyperparameters of the optimizer; those of "
        "tf_lossscale restore everything",
    ),
)

KERAS_2_3 = Layout(
    family="keras",
    written_by="tf.keras.mixed_precision[.experimental].LossScaleOptimizer around a Keras 2 "
    "optimizer (`legacy` from 2.11 on)",
    tensorflow="2.3 and later, tf_keras",
    restored_by=(
        f"{_KERAS} around the same",
        "tf.keras.mixed_precision.LossScaleOptimizer around the same (2.4 to 2.15, tf_keras; "
        ".experimental from 2.3 to 2.8)",
    ),
    roles=_V1_ROLES,
)

KERAS_2_11 = Layout(
    family="keras",
    written_by="tf.keras.mixed_precision.LossScaleOptimizer around a Keras 2 optimizer of 2.11 or "
    "later (not `legacy`)",
    tensorflow="2.11 to 2.15, tf_keras",
    restored_by=(
        f"{_KERAS} around the same",
        "tf.keras.mixed_precision.LossScaleOptimizer around the same (2.11 to 2.15, tf_keras)",
    ),
    roles=_V1_ROLES,
)

KERAS_3 = Layout(
    family="keras3",
    written_by="keras.mixed_precision.LossScaleOptimizer of Keras 3",
    tensorflow="2.16 and later",
    restored_by=(
        f"{_KERAS} around a Keras 3 optimizer",
        "keras.mixed_precision.LossScaleOptimizer of Keras 3 (also keras.optimizers)",
    ),
    roles={"dynamic_scale": LOSS_SCALE, "step_counter": GOOD_STEPS},
)

UNKNOWN = Layout(
    family="",
    written_by="no class that tf-lossscale knows",
    tensorflow="unknown",
    restored_by=(),
    roles={
        "loss_scale": LOSS_SCALE,
        "current_loss_scale": LOSS_SCALE,
        "dynamic_scale": LOSS_SCALE,
    },
)

LAYOUTS = (CONTRIB, V1, KERAS_NAMES, KERAS_1_14, KERAS_2_3, KERAS_2_11, KERAS_3, UNKNOWN)

# The integer type of each class's counters; it distinguishes `good_steps` of different classes.
COUNTERS = {"contrib": "int32", "v1": "int64", "keras": "int64"}
