"""Two steps of each style on two replicas, with SGD and Momentum: prints the weights of each."""

import json
from typing import Any, Callable, Dict, List

import keras
import replicas
import tensorflow as tf

import tf_lossscale as tfls

STRATEGY = replicas.mirrored(2)


def gradients_of(scale: Callable[[Any], Any], variables: List[Any]) -> Any:
    context = tf.distribute.get_replica_context()
    factor = tf.cast(context.replica_id_in_sync_group, tf.float32) + 1.0
    with tf.GradientTape() as tape:
        sources = [variable.value for variable in variables]
        loss = tf.add_n([tf.reduce_sum(tf.square(source)) for source in sources]) * factor
        scaled = scale(loss)
    return tape.gradient(scaled, sources)


def usual(optimizer: Any, variables: List[Any]):
    gradients = gradients_of(optimizer.get_scaled_loss, variables)
    unscaled = optimizer.get_unscaled_gradients(gradients)
    optimizer.apply_gradients(list(zip(unscaled, variables)))


def not_scaled(optimizer: Any, variables: List[Any]):
    gradients = gradients_of(lambda loss: loss, variables)
    optimizer.apply_gradients(list(zip(gradients, variables)))


def by_hand(optimizer: Any, variables: List[Any]):
    gradients = gradients_of(optimizer.get_scaled_loss, variables)
    unscaled = [gradient / optimizer.loss_scale for gradient in gradients]
    optimizer.apply_gradients(list(zip(unscaled, variables)))


def as_fit(optimizer: Any, variables: List[Any]):
    gradients = gradients_of(optimizer.scale_loss, variables)
    optimizer.apply_gradients(list(zip(gradients, variables)))


def summed_by_the_program(optimizer: Any, variables: List[Any]):
    """At each sum, one replica waits for the other, which has not scaled its loss yet."""
    gradients = gradients_of(optimizer.scale_loss, variables)
    context = tf.distribute.get_replica_context()
    sums = context.all_reduce(tf.distribute.ReduceOp.SUM, gradients)
    optimizer.apply_gradients(list(zip(sums, variables)), skip_gradients_aggregation=True)


def with_a_sum(optimizer: Any, variables: List[Any]):
    gradients = gradients_of(optimizer.scale_loss, variables)
    tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, gradients)
    optimizer.apply_gradients(list(zip(gradients, variables)))


def with_apply(optimizer: Any, variables: List[Any]):
    optimizer.apply(gradients_of(optimizer.scale_loss, variables), variables)


STYLES = (usual, not_scaled, by_hand, as_fit, summed_by_the_program, with_a_sum, with_apply)


def stepper(style: Callable[..., None], optimizer: Any, variables: List[Any]) -> Any:
    def step():
        STRATEGY.run(lambda: style(optimizer, variables))

    return step


def weights_after(style: Callable[..., None], in_function: bool) -> List[Any]:
    found = []
    for momentum in (0.0, 0.5):
        with STRATEGY.scope():
            variables = [keras.Variable([1.0, 2.0]), keras.Variable(3.0)]
            inner = keras.optimizers.SGD(2.0**-5, momentum=momentum)
            optimizer = tfls.keras.mixed_precision.LossScaleOptimizer(inner, initial_scale=64.0)
            optimizer.build(variables)

        run = stepper(style, optimizer, variables)
        if in_function:
            run = tf.function(run, autograph=False)
        for _ in range(2):
            run()
        found += [variable.numpy().tolist() for variable in variables]
    return found


def main():
    found: Dict[str, Any] = {"styles": [style.__name__ for style in STYLES]}
    for style in STYLES:
        for where in ("eager", "function"):
            found[f"{style.__name__}, {where}"] = weights_after(style, where == "function")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
