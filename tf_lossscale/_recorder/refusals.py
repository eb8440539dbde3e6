"""What cannot be recorded is refused, and not recorded wrongly."""

from typing import Any

from tf_lossscale._core.replicas import replica_count
from tf_lossscale._recorder.record_file import RecordingError
from tf_lossscale._versions.base import tf
from tf_lossscale._versions.collectives import in_tpu_replication
from tf_lossscale._versions.graphs import in_xla_context
from tf_lossscale._versions.keras_optimizers import calculates_with_tensorflow
from tf_lossscale._versions.watching import remote_target

__all__ = [
    "is_outside_replicas",
    "refuse_outside_replicas",
    "refuse_remote_session",
    "refuse_unsupported",
]


_WITHOUT = " Run the program without recording, or record it "


def refuse_unsupported(is_keras_3: bool = False) -> None:
    """Raises a RecordingError where a step cannot be recorded."""
    if is_keras_3 and not calculates_with_tensorflow():
        raise RecordingError("Keras 3 can be recorded with the TensorFlow backend only.")
    if in_tpu_replication():
        raise RecordingError("A step on a TPU cannot be recorded." + _WITHOUT + "on a CPU or GPU.")
    if in_xla_context():
        with tf.init_scope():
            is_in_session = not tf.executing_eagerly()
        if is_in_session:
            raise RecordingError(
                "A step that XLA compiles in the graph of a Session cannot be recorded."
                + _WITHOUT
                + "with jit_compile=False, or without tf.xla.experimental.compile."
            )
        if replica_count() > 1:
            raise RecordingError(
                "A step on several replicas that XLA compiles cannot be recorded."
                + _WITHOUT
                + "with jit_compile=False."
            )
    _refuse_strategies()
    graph = tf.compat.v1.get_default_graph() if not tf.executing_eagerly() else None
    if graph is not None and graph.finalized:
        raise RecordingError(
            "The graph is finalized: recording must begin before the optimizer makes its step."
        )


# By the class of `strategy.extended`, whose name is the same for the API of both versions.
_RECORDED_STRATEGIES = (
    "_DefaultDistributionExtended",
    "OneDeviceExtended",
    "MirroredExtended",
    "CollectiveAllReduceExtended",
)


def _refuse_strategies() -> None:
    if not tf.distribute.has_strategy():
        return
    strategy = tf.distribute.get_strategy()
    classes = [each.__name__ for each in type(strategy.extended).__mro__]
    if not any(each in _RECORDED_STRATEGIES for each in classes):
        raise RecordingError(
            f"A step under {type(strategy).__name__} cannot be recorded." + _WITHOUT + "on one "
            "machine, without a strategy or under a MirroredStrategy."
        )
    if len(strategy.extended.worker_devices) < replica_count():
        raise RecordingError(
            "A step on several workers cannot be recorded, because a process only has the losses "
            "of its own replicas." + _WITHOUT + "on one machine, without a strategy or under a "
            "MirroredStrategy."
        )


def is_outside_replicas() -> bool:
    """Returns whether a step is made where no replica runs; loss-scale optimizers refuse that."""
    return (
        tf.distribute.has_strategy()
        and tf.distribute.in_cross_replica_context()
        and replica_count() > 1
    )


def refuse_outside_replicas() -> None:
    """Raises the RecordingError for a step that is made where no replica runs."""
    raise RecordingError(
        "A step was made within `strategy.scope()`, but outside the function that `strategy.run` "
        "runs, where it cannot be recorded." + _WITHOUT + "with the step in that function."
    )


def refuse_remote_session(session: Any) -> None:
    """Raises a RecordingError if a Session, whose graph has recorded steps, runs on a server."""
    target = remote_target(session)
    if target:
        raise RecordingError(
            f"The steps of a Session on {target} cannot be recorded, because the record is written "
            "by this process." + _WITHOUT + "in a Session without a target."
        )
