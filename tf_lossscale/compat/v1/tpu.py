"""`tf.compat.v1.tpu` (TensorFlow 1.14 and later): the cross-shard names."""

from tf_lossscale._namespace import TYPE_CHECKING, attach as _attach

if TYPE_CHECKING:
    from tf_lossscale.tpu import *
else:  # unseen, or each name would be known to a type checker
    __all__, __getattr__, __dir__ = _attach(__name__)
