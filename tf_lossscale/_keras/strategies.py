"""The strategies under which the Keras optimizers scale losses, and the switch for others."""

from typing import List, Tuple

from tf_lossscale._versions.base import has, tf, tf1
from tf_lossscale._versions.releases import Since

_SUPPORTED = ("MirroredStrategy", "MultiWorkerMirroredStrategy", "OneDeviceStrategy")
_SWITCH = "tf_lossscale.keras.mixed_precision.allow_strategy"

_allowed: List[type] = []
"""The classes that the program has allowed."""


def allow_strategy(strategy_class: type) -> None:
    """Lets the Keras loss-scale optimizers be used under a strategy that they refuse otherwise.

    From TensorFlow 2.2 on, TensorFlow's class raises a ValueError under strategies that it does not
    know: those of other packages, and all of TensorFlow but `MirroredStrategy`,
    `MultiWorkerMirroredStrategy` and `OneDeviceStrategy`. So does the shim's. Programs replace a
    private function of Keras to use another one; call this function instead, before the optimizer
    is made. It holds for the class and its subclasses, until the process ends.

    A step then calls `merge_call` of the replica context, and sums gradients with the strategy's
    own reduction. None of that is tested under any strategy but those three. Check two things
    before you train: after a step, all replicas have the same weights; and a NaN in the gradients
    of one replica skips the step on all.

    Examples:
      >>> import tensorflow as tf
      >>> import tf_lossscale as tfls
      >>> class Cluster(tf.distribute.Strategy):
      ...     pass
      >>> tfls.keras.mixed_precision.allow_strategy(Cluster)

    Args:
      strategy_class: a subclass of `tf.distribute.Strategy`.

    Raises:
      TypeError: `strategy_class` is not such a class.
    """
    bases = _classes("Strategy")
    if not isinstance(strategy_class, type) or not issubclass(strategy_class, bases):
        raise TypeError(
            "allow_strategy() takes a subclass of tf.distribute.Strategy, such as "
            f"type(strategy), but got: {strategy_class!r}."
        )
    if strategy_class not in _allowed:
        _allowed.append(strategy_class)


def refuse_unsupported() -> None:
    """Raises a ValueError under a strategy for which the original does not support loss scaling.

    The class of TensorFlow 1.15 accepts every strategy, and so does our class on that version.
    """
    if not has(Since.KERAS_REFUSES_STRATEGIES) or not tf.distribute.has_strategy():
        return
    strategy = tf.distribute.get_strategy()
    if isinstance(strategy, (*_classes(*_SUPPORTED), *_allowed)):
        return
    name = type(strategy).__name__
    switch = f"call {_SWITCH}({name})"
    if isinstance(strategy, _classes("TPUStrategy")):
        raise ValueError(
            "Loss scaling is not supported with TPUStrategy. Loss scaling is unnecessary with "
            "TPUs, since they support bfloat16 instead of float16 and bfloat16 does not require "
            "loss scaling. You should remove the use of the LossScaleOptimizer when TPUs are used. "
            f"If you need it nevertheless, {switch}."
        )
    raise ValueError(
        f"Loss scaling is not supported with the tf.distribute.Strategy: {name}. Try using a "
        "different Strategy, e.g. a MirroredStrategy. If the strategy sums gradients over its "
        f"replicas as MirroredStrategy does, {switch} before the optimizer is made."
    )


def _classes(*names: str) -> Tuple[type, ...]:
    spaces = [space for api in (tf, tf1) for space in (api.distribute, api.distribute.experimental)]
    return tuple(getattr(space, name) for space in spaces for name in names if hasattr(space, name))
