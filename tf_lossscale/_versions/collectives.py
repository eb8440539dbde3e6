"""TensorFlow's collective operations, and the shards of a TPU program."""

import threading
from typing import Any, Dict, Optional

from tf_lossscale._versions.base import first_module, has, tf, tf1
from tf_lossscale._versions.graphs import graphs_around
from tf_lossscale._versions.releases import Since

KEYS_AT_RUN_TIME = has(Since.COLLECTIVES_HAVE_KEYS_AT_RUN_TIME)
STRATEGY_SURVIVES_RETRACING = has(Since.STRATEGY_SURVIVES_RETRACING)
SUMS_OVERWRITE_SUMMANDS = not has(Since.SUMMANDS_ARE_KEPT)


def collective_reduce(value: Any, size: int, group_key: int, instance_key: Any) -> Any:
    """Returns the sum of `value` over the `size` devices that use the same keys.

    The instance key can be an int32 tensor of shape `[]` if `KEYS_AT_RUN_TIME`.
    """
    if isinstance(instance_key, int):
        return tf.raw_ops.CollectiveReduce(
            input=value,
            group_size=size,
            group_key=group_key,
            instance_key=instance_key,
            merge_op="Add",
            final_op="Id",
            subdiv_offsets=[0],
        )
    return tf.raw_ops.CollectiveReduceV2(
        input=value,
        group_size=size,
        group_key=group_key,
        instance_key=instance_key,
        merge_op="Add",
        final_op="Id",
        **({"ordering_token": []} if has(Since.COLLECTIVES_HAVE_ORDERING_TOKEN) else {}),
    )


def host_of(device: str) -> str:
    """Returns the name of the CPU of the worker to which `device` belongs."""
    return device[: device.index("/device:")] + "/device:CPU:0"


_lock = threading.Lock()
_counters: Dict[str, Any] = {}


def advance(device: str) -> Any:
    """Returns an operation that runs after all earlier ones for `device`, across functions.

    Functions run operations on one resource in the order of the program, and so they do with calls,
    branches and loops that contain such operations. The resource is a plain counter of this
    process, which is in no strategy and no checkpoint.
    """
    host = host_of(device)
    with tf1.device(None), tf1.device(host):
        with _lock:
            if device not in _counters:
                _counters[device] = _new_counter(len(_counters), host)
        return tf.raw_ops.AssignAddVariableOp(
            resource=_counters[device], value=tf.constant(1, tf.int64)
        )


def _new_counter(number: int, host: str) -> Any:
    with tf.init_scope(), tf1.device(None), tf1.device(host):
        handle = tf.raw_ops.VarHandleOp(
            dtype=tf.int64, shape=[], container="", shared_name=f"tf_lossscale_steps_{number}"
        )
        tf.raw_ops.AssignVariableOp(resource=handle, value=tf.constant(0, tf.int64))
    return handle


# The number of TPU shards that the graph is built for: `tpu_shard_context`, `tpu.replicate` and
# TPUStrategy set it. The originals read it here, too; no public function returns it.
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
    for graph in graphs_around():
        context = graph._get_control_flow_context()
        while context is not None:
            if isinstance(context, _tpu_replication.TPUReplicateContext):
                return True
            context = context.outer_context
    return False
