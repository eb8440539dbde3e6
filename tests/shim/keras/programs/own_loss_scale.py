"""Trains with a loss scale of a user's own class, under a strategy and in a graph: prints JSON."""

import json
import os
import sys
from typing import Any, Dict, List

sys.path[:0] = [os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]

import tensorflow as tf  # noqa: E402 - after the path is set

import tf_lossscale as tfls  # noqa: E402 - after the path is set

DEVICES = ["/cpu:0", "/cpu:1"]
GRADIENTS = [[1.0, 1.0], [1.0, 200.0], [1.0, 1.0]]
HAS_ORIGINAL = tf.__version__.startswith(("1.", "2.0", "2.1.", "2.2.", "2.3."))


def two_devices() -> None:
    config = tf.config.experimental
    device = config.list_physical_devices("CPU")[0]
    config.set_virtual_device_configuration(device, 2 * [config.VirtualDeviceConfiguration()])


def below_100(owner: Any, seen: List[Any]) -> Any:
    class Below100(owner.compat.v1.train.experimental.LossScale):
        def __init__(self) -> None:
            super().__init__()
            self._scale = self._add_weight("scale", 4.0, tf.float32)

        def __call__(self) -> Any:
            return tf.convert_to_tensor(self._scale)

        def update(self, grads: Any) -> Any:
            local = tf.distribute.get_strategy().experimental_local_results
            seen.append([len(local(each)) for each in grads])
            largest = [tf.abs(each) for gradient in grads for each in local(gradient)]
            with tf.control_dependencies(largest):  # which were unscaled with the old scale
                update = self._scale.assign(self._scale + 1.0)
            return update, tf.reduce_max(tf.stack(largest)) < 100.0

        def get_config(self) -> Dict[str, Any]:
            return {}

    return Below100()


def number(optimizer: Any) -> float:
    scale = optimizer.loss_scale
    return float(scale() if callable(scale) else scale)


def mirrored(owner: Any, own: bool) -> Dict[str, Any]:
    seen: List[Any] = []
    strategy = tf.distribute.MirroredStrategy(DEVICES)
    cls = owner.keras.mixed_precision.experimental.LossScaleOptimizer
    with strategy.scope():
        weight = getattr(tf.keras, "Variable", tf.Variable)(1.0)
        dynamic = owner.compat.v1.train.experimental.DynamicLossScale
        loss_scale = below_100(owner, seen) if own else dynamic(8.0, 1, 4.0)
        optimizer = cls(tf.keras.optimizers.SGD(0.5), loss_scale)
    run = getattr(strategy, "run", None) or strategy.experimental_run_v2
    found: Dict[str, Any] = {"weights": [], "scales": []}

    @tf.function
    def function(gradients: Any) -> None:
        def step() -> None:
            replica = tf.distribute.get_replica_context().replica_id_in_sync_group
            scaled = optimizer.get_scaled_loss(tf.gather(gradients, replica))
            pairs = zip(optimizer.get_unscaled_gradients([scaled]), [weight])
            optimizer.apply_gradients(pairs)

        seen.clear()
        run(step)

    for gradients in GRADIENTS:
        if not own:
            gradients = [float("inf") if each > 100 else each for each in gradients]
        function(tf.constant(gradients))
        found["weights"].append(float(weight.numpy()))
        found["scales"].append(number(optimizer))
        if own:
            found.setdefault("seen", []).append(seen[-1])
    return found


def graph(owner: Any) -> Dict[str, Any]:
    found: Dict[str, Any] = {"weights": [], "scales": []}
    optimizers = getattr(tf.keras.optimizers, "legacy", tf.keras.optimizers)
    cls = owner.keras.mixed_precision.experimental.LossScaleOptimizer
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        value = tf.compat.v1.placeholder(tf.float32, [])
        weight = tf.compat.v1.get_variable("weight", initializer=1.0, use_resource=True)
        optimizer = cls(optimizers.SGD(0.5), below_100(owner, []))
        gradients = optimizer.get_unscaled_gradients([optimizer.get_scaled_loss(value)])
        step = optimizer.apply_gradients(list(zip(gradients, [weight])))
        scale = optimizer.loss_scale
        scale = scale() if callable(scale) else scale
        session.run(tf.compat.v1.global_variables_initializer())
        for gradients in GRADIENTS:
            session.run(step, {value: max(gradients)})
            found["weights"].append(float(session.run(weight)))
            found["scales"].append(float(session.run(scale)))
    return found


def main() -> None:
    if tf.__version__.startswith("1."):
        tf.compat.v1.enable_eager_execution()
    two_devices()
    owners = {"ours": tfls, "original": tf} if HAS_ORIGINAL else {"ours": tfls}
    has_legacy = not hasattr(tf.keras, "Variable")
    found = {
        "mirrored": {who: mirrored(owner, own=True) for who, owner in owners.items()},
        "multiplier": {who: mirrored(owner, own=False) for who, owner in owners.items()},
        "graph": {who: graph(owner) for who, owner in owners.items()} if has_legacy else {},
    }
    print(json.dumps(found))


main()
