"""`tf.compat`, as far as this package supplies it."""

from typing import TYPE_CHECKING

from tf_lossscale import _namespace

if TYPE_CHECKING:
    from tf_lossscale.compat import v1, v2
else:  # unseen, or each name would be known to a type checker
    __all__, __getattr__, __dir__ = _namespace.attach(__name__, ("v1", "v2"))
