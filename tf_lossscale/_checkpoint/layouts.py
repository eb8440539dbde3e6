"""The classes that store a loss scale, and how each one's variables are told from the others'.

Everything here is data. `names` and `objects` find these layouts in TensorFlow checkpoints, and
`keras_files` in the files of Keras.
"""

from typing import Dict, NamedTuple, Optional, Tuple, Union

__all__ = [
    "BAD_STEPS",
    "CONTRIB",
    "GOOD_STEPS",
    "KERAS_3",
    "KERAS_A",
    "KERAS_B",
    "KERAS_C",
    "KERAS_NAMES",
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
    """One way to store a loss scale.

    Attributes:
      family: what `convert --to` calls the class; empty for a class that we do not know.
      written_by: the class.
      tensorflow: the versions that have the class or the layout.
      restored_by: the classes that read it, ours first.
      roles: the last part of a variable's key, and what the variable holds.
      notes: what a reader of such a file should know.
    """

    family: str
    written_by: str
    tensorflow: str
    restored_by: Tuple[str, ...]
    roles: Dict[str, str]
    notes: Tuple[str, ...] = ()


class Variable(NamedTuple):
    """One variable of a loss scale; `value` is None for what is no number."""

    key: str
    role: str
    dtype: str
    value: Optional[Union[int, float]]


class State(NamedTuple):
    """One loss scale in a file."""

    layout: Layout
    variables: Tuple[Variable, ...]


class Configured(NamedTuple):
    """A loss-scale optimizer that the configuration in a model file describes."""

    class_name: str
    settings: Dict[str, object]
    note: str


class Contents(NamedTuple):
    """What one file holds.

    Attributes:
      path: the file, or the prefix of a TensorFlow checkpoint.
      format: its format, in words.
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
    notes=("the names of variables do not tell which version of tf.keras wrote them",),
)

KERAS_A = Layout(
    family="keras",
    written_by="tf.keras.mixed_precision.experimental.LossScaleOptimizer",
    tensorflow="1.14 to 2.2",
    restored_by=(
        f"{_KERAS} over a Keras 2 optimizer (`legacy` from 2.11 on)",
        "tf.keras.mixed_precision.experimental.LossScaleOptimizer (TensorFlow 1.14 to 2.2)",
    ),
    roles=_V1_ROLES,
    notes=(
        "the classes of TensorFlow 2.3 and later restore the loss scale and the slots of this "
        "layout, but start the iterations and the hyper-parameters of the optimizer anew; those of "
        "tf_lossscale restore all",
    ),
)

KERAS_B = Layout(
    family="keras",
    written_by="tf.keras.mixed_precision[.experimental].LossScaleOptimizer over a Keras 2 "
    "optimizer (`legacy` from 2.11 on)",
    tensorflow="2.3 and later, tf_keras",
    restored_by=(
        f"{_KERAS} over the same",
        "tf.keras.mixed_precision.LossScaleOptimizer over the same (2.4 to 2.15, tf_keras; "
        ".experimental from 2.3 to 2.8)",
    ),
    roles=_V1_ROLES,
)

KERAS_C = Layout(
    family="keras",
    written_by="tf.keras.mixed_precision.LossScaleOptimizer over a Keras 2 optimizer of 2.11 or "
    "later (not `legacy`)",
    tensorflow="2.11 to 2.15, tf_keras",
    restored_by=(
        f"{_KERAS} over the same",
        "tf.keras.mixed_precision.LossScaleOptimizer over the same (2.11 to 2.15, tf_keras)",
    ),
    roles=_V1_ROLES,
)

KERAS_3 = Layout(
    family="keras3",
    written_by="keras.mixed_precision.LossScaleOptimizer of Keras 3",
    tensorflow="2.16 and later",
    restored_by=(
        f"{_KERAS} over a Keras 3 optimizer",
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
