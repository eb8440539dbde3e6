"""TensorFlow's retired loss-scale and cross-shard classes, under TensorFlow's own names.

Take TensorFlow's public path of a symbol and write `tfls` for `tf`::

    import tf_lossscale as tfls

    manager = tfls.contrib.mixed_precision.FixedLossScaleManager(128)

Importing this package does not import TensorFlow; the first use of a symbol does.
"""

from tf_lossscale._about import VERSION as __version__
from tf_lossscale._install.install import install, uninstall
from tf_lossscale._namespace import TYPE_CHECKING, attach as _attach

if TYPE_CHECKING:
    from tf_lossscale import (
        checkpoints,
        compat,
        contrib,
        keras,
        mixed_precision,
        monitoring,
        recording,
        tpu,
        train,
    )
    from tf_lossscale._core.accumulation import accumulate as accumulate

__all__ = [
    "__version__",
    "accumulate",
    "checkpoints",
    "compat",
    "contrib",
    "install",
    "keras",
    "mixed_precision",
    "monitoring",
    "recording",
    "tpu",
    "train",
    "uninstall",
]

if not TYPE_CHECKING:  # or each name would be known to a type checker
    _own = {"accumulate": "_core.accumulation"}
    _namespaces = [name for name in __all__ if name not in (*globals(), *_own)]
    __getattr__ = _attach(__name__, _namespaces, **_own)[1]
    __dir__ = __all__.copy
