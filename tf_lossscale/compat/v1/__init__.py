"""`tf.compat.v1`, as far as this package supplies it; Keras is the same as under `tf.keras`."""

from tf_lossscale._namespace import TYPE_CHECKING, attach as _attach

if TYPE_CHECKING:
    from tf_lossscale import keras
    from tf_lossscale.compat.v1 import mixed_precision, tpu, train
else:  # unseen, or each name would be known to a type checker
    __all__, __getattr__, __dir__ = _attach(
        __name__, ("mixed_precision", "tpu", "train"), of_top=("keras",)
    )
