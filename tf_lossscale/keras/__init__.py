"""`tf.keras`, as far as this package supplies it."""

from typing import TYPE_CHECKING

from tf_lossscale import _namespace

if TYPE_CHECKING:
    from tf_lossscale.keras import mixed_precision
else:  # unseen, or each name would be known to a type checker
    __all__, __getattr__, __dir__ = _namespace.attach(__name__, ("mixed_precision",))
