"""`tf.compat.v1.mixed_precision` (TensorFlow 2.4 and later)."""

from tf_lossscale._namespace import TYPE_CHECKING, attach as _attach

if TYPE_CHECKING:
    from tf_lossscale.compat.v1.mixed_precision import experimental as experimental
    from tf_lossscale.train.experimental import *
else:  # unseen, or each name would be known to a type checker
    __all__, __getattr__, __dir__ = _attach(__name__, ("experimental",))
