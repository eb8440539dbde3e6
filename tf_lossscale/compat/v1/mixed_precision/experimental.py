"""`tf.compat.v1.mixed_precision.experimental` (TensorFlow 2.1 and later): loss scales."""

from typing import TYPE_CHECKING

from tf_lossscale import _namespace

if TYPE_CHECKING:
    from tf_lossscale.mixed_precision.experimental import *
else:  # unseen, or each name would be known to a type checker
    __all__, __getattr__, __dir__ = _namespace.attach(__name__)
