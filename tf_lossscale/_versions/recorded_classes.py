"""Where each version defines TensorFlow's and Keras's own loss-scale optimizers.

Imports nothing of TensorFlow: a recording may begin before TensorFlow is imported.
"""

from typing import Dict, NamedTuple, Tuple

__all__ = ["RECORDED_CLASSES", "Recorded"]


class Recorded(NamedTuple):
    """A class whose steps can be recorded.

    Attributes:
      name: the class.
      family: `contrib`, `v1`, `keras2` or `keras3`.
      loss_methods: the methods whose first argument is the unscaled loss.
      step_method: the method that makes a step.
      inner_method: the method of the inner optimizer that applies the gradients.
      takes_pairs: whether `step_method` takes pairs of a gradient and its variable; otherwise it
        takes the gradients and the variables.
      gradients_are_scaled: whether it takes gradients of the scaled loss.
    """

    name: str
    family: str
    loss_methods: Tuple[str, ...]
    step_method: str = "apply_gradients"
    inner_method: str = "apply_gradients"
    takes_pairs: bool = True
    gradients_are_scaled: bool = False


_CONTRIB = (Recorded("LossScaleOptimizer", "contrib", ("compute_gradients",)),)
_V1 = (Recorded("MixedPrecisionLossScaleOptimizer", "v1", ("compute_gradients",)),)
_KERAS_2 = (
    Recorded("LossScaleOptimizer", "keras2", ("get_scaled_loss",)),
    Recorded("LossScaleOptimizerV3", "keras2", ("get_scaled_loss",)),
)
_KERAS_3 = (
    Recorded("LossScaleOptimizer", "keras3", ("scale_loss",), "apply", "apply", False, True),
)

RECORDED_CLASSES: Dict[str, Tuple[Recorded, ...]] = {
    "tensorflow.contrib.mixed_precision.python.loss_scale_optimizer": _CONTRIB,
    "tensorflow_core.contrib.mixed_precision.python.loss_scale_optimizer": _CONTRIB,
    "tensorflow.python.training.experimental.loss_scale_optimizer": _V1,
    "tensorflow_core.python.training.experimental.loss_scale_optimizer": _V1,
    "tensorflow_core.python.keras.mixed_precision.experimental.loss_scale_optimizer": _KERAS_2,
    "tensorflow.python.keras.mixed_precision.experimental.loss_scale_optimizer": _KERAS_2,
    "tensorflow.python.keras.mixed_precision.loss_scale_optimizer": _KERAS_2,
    "keras.mixed_precision.loss_scale_optimizer": _KERAS_2,
    "keras.src.mixed_precision.loss_scale_optimizer": _KERAS_2,
    "tf_keras.src.mixed_precision.loss_scale_optimizer": _KERAS_2,
    "keras.src.optimizers.loss_scale_optimizer": _KERAS_3,
}
"""By module name, for all versions. Our own classes report their steps themselves."""
