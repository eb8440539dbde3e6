"""A step whose gradients are clipped by their norm between unscaling and applying, as in BERT."""

from typing import Any, Callable, List

import numpy as np
import recorded
import support
import tensorflow as tf

tf1 = tf.compat.v1
NAMES = ("first", "second")
START = ([1.0, 2.0], [0.0, 4.0])
CLIP = 1.0
V1 = ("v1-ours", "v1-original", "contrib-ours", "contrib-original")
if recorded.TF >= (2, 0):
    V1 = V1[:3]
KERAS = [
    subject
    for subject in [*recorded.ours(), *recorded.originals()]
    if subject.api != "keras3" and (subject.who == "original" or subject.api == "final")
]


def finite(variables: List[Any]) -> Any:
    """A loss whose gradients are [2, 4] and [0, 8] at the start: of norm 9.17."""
    return sum(tf.reduce_sum(tf.square(variable)) for variable in variables)


def second_is_infinite(variables: List[Any]) -> Any:
    """A loss of which only the gradient of the second variable is infinite."""
    return tf.reduce_sum(tf.square(variables[0])) + tf.reduce_sum(tf.sqrt(variables[1]))


def clipped(gradients: List[Any]) -> List[Any]:
    return list(tf.clip_by_global_norm(gradients, CLIP)[0])


def v1_optimizer(name: str) -> Any:
    family, _, who = name.partition("-")
    inner = tf1.train.GradientDescentOptimizer(0.0)
    make = support.v1_optimizer if family == "v1" else support.contrib_optimizer
    more = () if family == "v1" else (1, 2, 0.5)
    return make(inner, 16.0, 1000, *more, whose=who)[0]


def in_session(name: str, loss_of: Callable[[List[Any]], Any], watch: Any = None) -> Any:
    """Makes three steps in a Session; returns what `watch` makes of the optimizer, and it."""
    with support.graph() as session:
        variables = [
            tf1.get_variable(name, initializer=np.float32(value), use_resource=True)
            for name, value in zip(NAMES, START)
        ]
        optimizer = v1_optimizer(name)
        watched = watch and watch(optimizer)
        pairs = optimizer.compute_gradients(loss_of(variables), variables)
        gradients = clipped([gradient for gradient, _ in pairs])
        step = optimizer.apply_gradients(list(zip(gradients, variables)))
        session.run(tf1.global_variables_initializer())
        for _ in range(3):
            session.run(step)
        return watched and (watched.counts(session), watched.first_bad)


def in_loop(
    subject, loss_of: Callable[[List[Any]], Any], in_function: bool, watch: Any = None
) -> Any:
    """Makes three steps in a loop of Keras 2's style; the same."""
    variables = [
        recorded.make_variable(subject.kind, np.float32(value), name)
        for name, value in zip(NAMES, START)
    ]
    optimizer = subject.dynamic(subject.inner("SGD", learning_rate=0.0), 16.0, 1000)
    watched = watch and watch(optimizer)
    if hasattr(optimizer, "build"):
        optimizer.build(variables)

    def step():
        with tf.GradientTape() as tape:
            plain = [tf.convert_to_tensor(variable) for variable in variables]
            tape.watch(plain)
            scaled = optimizer.get_scaled_loss(loss_of(plain))
        gradients = optimizer.get_unscaled_gradients(tape.gradient(scaled, plain))
        optimizer.apply_gradients(list(zip(clipped(gradients), variables)))

    step = tf.function(step) if in_function else step
    for _ in range(3):
        step()
    return watched and (watched.counts(), watched.first_bad)
