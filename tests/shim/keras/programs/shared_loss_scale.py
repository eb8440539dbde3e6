"""Trains one of two optimizers made with one `DynamicLossScale`: prints JSON.

The two are wrapped by hand under a strategy with two replicas, by the graph rewrite (which the
original of TensorFlow 1.15 refuses after any policy has been set), or by `compile`, which takes the
loss scale from the policy. With the classes of TensorFlow, where it has them, and with ours.
"""

import json
import os
import sys
from typing import Any, Dict, List

sys.path[:0] = [os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]

import numpy as np  # noqa: E402 - after the path is set
import tensorflow as tf  # noqa: E402 - after the path is set

import tf_lossscale as tfls  # noqa: E402 - after the path is set

DEVICES = ["/cpu:0", "/cpu:1"]


def two_devices() -> None:
    config = tf.config.experimental
    device = config.list_physical_devices("CPU")[0]
    config.set_virtual_device_configuration(device, 2 * [config.VirtualDeviceConfiguration()])


def scale_of(optimizer: Any) -> float:
    scale = optimizer.loss_scale
    return float(scale() if callable(scale) else scale)


def under(strategy: Any, owner: Any, inside: bool, momentum: float) -> List[float]:
    """The scales of the two after three steps of the first, that of the object, and a weight.

    Args:
      strategy: the strategy.
      owner: `tf` or `tfls`.
      inside: whether the loss scale is made within the scope of the strategy.
      momentum: of the inner optimizers.
    """
    make = owner.compat.v1.train.experimental.DynamicLossScale
    sgd = tf.keras.optimizers.SGD
    variable = getattr(tf.keras, "Variable", tf.Variable)  # Keras 3 has one of its own
    cls = owner.keras.mixed_precision.experimental.LossScaleOptimizer
    outside = make(4, 1)
    with strategy.scope():
        loss_scale = make(4, 1) if inside else outside
        weight = variable(1.0)
        trained, other = [cls(sgd(0.125, momentum=momentum), loss_scale) for _ in range(2)]

    def step() -> None:
        scaled = trained.get_scaled_loss(tf.constant(1.0))
        gradients = trained.get_unscaled_gradients([scaled])
        trained.apply_gradients(zip(gradients, [weight]))

    run = getattr(strategy, "run", None) or strategy.experimental_run_v2
    function = tf.function(lambda: run(step))
    for _ in range(3):
        function()
    return [scale_of(trained), scale_of(other), float(loss_scale()), float(weight.numpy())]


def rewritten(owner: Any) -> List[float]:
    """The scales of two optimizers after a step of the first, and that of the object."""
    namespace = owner.compat.v1.train.experimental
    loss_scale = namespace.DynamicLossScale(4, 1)
    rewrite = namespace.enable_mixed_precision_graph_rewrite
    trained, other = [rewrite(tf.keras.optimizers.SGD(0.125), loss_scale) for _ in range(2)]
    namespace.disable_mixed_precision_graph_rewrite()
    gradients = trained.get_unscaled_gradients([tf.constant(4.0)])
    trained.apply_gradients(zip(gradients, [getattr(tf.keras, "Variable", tf.Variable)(1.0)]))
    return [scale_of(trained), scale_of(other), float(loss_scale())]


def compiled(owner: Any) -> Dict[str, Any]:
    """The class that `compile` wraps with, and the scales after two steps of the first of two."""
    keras = tf.keras
    experimental = owner.keras.mixed_precision.experimental
    loss_scale = owner.compat.v1.train.experimental.DynamicLossScale(4, 1)
    experimental.set_policy(experimental.Policy("mixed_float16", loss_scale=loss_scale))
    models = []
    for _ in range(2):
        dense = keras.layers.Dense(1, input_shape=(1,))
        models.append(keras.Sequential([dense, keras.layers.Activation("linear", dtype="float32")]))
        models[-1].compile(keras.optimizers.SGD(0.125), "mse")
    ones = np.ones((4, 1), "float32")
    models[0].fit(ones, ones, batch_size=2, verbose=0)
    experimental.set_policy("float32")
    optimizers = [each.optimizer for each in models]
    return {
        "ours": any(
            cls.__module__.startswith("tf_lossscale") for cls in type(optimizers[0]).__mro__
        ),
        "scales": [*map(scale_of, optimizers), float(loss_scale())],
    }


def main() -> None:
    if tf.__version__ < "2":
        tf.compat.v1.enable_v2_behavior()
    two_devices()
    owners = {"ours": tfls}
    if hasattr(getattr(tf.keras.mixed_precision, "experimental", None), "LossScaleOptimizer"):
        owners["original"] = tf
    by_rewrite = {name: rewritten(owner) for name, owner in owners.items()}
    strategy = tf.distribute.MirroredStrategy(DEVICES)
    mirrored = {
        f"{name}, {'inside' if inside else 'outside'}, momentum {momentum}": under(
            strategy, owner, inside, momentum
        )
        for name, owner in owners.items()
        for inside in (False, True)
        for momentum in (0.0, 0.5)
    }
    by_compile = {"original": compiled(tf)} if "original" in owners else {}
    if by_compile:  # later versions of Keras know no policy with a loss scale like this one
        tfls.install(replace=True)
        by_compile["ours"] = compiled(tfls)
    print(json.dumps({"mirrored": mirrored, "rewritten": by_rewrite, "compiled": by_compile}))


if __name__ == "__main__":
    main()
