"""`tf.contrib.mixed_precision` (TensorFlow up to 1.15)."""

from tf_lossscale._namespace import TYPE_CHECKING, attach as _attach

if TYPE_CHECKING:
    from tf_lossscale._v1.contrib import LossScaleOptimizer as LossScaleOptimizer
    from tf_lossscale._v1.managers import (
        ExponentialUpdateLossScaleManager as ExponentialUpdateLossScaleManager,
        FixedLossScaleManager as FixedLossScaleManager,
        LossScaleManager as LossScaleManager,
    )
else:  # unseen, or each name would be known to a type checker
    __all__, __getattr__, __dir__ = _attach(__name__)
