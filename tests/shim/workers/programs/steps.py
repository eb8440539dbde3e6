"""Steps of the two kinds of optimizers, as a function that a replica runs."""

import json

import tensorflow as tf


def print_results(train, cases):
    """Prints what `train` returns for each case, as JSON."""
    results = {}
    for case in cases:
        try:
            results[case] = train(case)
        except Exception as error:
            raise RuntimeError(case) from error
    print(json.dumps(results))


def step_of_v1(optimizer, weights, loss_of, counter=None):
    """Returns a step of an optimizer with `minimize`; `loss_of` takes the arguments of the step."""

    def step(*examples):
        optimizer.minimize(lambda: loss_of(*examples), counter, weights)

    return step


def step_of_keras(optimizer, weights, loss_of):
    """Returns a step of a Keras optimizer, with a loss scale or without."""
    scales = hasattr(optimizer, "get_scaled_loss")

    def step(*examples):
        with tf.GradientTape() as tape:
            loss = loss_of(*examples)
            loss = optimizer.get_scaled_loss(loss) if scales else loss
        # Keras 3 keeps TensorFlow's variable inside.
        found = tape.gradient(loss, [getattr(weight, "_value", weight) for weight in weights])
        found = optimizer.get_unscaled_gradients(found) if scales else found
        optimizer.apply_gradients(zip(found, weights))

    return step
