"""Runs the cases of a client program and prints their results for `python tests/clients`.

Imported first: sets the path to the shim, and turns off log messages.
"""

import json
import os
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf

MARK = "RESULTS "
SHAPES = ((3,), (2, 4))

tf.compat.v1.logging.set_verbosity("ERROR")


def use_ours():
    """Whether the program was started with `ours` rather than `original`."""
    return sys.argv[1] == "ours"


def flat(tensors):
    """The numbers of each tensor, in a list."""
    return [np.asarray(tensor, np.float64).ravel().tolist() for tensor in tensors]


def total(variables, factor):
    """A loss."""
    return factor * tf.add_n([tf.reduce_sum(variable * variable) for variable in variables])


def train(optimizer, factors, compiled, shapes=SHAPES, variables=None, loss_of=total):
    """Trains variables with a Keras optimizer, with a loss scale or without, and returns them.

    Args:
      optimizer: the optimizer.
      factors: the argument of the loss in each step.
      compiled: whether the step is a `tf.function`.
      shapes: the shapes of new variables.
      variables: the variables, if they are not new.
      loss_of: the loss of variables and factor.
    """
    if variables is None:
        variables = [
            tf.Variable(np.ones(shape, np.float32), name=f"w{index}")
            for index, shape in enumerate(shapes)
        ]

    def step(factor):
        with tf.GradientTape() as tape:
            loss = loss_of(variables, factor)
            if hasattr(optimizer, "get_scaled_loss"):
                loss = optimizer.get_scaled_loss(loss)
        gradients = tape.gradient(loss, variables)
        if hasattr(optimizer, "get_unscaled_gradients"):
            gradients = optimizer.get_unscaled_gradients(gradients)
        optimizer.apply_gradients(zip(gradients, variables))
        return tf.constant(0)

    if hasattr(optimizer, "build"):
        optimizer.build(variables)
    run = tf.function(step) if compiled else step
    for factor in factors:
        run(tf.constant(factor))
    return variables


def fit(optimizer, inputs):
    """Fits a model to batches of one number each, and returns it."""
    model = tf.keras.Sequential([tf.keras.layers.Dense(2, kernel_initializer="ones")])
    model.build((None, 3))
    model.compile(optimizer, "mse")
    for value in inputs:
        model.fit(np.full((4, 3), value, np.float32), np.ones((4, 2), np.float32), verbose=0)
    return model


def run_cases(cases, gather=lambda own: own, report=True):
    """Runs every case and prints a line of JSON with the numbers or the error of each case.

    Args:
      cases: pairs of a name and a function that returns lists of numbers.
      gather: combines the result of this process with those of the others.
      report: whether this process prints.
    """
    results = {}
    for name, case in cases:
        try:
            own = case()
        except Exception as error:
            if os.environ.get("TFLS_CLIENT_TRACEBACKS"):
                raise
            own = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        results[name] = gather(own)
    if report:
        print(MARK + json.dumps(results, sort_keys=True), flush=True)
