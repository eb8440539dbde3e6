"""`tf.train`, as far as this package supplies it."""

from tf_lossscale._namespace import TYPE_CHECKING, attach as _attach

if TYPE_CHECKING:
    from tf_lossscale.train import experimental
else:  # unseen, or each name would be known to a type checker
    __all__, __getattr__, __dir__ = _attach(__name__, ("experimental",))
