"""Strategies over logical CPU devices and over workers, for programs of several replicas.

Imported before TensorFlow has devices.
"""

import json
import os
from typing import Any, Callable, List, Sequence, Tuple

import tensorflow as tf

tf1 = tf.compat.v1


def make_cpus(count: int) -> List[str]:
    """Makes logical CPU devices, and returns their names."""
    config = tf.config.experimental
    config.set_virtual_device_configuration(
        config.list_physical_devices("CPU")[0],
        [config.VirtualDeviceConfiguration() for _ in range(count)],
    )
    return [f"/cpu:{index}" for index in range(count)]


def mirrored(count: int) -> Any:
    """A `MirroredStrategy` over that many new logical CPU devices."""
    return tf.distribute.MirroredStrategy(make_cpus(count))


def task() -> Tuple[int, int]:
    """The number of workers, and which of them this is."""
    config = json.loads(os.environ["TF_CONFIG"])
    return len(config["cluster"]["worker"]), config["task"]["index"]


def multi_worker() -> Any:
    """The strategy of the workers."""
    if not tf.executing_eagerly():
        return tf1.distribute.experimental.MultiWorkerMirroredStrategy()
    strategy = getattr(tf.distribute, "MultiWorkerMirroredStrategy", None)
    return (strategy or tf.distribute.experimental.MultiWorkerMirroredStrategy)()


def serve(strategy: Any) -> Tuple[Any, Any]:
    """The server and the configuration for a Session of this worker."""
    config = strategy.update_config_proto(tf1.ConfigProto())
    cluster = tf1.train.ClusterSpec(json.loads(os.environ["TF_CONFIG"])["cluster"])
    index = task()[1]
    return tf1.train.Server(cluster, job_name="worker", task_index=index, config=config), config


def run(strategy: Any, function: Callable[..., Any], args: Sequence[Any] = ()) -> Any:
    """`strategy.run`, which had another name before TensorFlow 2.2."""
    return (getattr(strategy, "run", None) or strategy.experimental_run_v2)(function, args=args)


def local(strategy: Any, value: Any) -> List[Any]:
    """What the replicas of this process hold."""
    return list(strategy.experimental_local_results(value))
