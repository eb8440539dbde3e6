"""One step with gradients of several dtypes and kinds on four logical CPU devices.

`dtypes.py graph|function`, prints JSON: what each variable lost on each replica, by case.
"""

import json

import numpy as np
import tensorflow as tf
from four_cpus import MODE, SESSION, STRATEGY, local, on_replicas

import tf_lossscale as tfls

tf1 = tf.compat.v1
DTYPES = ("float16", "bfloat16", "float32")
LARGE = 1 << 16

CrossShardOptimizer = tfls.compat.v1.tpu.CrossShardOptimizer


class Passing(tf1.train.GradientDescentOptimizer):
    """Has an `apply_gradients` of its own, and so is given sums."""

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        pairs = list(grads_and_vars)
        kinds = {type(gradient) for gradient, _ in pairs if gradient is not None}
        assert kinds == {type(tf.identity(pairs[0][0]))}  # dense
        assert all(gradient is None or gradient.dtype == v.dtype for gradient, v in pairs)
        return super().apply_gradients(pairs, global_step, name)


CASES = {
    "plain": (tf1.train.GradientDescentOptimizer, None),
    "whole": (Passing, None),
    "crossed": (tf1.train.GradientDescentOptimizer, [[0, 2], [3, 1]]),
}


def step(case):
    """Of each dtype there are two small variables, a large one, a table and one without gradient.

    Replica r (from 1) has the gradients r, 2 * r, r, and 3 * r for row 1 of the table, twice.
    """
    cls, groups = CASES[case]
    shapes = {"a": [], "b": [3, 2], "large": [LARGE], "table": [4, 2], "unused": [2]}
    variables = {}
    with STRATEGY.scope():
        for dtype in DTYPES:
            for name, shape in shapes.items():
                variables[dtype, name] = tf1.get_variable(
                    "_".join([case.replace(" ", "_"), dtype, name]),
                    initializer=tf.zeros(shape, dtype),
                    use_resource=True,
                )
        optimizer = CrossShardOptimizer(cls(1.0), group_assignment=groups)

    def on_each():
        number = tf.distribute.get_replica_context().replica_id_in_sync_group + 1
        pairs = []
        for dtype in DTYPES:
            r = tf.cast(number, dtype)
            rows = tf.fill([2, 2], 3 * r)
            for name, gradient in {
                "a": r,
                "table": tf.IndexedSlices(rows, tf.constant([1, 1]), tf.constant([4, 2])),
                "b": tf.fill([3, 2], 2 * r),
                "unused": None,
                "large": tf.fill([LARGE], r),
            }.items():
                pairs.append((gradient, variables[dtype, name]))
        return optimizer.apply_gradients(pairs)

    if MODE == "graph":
        train = local(on_replicas(on_each))
        SESSION.run(tf1.global_variables_initializer())
        SESSION.run(train)
    else:
        tf.function(lambda: (on_replicas(on_each), 0)[1], autograph=False)()
    found = {}
    for (dtype, name), variable in variables.items():
        copies = [tf.cast(copy.read_value(), tf.float64) for copy in local(variable)]
        values = SESSION.run(copies) if MODE == "graph" else [copy.numpy() for copy in copies]
        lost = [sorted(set((-np.reshape(value, [-1])).tolist())) for value in values]
        found[f"{dtype} {name}"] = lost
    return found


print(json.dumps({case: step(case) for case in CASES}))
