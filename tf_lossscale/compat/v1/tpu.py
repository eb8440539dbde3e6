"""`tf.compat.v1.tpu` (TensorFlow 1.14 and later): the cross-shard names."""

from typing import TYPE_CHECKING

from tf_lossscale import _namespace

if TYPE_CHECKING:
    from tf_lossscale.tpu import *
else:  # unseen, or each name would be known to a type checker
    __all__, __getattr__, __dir__ = _namespace.attach(__name__)
