"""Optimizers of Keras 2 and Keras 3 update embeddings in other ways, and a restore says so."""

import numpy as np
import pytest
import recorded
import tensorflow as tf

from tf_lossscale._keras.optimizer_classes import other_rules

KINDS = {kind.name: kind for kind in recorded.kinds()}
ROWS = {
    "updates all rows": [[0, 1], [1, 2], [0, 3], [2, 3]],  # no row twice, and none in each step
    "sums the two gradients": [[0, 0, 1, 1, 2, 2, 3, 3]] * 2,
}
RULES = [
    ("Adam", {}),
    ("Adamax", {}),
    ("SGD", {}),
    ("SGD", {"momentum": 0.9}),
    # The two classes add it at different places.
    ("RMSprop", {"epsilon": 1e-12}),
    ("RMSprop", {"epsilon": 1e-12, "momentum": 0.9}),
    ("Adagrad", {}),
    ("Adadelta", {"rho": 0.5, "epsilon": 0.1}),
    ("Ftrl", {}),
]


def trained(kind, name, options, rows):
    """Looks up rows of a table in each step; returns the optimizer, the table and its values."""
    values = np.linspace(-1.0, 1.0, 8, dtype="float32").reshape(4, 2)
    table = recorded.make_variable(KINDS[kind], values, "embeddings")
    optimizer = getattr(KINDS[kind].optimizers, name)(learning_rate=0.5, **options)
    if hasattr(optimizer, "build"):
        optimizer.build([table])
    for looked_up in rows:
        with tf.GradientTape() as tape:
            tensor = table.value if kind == "keras3" else table
            # Of two gradients of a row, one is negative.
            weights = [[1.0, 3.0], [-0.5, -2.0]] * (len(looked_up) // 2)
            loss = tf.reduce_sum(tf.gather(tensor, looked_up) ** 2.0 * weights)
        optimizer.apply_gradients([(tape.gradient(loss, tensor), table)])
    return optimizer, table, np.array(tf.convert_to_tensor(table))


WITH_BOTH = pytest.mark.skipif(
    not {"legacy", "keras3"} <= set(KINDS), reason="needs Keras 2 and Keras 3"
)


@WITH_BOTH
@pytest.mark.parametrize(("name", "options"), RULES)
def test_a_restore_says_what_is_different(name, options):
    for words, rows in ROWS.items():
        _, _, expected = trained("legacy", name, options, rows)
        optimizer, table, values = trained("keras3", name, options, rows)
        is_said = any(words.split()[0] in rule for rule in other_rules(optimizer, [table]))
        assert is_said == (np.abs(values - expected).max() > 1e-4)
        assert not any("embedding" in rule for rule in other_rules(optimizer, []))


@WITH_BOTH
def test_which_classes_leave_rows_as_they_are():
    """Of Keras 2: those for which docs/checkpoints.md says it."""
    rows = ROWS["updates all rows"]
    found = {
        (name, "momentum" in options)
        for name, options in RULES
        if np.abs(
            trained("legacy", name, options, rows)[2] - trained("keras3", name, options, rows)[2]
        ).max()
        > 1e-4
    }
    without_momentum = {("Adamax", False), ("Adadelta", False), ("Ftrl", False)}
    assert found == without_momentum | {("SGD", True), ("RMSprop", True)}


@WITH_BOTH
def test_ftrl_sets_rows_to_0_that_no_step_has_looked_up():
    _, _, values = trained("keras3", "Ftrl", {}, [[0, 1]])
    _, _, unchanged = trained("legacy", "Ftrl", {}, [[0, 1]])
    assert not values[2:].any()
    assert unchanged[2:].all()


@WITH_BOTH
@pytest.mark.parametrize(("gradient", "is_different"), [(1e-4, True), (1e-3, True), (0.1, False)])
def test_epsilon_of_rmsprop_matters_for_small_gradients(gradient, is_different):
    steps = []
    for kind in ("legacy", "keras3"):
        variable = recorded.make_variable(KINDS[kind], np.zeros([1], "float32"), "v")
        optimizer = KINDS[kind].optimizers.RMSprop(learning_rate=1.0)
        if kind == "keras3":
            optimizer.build([variable])
        for _ in range(30):
            before = np.array(tf.convert_to_tensor(variable))
            optimizer.apply_gradients([(tf.constant([gradient]), variable)])
        steps.append(np.array(tf.convert_to_tensor(variable)) - before)
    assert (abs(steps[0] / steps[1] - 1) > 0.01) == is_different
