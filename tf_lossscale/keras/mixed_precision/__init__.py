"""`tf.keras.mixed_precision` (TensorFlow 2.4 and later), as Keras 2 has it."""

from tf_lossscale._namespace import TYPE_CHECKING, attach as _attach

if TYPE_CHECKING:
    from tf_lossscale._keras.experimental import from_loss_scale as from_loss_scale
    from tf_lossscale._keras.final import LossScaleOptimizer as LossScaleOptimizer
    from tf_lossscale._keras.policy import (
        Policy as Policy,
        global_policy as global_policy,
        set_global_policy as set_global_policy,
    )
    from tf_lossscale._keras.strategies import allow_strategy as allow_strategy
    from tf_lossscale._keras.wrap import wrap as wrap
    from tf_lossscale.keras.mixed_precision import experimental as experimental
else:  # unseen, or each name would be known to a type checker
    __all__, __getattr__, __dir__ = _attach(
        __name__, ("experimental",), allow_strategy="_keras.strategies", wrap="_keras.wrap"
    )
