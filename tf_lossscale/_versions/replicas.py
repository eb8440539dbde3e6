"""Replicas of a strategy, their sums and collective operations, and the shards of a TPU program."""

import threading
from typing import Any, ContextManager, Dict, List, Optional, Sequence

from tf_lossscale._types import (
    Class,
    Function,
    GradsAndVars,
    Graph,
    Method,
    Operation,
    Optimizer,
    PerReplica,
    Strategy,
    Tensor,
    Variable,
)
from tf_lossscale._versions.base import first_module, has, tf, tf1
from tf_lossscale._versions.graphs import graphs_around
from tf_lossscale._versions.interventions import overridden
from tf_lossscale._versions.releases import Since
from tf_lossscale._versions.variables import RawVariable

_tensor_util: Any = first_module("tensorflow.python.framework.tensor_util")
_multi_worker_util: Any = first_module("tensorflow.python.distribute.multi_worker_util")
_distribute_lib: Any = first_module("tensorflow.python.distribute.distribute_lib")
_loss_reduction: Any = getattr(_distribute_lib, "get_loss_reduction", None) or (  # up to 2.12
    first_module("tensorflow.python.distribute.distribute_utils").get_loss_reduction
)
# `extended.update` requires an object of one of these private classes.
_values: Any = first_module("tensorflow.python.distribute.values")
# The number of TPU shards that the graph is built for: `tpu_shard_context`, `tpu.replicate` and
# TPUStrategy set it. The originals read it here, too; no public function returns it.
_tpu_function: Any = first_module("tensorflow.python.tpu.tpu_function")
# The context of operations in `tpu.replicate` and `tpu.rewrite`; the class moved in 2.10.
_tpu_replication: Any = first_module(
    "tensorflow.python.tpu.tpu_replication", "tensorflow.python.tpu.tpu"
)

_lock = threading.Lock()
_counters: Dict[str, RawVariable] = {}


def supports_merge_call() -> bool:
    """Returns whether the current strategy has `merge_call`: not if XLA compiles it for GPUs."""
    distribute = getattr(getattr(tf, "__internal__", None), "distribute", None)
    cannot = getattr(distribute, "strategy_supports_no_merge_call", None)
    return cannot is None or not cannot()


def replica_id() -> int:
    """Returns the number of the current replica among all replicas of all workers.

    `replica_id_in_sync_group` is a tensor, whose value is known only at run time in general, and in
    TensorFlow 1.15 to 2.3 it counts only the replicas of one worker.
    """
    value = tf.distribute.get_replica_context().replica_id_in_sync_group
    number = int(value if isinstance(value, int) else _tensor_util.constant_value(value))
    strategy = tf.distribute.get_strategy()
    if hasattr(strategy.extended, "_get_replica_id_in_sync_group"):
        return number
    return replicas_of_workers_before(strategy) + number


def replicas_of_workers_before(strategy: Strategy) -> int:
    """Returns the number of replicas of all workers before this one; 0 with one worker."""
    extended = strategy.extended
    cluster = getattr(extended, "_cluster_spec", None)
    if not cluster:
        return 0
    worker = _multi_worker_util.id_in_cluster(cluster, extended._task_type, extended._task_id)
    return int(worker) * len(extended.worker_devices)


def local_replica_started_eagerly() -> bool:
    """Returns whether the replicas of this process were started eagerly, one after the other.

    Each replica has a thread; if it calls a `tf.function`, it traces its own.
    """
    return bool(getattr(threading.current_thread(), "in_eager", False))


def graph_of_all_replicas() -> Graph:
    """Returns the graph in which the replicas of a step are built, also inside a branch.

    The thread of a replica has a reference to that graph. Elsewhere it is the outermost function.
    """
    graph = tf1.get_default_graph()
    thread = threading.current_thread()
    known = None if local_replica_started_eagerly() else getattr(thread, "graph", None)
    while graph is not known and hasattr(graph, "outer_graph"):
        if not hasattr(graph.outer_graph, "outer_graph") and graph.outer_graph is not known:
            break
        graph = graph.outer_graph
    return graph


def estimator_scales_loss() -> bool:
    """Returns whether v1 optimizers divide the loss by the number of replicas.

    They do so in the `model_fn` of an Estimator with a strategy, if the loss is a mean.
    """
    return bool(_loss_reduction() == tf.distribute.ReduceOp.MEAN)


def already_summed(optimizers: Sequence[Optimizer]) -> ContextManager[None]:
    """Keeps v1 optimizers from summing the gradients of the replicas, within the block.

    Their `apply_gradients` calls their `_distributed_apply` in the cross-replica context, which
    sums first. Here the gradients are sums already, or sums over a subgroup of the replicas.
    """
    return overridden(optimizers, "_distributed_apply", _apply_without_sum)


def sum_is_off(optimizer: Optimizer) -> bool:
    """Returns whether this is within `already_summed([..., optimizer, ...])`."""
    current = vars(optimizer).get("_distributed_apply")
    return getattr(current, "func", None) is _apply_without_sum


def has_own_sum(optimizer: Optimizer, base: Class) -> bool:
    """Returns whether an optimizer may sum over the replicas differently from its base class."""
    own = type(optimizer)
    return (
        own.apply_gradients is not base.apply_gradients
        or own._distributed_apply is not base._distributed_apply
        or "apply_gradients" in vars(optimizer)
    )


def _apply_without_sum(
    apply: Method, strategy: Strategy, *args: object, **kwargs: object
) -> Optional[Operation]:
    extended = _Replaced(strategy.extended, batch_reduce_to=_take_as_sums)
    return apply(_Replaced(strategy, extended=extended), *args, **kwargs)


class _Replaced:
    """All attributes of an object, but some of them replaced."""

    def __init__(self, owner: Any, **attributes: Any) -> None:
        self._owner = owner
        vars(self).update(attributes)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._owner, name)


def _take_as_sums(reduce_op: Any, pairs: GradsAndVars, options: Any = None) -> List[PerReplica]:
    return [_as_mirrored(gradient, variable) for gradient, variable in pairs]


def _as_mirrored(value: PerReplica, variable: Variable) -> PerReplica:
    copies = getattr(value, "values", None)
    if copies is None or isinstance(value, tf.IndexedSlices):
        return value
    if len(getattr(variable, "values", ())) != len(copies):
        return copies[0]  # one variable for all replicas needs one gradient
    return _distributed(_values.Mirrored, value, copies)


def map_replicas(function: Function, value: PerReplica) -> PerReplica:
    """Applies a function of tensors and `IndexedSlices` to the value of each replica."""
    if not isinstance(value, _values.DistributedValues):
        return function(value)
    copies = []
    for copy in value.values:
        with tf1.device(copy.device):
            copies.append(function(copy))
    return per_replica(value, copies)


def per_replica(like: PerReplica, copies: Sequence[Tensor]) -> PerReplica:
    """Returns a value like `like` that is `copies[i]` on the i-th replica of this process."""
    return _distributed(_values.PerReplica, like, copies)


def _distributed(cls: Class, like: PerReplica, copies: Sequence[Tensor]) -> PerReplica:
    device_map = [like.device_map] if hasattr(type(like), "device_map") else []  # up to 2.1
    return cls(*device_map, tuple(copies))


def collective_reduce(value: PerReplica, size: int, group_key: int, instance_key: Tensor) -> Tensor:
    """Returns the sum of `value` over the `size` devices that use the same keys.

    The instance key can be an int32 tensor of shape `[]`: `COLLECTIVES_HAVE_KEYS_AT_RUN_TIME`.
    """
    if isinstance(instance_key, int):
        reduce, more = tf.raw_ops.CollectiveReduce, {"subdiv_offsets": [0]}
    else:
        has_token = has(Since.COLLECTIVES_HAVE_ORDERING_TOKEN)
        reduce, more = tf.raw_ops.CollectiveReduceV2, {"ordering_token": []} if has_token else {}
    return reduce(
        input=value,
        group_size=size,
        group_key=group_key,
        instance_key=instance_key,
        merge_op="Add",
        final_op="Id",
        **more,
    )


def host_of(device: str) -> str:
    """Returns the name of the CPU of the worker to which `device` belongs."""
    return device[: device.index("/device:")] + "/device:CPU:0"


def advance(device: str) -> Tensor:
    """Returns an operation that runs after all earlier ones for `device`, across functions.

    Functions run operations on one resource in the order of the program, and so they do with calls,
    branches and loops that contain such operations. The resource is a counter of this process.
    """
    host = host_of(device)
    with tf1.device(None), tf1.device(host):
        with _lock:
            if device not in _counters:
                with tf.init_scope(), tf1.device(None), tf1.device(host):
                    _counters[device] = RawVariable([])
        return _counters[device].assign_add(1)


def tpu_shards() -> Optional[int]:
    return _tpu_function.get_tpu_context().number_of_shards


def in_tpu_replication() -> bool:
    """Returns whether new operations are for the replicas of a TPU program."""
    for graph in graphs_around():
        context = graph._get_control_flow_context()
        while context is not None:
            if isinstance(context, _tpu_replication.TPUReplicateContext):
                return True
            context = context.outer_context
    return False
