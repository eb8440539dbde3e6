"""Replicas on all GPUs, which sum with NCCL, or on the parts of one, where TensorFlow sums."""

from typing import Any, Callable, Dict, List

import numpy as np
import tensorflow as tf

import tf_lossscale as tfls
from gpu.steps import FAMILIES
from gpu.table import NotRun, Setting

SHAPES = ((), (3,), (300, 400))


def _strategy(setting: Setting) -> Any:
    if not tf.executing_eagerly():
        raise NotRun("this TensorFlow has only Sessions")
    if len(setting.devices) < 2:
        raise NotRun("needs at least two devices")
    sums = tf.distribute.ReductionToOneDevice() if setting.is_divided else None
    return tf.distribute.MirroredStrategy(list(setting.devices), cross_device_ops=sums)


def _check(strategy: Any, variables: List[Any], right: float):
    for variable in variables:
        for copy in strategy.experimental_local_results(variable):
            np.testing.assert_allclose(copy.numpy(), np.full(variable.shape, right, np.float32))


def step_of(make: Callable[[], Any], setting: Setting) -> str:
    """The gradients of all replicas are summed once; an overflow on one skips the step on all."""
    strategy = _strategy(setting)
    with strategy.scope():
        variables = [tf.Variable(np.ones(shape, np.float32)) for shape in SHAPES]
        optimizer = make()

    def replica(overflow: Any) -> Any:
        number = tf.distribute.get_replica_context().replica_id_in_sync_group
        last = tf.equal(number, strategy.num_replicas_in_sync - 1)
        factor = tf.where(tf.logical_and(last, overflow), float("inf"), 1.0)
        gradients = [factor * tf.ones_like(variable) for variable in variables]
        if hasattr(optimizer, "get_unscaled_gradients"):
            scaled = [optimizer.get_scaled_loss(gradient) for gradient in gradients]
            gradients = optimizer.get_unscaled_gradients(scaled)
            optimizer.apply_gradients(zip(gradients, variables))
        else:
            optimizer.minimize(
                lambda: factor * tf.add_n([tf.reduce_sum(variable) for variable in variables]),
                var_list=variables,
            )
        return tf.constant(0)

    @tf.function
    def step(overflow: Any) -> Any:
        return strategy.run(replica, args=(overflow,))

    for overflow in (False, True):
        step(tf.constant(overflow))
    right = 1.0 - 0.5 * strategy.num_replicas_in_sync
    _check(strategy, variables, right)
    return f"{strategy.num_replicas_in_sync} replicas, one step applied, one skipped"


def cross_shard(setting: Setting) -> str:
    """The gradients of all replicas are summed, and their copies stay equal."""
    strategy = _strategy(setting)
    with strategy.scope():
        variables = [tf.Variable(np.ones(shape, np.float32)) for shape in SHAPES]
        inner = tf.compat.v1.train.MomentumOptimizer(0.5, 0.5)
        optimizer = tfls.tpu.CrossShardOptimizer(inner)

    def replica() -> Any:
        number = tf.distribute.get_replica_context().replica_id_in_sync_group
        gradient = tf.cast(number + 1, tf.float32)
        optimizer.apply_gradients(
            [(gradient + tf.zeros_like(variable), variable) for variable in variables]
        )
        return tf.constant(0)

    step = tf.function(lambda: strategy.run(replica))
    for _ in range(2):
        step()
    total = sum(range(1, strategy.num_replicas_in_sync + 1))
    right = 1.0 - 0.5 * total - 0.5 * 1.5 * total
    _check(strategy, variables, right)
    return f"{strategy.num_replicas_in_sync} replicas, two steps"


def subgroups(setting: Setting) -> str:
    """Each group of two replicas has its own sum."""
    strategy = _strategy(setting)
    count = strategy.num_replicas_in_sync
    if count % 2:
        raise NotRun("needs an even number of devices")
    groups = [[first, first + 1] for first in range(0, count, 2)]

    def replica() -> Any:
        number = tf.distribute.get_replica_context().replica_id_in_sync_group
        return tfls.tpu.cross_replica_sum(tf.cast(number, tf.float32) + tf.zeros([3]), groups)

    results: List[Any] = strategy.experimental_local_results(
        tf.function(lambda: strategy.run(replica))()
    )
    for number, result in enumerate(results):
        right = 2.0 * (number - number % 2) + 1.0
        np.testing.assert_allclose(result.numpy(), np.full([3], right, np.float32))
    return f"{len(groups)} groups of two"


CHECKS: Dict[str, Callable[[Setting], str]] = {
    f"{name} step on all devices": (lambda setting, make=make: step_of(make, setting))
    for name, make in FAMILIES.items()
}
CHECKS["cross-shard step on all devices"] = cross_shard
CHECKS["cross_replica_sum with subgroups"] = subgroups
