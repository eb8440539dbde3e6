"""`tf.compat.v1.mixed_precision.experimental` (TensorFlow 2.1 and later): loss scales."""

from tf_lossscale._namespace import TYPE_CHECKING, attach as _attach

if TYPE_CHECKING:
    from tf_lossscale.mixed_precision.experimental import *
else:  # unseen, or each name would be known to a type checker
    __all__, __getattr__, __dir__ = _attach(__name__)
