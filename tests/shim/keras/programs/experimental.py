"""Trains with the experimental class where a process of its own is needed; prints JSON.

`own`: with a loss scale of a user's own class, and `multiplier`: with one of 4, under a strategy
with two replicas; `graph`: with that class in a Session. `shared`, `rewritten` and `compiled`: one
of two optimizers made with one `DynamicLossScale`, wrapped by hand under the strategy, by the graph
rewrite (which the original of TensorFlow 1.15 refuses after any policy has been set), or by
`compile`, which takes the loss scale from the policy. Both with TensorFlow's classes, where it has
them, and with ours.
"""

import json
from typing import Any, Dict, List

import numpy as np
import recorded
import replicas
import tensorflow as tf
from recorded import scale_of

import tf_lossscale as tfls

tf.compat.v1.enable_v2_behavior()
STRATEGY = replicas.mirrored(2)
GRADIENTS = [[1.0, 1.0], [1.0, 200.0], [1.0, 1.0]]
KERAS_3 = hasattr(tf.keras, "Variable")
EXPERIMENTAL = getattr(tf.keras.mixed_precision, "experimental", None)
OWNERS = (
    {"ours": tfls, "original": tf}
    if hasattr(EXPERIMENTAL, "LossScaleOptimizer")
    else {"ours": tfls}
)
# From 2.4 on the original takes neither a class of the user's nor a multiplier.
OF_ANY_SCALE = OWNERS if recorded.TF < (2, 4) else {"ours": tfls}


def variable(value: float) -> Any:
    return tf.keras.Variable(value) if KERAS_3 else tf.compat.v2.Variable(value)


def loss_scales(owner: Any) -> Any:
    return owner.compat.v1.train.experimental


def wrapped(owner: Any, inner: Any, loss_scale: Any) -> Any:
    return owner.keras.mixed_precision.experimental.LossScaleOptimizer(inner, loss_scale)


def step_of(optimizer: Any, weight: Any, value: Any) -> Any:
    """A step whose gradient, unscaled, is `value`."""
    gradients = optimizer.get_unscaled_gradients([optimizer.get_scaled_loss(value)])
    return optimizer.apply_gradients(list(zip(gradients, [weight])))


def mirrored(owner: Any, is_own: bool) -> Dict[str, Any]:
    seen: List[Any] = []
    with STRATEGY.scope():
        weight = variable(1.0)
        loss_scale = recorded.below_100(loss_scales(owner), seen)()
        if not is_own:
            loss_scale = loss_scales(owner).DynamicLossScale(8.0, 1, 4.0)
        optimizer = wrapped(owner, tf.keras.optimizers.SGD(0.5), loss_scale)
    found: Dict[str, Any] = {"weights": [], "scales": [], "seen": []}

    @tf.function
    def function(gradients: Any):
        def step():
            replica = tf.distribute.get_replica_context().replica_id_in_sync_group
            step_of(optimizer, weight, tf.gather(gradients, replica))

        seen.clear()
        replicas.run(STRATEGY, step)

    for gradients in GRADIENTS:
        if not is_own:
            gradients = [float("inf") if gradient > 100 else gradient for gradient in gradients]
        function(tf.constant(gradients))
        found["weights"].append(float(weight.numpy()))
        found["scales"].append(float(scale_of(optimizer)))
        found["seen"] += seen[-1:]
    return found


def graph(owner: Any) -> Dict[str, Any]:
    found: Dict[str, Any] = {"weights": [], "scales": []}
    optimizers = getattr(tf.keras.optimizers, "legacy", tf.keras.optimizers)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        value = tf.compat.v1.placeholder(tf.float32, [])
        weight = tf.compat.v1.get_variable("weight", initializer=1.0, use_resource=True)
        optimizer = wrapped(owner, optimizers.SGD(0.5), recorded.below_100(loss_scales(owner))())
        step, scale = step_of(optimizer, weight, value), scale_of(optimizer)
        session.run(tf.compat.v1.global_variables_initializer())
        for gradients in GRADIENTS:
            session.run(step, {value: max(gradients)})
            found["weights"].append(float(session.run(weight)))
            found["scales"].append(float(session.run(scale)))
    return found


def shared(owner: Any, inside: bool, momentum: float) -> List[float]:
    """The scales of the two after three steps of the first, that of the object, and a weight.

    With `inside`, the loss scale is made within the scope of the strategy.
    """
    make = loss_scales(owner).DynamicLossScale
    outside = make(4, 1)
    with STRATEGY.scope():
        loss_scale = make(4, 1) if inside else outside
        weight = variable(1.0)
        trained, other = [
            wrapped(owner, tf.keras.optimizers.SGD(0.125, momentum=momentum), loss_scale)
            for _ in range(2)
        ]

    def step():
        step_of(trained, weight, tf.constant(1.0))

    function = tf.function(lambda: replicas.run(STRATEGY, step))
    for _ in range(3):
        function()
    return [
        *map(
            float,
            (scale_of(trained), scale_of(other), loss_scale(), weight.numpy()),
        )
    ]


def rewritten(owner: Any) -> List[float]:
    """The scales of two optimizers after a step of the first, and that of the object."""
    loss_scale = loss_scales(owner).DynamicLossScale(4, 1)
    rewrite = loss_scales(owner).enable_mixed_precision_graph_rewrite
    trained, other = [rewrite(tf.keras.optimizers.SGD(0.125), loss_scale) for _ in range(2)]
    loss_scales(owner).disable_mixed_precision_graph_rewrite()
    step_of(trained, variable(1.0), tf.constant(1.0))
    return [*map(float, (scale_of(trained), scale_of(other), loss_scale()))]


def compiled(owner: Any) -> List[Any]:
    """Whether `compile` wraps with our class, and the scales after two steps of one of two."""
    keras, experimental = tf.keras, owner.keras.mixed_precision.experimental
    loss_scale = loss_scales(owner).DynamicLossScale(4, 1)
    experimental.set_policy(experimental.Policy("mixed_float16", loss_scale=loss_scale))
    models = []
    for _ in range(2):
        dense = keras.layers.Dense(1, input_shape=(1,))
        models.append(keras.Sequential([dense, keras.layers.Activation("linear", dtype="float32")]))
        models[-1].compile(keras.optimizers.SGD(0.125), "mse")
    ones = np.ones((4, 1), "float32")
    models[0].fit(ones, ones, batch_size=2, verbose=0)
    experimental.set_policy("float32")
    optimizers = [model.optimizer for model in models]
    scales = [*map(float, (*map(scale_of, optimizers), loss_scale()))]
    return [recorded.is_ours(optimizers[0]), *scales]


def main():
    found: Dict[str, Any] = {"rewritten": {who: rewritten(owner) for who, owner in OWNERS.items()}}
    found["own"] = {who: mirrored(owner, True) for who, owner in OF_ANY_SCALE.items()}
    found["multiplier"] = {who: mirrored(owner, False) for who, owner in OF_ANY_SCALE.items()}
    found["graph"] = {who: graph(owner) for who, owner in OF_ANY_SCALE.items() if not KERAS_3}
    found["shared"] = {
        f"{who}, {'inside' if inside else 'outside'}, momentum {momentum}": shared(
            owner, inside, momentum
        )
        for who, owner in OWNERS.items()
        for inside in (False, True)
        for momentum in (0.0, 0.5)
    }
    found["compiled"] = {}
    if "original" in OWNERS:  # later versions of Keras know no policy with a loss scale like this
        found["compiled"]["original"] = compiled(tf)
        tfls.install(replace=True)
        found["compiled"]["ours"] = compiled(tfls)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
