"""`tf.train.experimental` (TensorFlow 1.14 to 2.8): loss scales, optimizer, graph rewrite."""

from tf_lossscale._namespace import TYPE_CHECKING, attach as _attach

if TYPE_CHECKING:
    from tf_lossscale._core.loss_scales import (
        DynamicLossScale as DynamicLossScale,
        FixedLossScale as FixedLossScale,
        LossScale as LossScale,
    )
    from tf_lossscale._v1.optimizer import (
        MixedPrecisionLossScaleOptimizer as MixedPrecisionLossScaleOptimizer,
        disable_mixed_precision_graph_rewrite as disable_mixed_precision_graph_rewrite,
        enable_mixed_precision_graph_rewrite as enable_mixed_precision_graph_rewrite,
    )
else:  # unseen, or each name would be known to a type checker
    __all__, __getattr__, __dir__ = _attach(__name__)
