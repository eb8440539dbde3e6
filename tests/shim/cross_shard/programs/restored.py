"""Restores eager optimizers before they have made a variable; prints the outcomes as JSON.

`weights`: after three steps a file is written; then the fourth step, on and after a restoration.
`slots`: whether the original and ours restore the slots of the inner optimizer.
"""

import json
import os
import tempfile

import support
import tensorflow as tf

import tf_lossscale as tfls

tf1 = tf.compat.v1
tf1.enable_eager_execution()
CrossShardOptimizer = tfls.compat.v1.tpu.CrossShardOptimizer


def adam():
    return tf1.train.AdamOptimizer(0.1)


CASES = {
    "adam": lambda: CrossShardOptimizer(adam()),
    "twice": lambda: CrossShardOptimizer(CrossShardOptimizer(adam())),
    "scaled inside": lambda: CrossShardOptimizer(support.v1_optimizer(adam())[0]),
    "scaled around": lambda: support.v1_optimizer(CrossShardOptimizer(adam()))[0],
}


def model(make):
    weights = tf.Variable([1.0, 1.0])
    optimizer = make()
    gradients = [(tf.constant([1.0, 2.0]), weights)]
    step = tf.function(lambda: (optimizer.apply_gradients(gradients), 0)[1], autograph=False)
    return weights, step, tf.train.Checkpoint(opt=optimizer, w=weights)


def restores_slots(api):
    """Whether the momentum of a file is there after a step; the inner optimizer makes the steps."""
    path, found = None, []
    for gradient in (1.0, 0.0):
        inner, weight = tf1.train.MomentumOptimizer(0.1, 0.5), tf.Variable(1.0)
        checkpoint = tf.train.Checkpoint(opt=api.CrossShardOptimizer(inner), w=weight)
        if path:
            checkpoint.restore(path)
        inner.apply_gradients([(tf.constant(gradient), weight)])
        path = path or checkpoint.save(os.path.join(tempfile.mkdtemp(), "c"))
        found.append(float(inner.get_slot(weight, "momentum").numpy()))
    return found == [1.0, 0.5]


found = {}
for name, make in CASES.items():
    weights, step, checkpoint = model(make)
    for _ in range(3):
        step()
    path = checkpoint.save(os.path.join(tempfile.mkdtemp(), "c"))
    step()
    went_on = weights.numpy().tolist()
    weights, step, checkpoint = model(make)
    status = checkpoint.restore(path)
    step()
    status.assert_consumed()
    found[name] = [went_on, weights.numpy().tolist()]
slots = {"original": restores_slots(tf1.tpu), "ours": restores_slots(tfls.compat.v1.tpu)}
print(json.dumps({"weights": found, "slots": slots}))
