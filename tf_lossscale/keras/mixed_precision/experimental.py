"""`tf.keras.mixed_precision.experimental` (TensorFlow 1.14 to 2.8)."""

from tf_lossscale._namespace import TYPE_CHECKING, attach as _attach

if TYPE_CHECKING:
    from tf_lossscale._keras.experimental import LossScaleOptimizer as LossScaleOptimizer
    from tf_lossscale._keras.policy import (
        ExperimentalPolicy as Policy,
        experimental_global_policy as global_policy,
        get_layer_policy as get_layer_policy,
        set_policy as set_policy,
    )
else:  # unseen, or each name would be known to a type checker
    __all__, __getattr__, __dir__ = _attach(__name__)
