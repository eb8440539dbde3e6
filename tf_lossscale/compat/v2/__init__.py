"""`tf.compat.v2`, as far as this package supplies it: the same modules as at the top."""

from tf_lossscale._namespace import TYPE_CHECKING, attach as _attach

if TYPE_CHECKING:
    from tf_lossscale import keras, mixed_precision, train
else:  # unseen, or each name would be known to a type checker
    __all__, __getattr__, __dir__ = _attach(__name__, of_top=("keras", "mixed_precision", "train"))
