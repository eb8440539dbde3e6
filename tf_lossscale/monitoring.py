"""Watching the loss scale of a training run: skipped steps, and the variable that caused them.

Not a namespace of TensorFlow's: these names are this package's own.
"""

from tf_lossscale._namespace import TYPE_CHECKING, attach as _attach

if TYPE_CHECKING:
    from tf_lossscale._core.finite import find_nonfinite as find_nonfinite
    from tf_lossscale._monitoring.layers import (
        NonfiniteLayer as NonfiniteLayer,
        find_nonfinite_layer as find_nonfinite_layer,
    )
    from tf_lossscale._monitoring.monitor import Monitor as Monitor, StepCounts as StepCounts
else:  # unseen, or each name would be known to a type checker
    __all__, __getattr__, __dir__ = _attach(
        __name__,
        Monitor="_monitoring.monitor",
        NonfiniteLayer="_monitoring.layers",
        StepCounts="_monitoring.monitor",
        find_nonfinite="_core.finite",
        find_nonfinite_layer="_monitoring.layers",
    )
