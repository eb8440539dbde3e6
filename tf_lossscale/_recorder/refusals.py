"""What cannot be recorded is refused, and not recorded wrongly."""

from tf_lossscale._recorder.errors import RecordingError
from tf_lossscale._versions.base import tf
from tf_lossscale._versions.graphs import in_xla_context
from tf_lossscale._versions.keras_3_build import calculates_with_tensorflow
from tf_lossscale._versions.recorded_classes import Recorded

__all__ = ["refuse_unsupported"]


_WITHOUT = " Run the program without recording, or record it "


def refuse_unsupported(kind: Recorded) -> None:
    """Raises a RecordingError where a step cannot be recorded.

    Args:
      kind: the class of the optimizer.
    """
    if kind.family == "keras3" and not calculates_with_tensorflow():
        raise RecordingError("Keras 3 can be recorded with the TensorFlow backend only.")
    if in_xla_context():
        raise RecordingError(
            "A step that XLA compiles cannot be recorded."
            + _WITHOUT
            + "without `jit_compile=True` (in `fit` of Keras 3: `compile(..., jit_compile=False)`)."
        )
    if tf.distribute.has_strategy() and tf.distribute.get_strategy().num_replicas_in_sync > 1:
        raise RecordingError(
            "A step on several replicas cannot be recorded." + _WITHOUT + "with one replica."
        )
    graph = tf.compat.v1.get_default_graph() if not tf.executing_eagerly() else None
    if graph is not None and graph.finalized:
        raise RecordingError(
            "The graph is finalized: recording must begin before the optimizer makes its step."
        )
