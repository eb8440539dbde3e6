"""The strategies of `tf.distribute` under which the loss can be scaled."""

from typing import Any, Tuple

from tf_lossscale._versions.base import tf, tf1
from tf_lossscale._versions.keras_optimizers import KERAS_REFUSES_STRATEGIES

__all__ = ["refuse_unsupported"]

_SUPPORTED = ("MirroredStrategy", "MultiWorkerMirroredStrategy", "OneDeviceStrategy")
_TPU = ("TPUStrategy",)


def refuse_unsupported() -> None:
    """Raises a ValueError under a strategy for which the original does not support loss scaling.

    The class of TensorFlow 1.15 accepts every strategy, and so does our class on that version.
    """
    if not KERAS_REFUSES_STRATEGIES or not tf.distribute.has_strategy():
        return
    strategy = tf.distribute.get_strategy()
    if isinstance(strategy, _classes(_TPU)):
        raise ValueError(
            "Loss scaling is not supported with TPUStrategy. Loss scaling is unnecessary with "
            "TPUs, since they support bfloat16 instead of float16 and bfloat16 does not require "
            "loss scaling. You should remove the use of the LossScaleOptimizer when TPUs are used."
        )
    if not isinstance(strategy, _classes(_SUPPORTED)):
        raise ValueError(
            "Loss scaling is not supported with the tf.distribute.Strategy: "
            f"{type(strategy).__name__}. Try using a different Strategy, e.g. a MirroredStrategy"
        )


def _classes(names: Tuple[str, ...]) -> Tuple[Any, ...]:
    namespaces = (
        tf.distribute,
        tf.distribute.experimental,
        tf1.distribute,
        tf1.distribute.experimental,
    )
    found = [getattr(space, name, None) for space in namespaces for name in names]
    return tuple(cls for cls in found if cls is not None)
