"""Whether operations are created for TPUs, and for how many shards."""

from typing import Any, Optional

from tf_lossscale._versions.base import first_module, tf, tf1

__all__ = ["in_tpu_replication", "tpu_shards"]

# The number of TPU shards that the graph is built for: `tpu_shard_context`, `tpu.replicate` and
# TPUStrategy set it. The originals read it from here; there is no public way.
_tpu_function: Any = first_module("tensorflow.python.tpu.tpu_function")


def tpu_shards() -> Optional[int]:
    """Returns the number of TPU shards that the graph is built for, or None if it is not set."""
    return _tpu_function.get_tpu_context().number_of_shards


# The context of operations in `tpu.replicate` and `tpu.rewrite`; the class moved in 2.10.
_tpu_replication: Any = first_module(
    "tensorflow.python.tpu.tpu_replication", "tensorflow.python.tpu.tpu"
)


def in_tpu_replication() -> bool:
    """Returns whether new operations are for the replicas of a TPU program."""
    graph = None if tf.executing_eagerly() else tf1.get_default_graph()
    while graph is not None:
        context = graph._get_control_flow_context()
        while context is not None:
            if isinstance(context, _tpu_replication.TPUReplicateContext):
                return True
            context = context.outer_context
        graph = getattr(graph, "outer_graph", None)
    return False
