"""`tf.mixed_precision` (TensorFlow 2.1 to 2.8)."""

from tf_lossscale._namespace import TYPE_CHECKING, attach as _attach

if TYPE_CHECKING:
    from tf_lossscale.mixed_precision import experimental
else:  # unseen, or each name would be known to a type checker
    __all__, __getattr__, __dir__ = _attach(__name__, ("experimental",))
