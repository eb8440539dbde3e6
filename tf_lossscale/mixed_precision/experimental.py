"""`tf.mixed_precision.experimental` (TensorFlow 2.1 to 2.8): loss scales."""

from tf_lossscale._namespace import TYPE_CHECKING, attach as _attach

if TYPE_CHECKING:
    from tf_lossscale._core.loss_scales import (
        DynamicLossScale as DynamicLossScale,
        FixedLossScale as FixedLossScale,
        LossScale as LossScale,
    )
else:  # unseen, or each name would be known to a type checker
    __all__, __getattr__, __dir__ = _attach(__name__)
