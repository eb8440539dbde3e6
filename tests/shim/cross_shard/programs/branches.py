"""Optimizers' steps and branches, on two logical CPU devices; prints JSON.

For each place of the branch and each optimizer: the weights after one step, or the error.
"""

import json

import replicas
import support
import tensorflow as tf

import tf_lossscale as tfls

tf1 = tf.compat.v1
tf1.enable_eager_execution()
STRATEGY = replicas.mirrored(2)
contrib = tfls.contrib.mixed_precision
WRAPPERS = {
    "bare": lambda opt: opt,
    "cross": tfls.compat.v1.tpu.CrossShardOptimizer,
    "v1": lambda opt: support.v1_optimizer(opt)[0],
    "contrib": lambda opt: contrib.LossScaleOptimizer(opt, contrib.FixedLossScaleManager(8.0)),
}


class Case:
    """One optimizer and one variable under the strategy."""

    def __init__(self, wrap):
        with STRATEGY.scope():
            self.weight = tf.Variable(1.0)
            self.optimizer = wrap(tf1.train.GradientDescentOptimizer(1.0))

    def copies(self):
        return replicas.local(STRATEGY, self.weight)

    def step(self):
        self.optimizer.minimize(lambda: self.weight * self.weight / 2, var_list=[self.weight])
        return tf.constant(0)

    def around(self, condition):
        def taken():
            replicas.run(STRATEGY, self.step)
            return tf.constant(0)

        return tf.cond(condition, taken, lambda: tf.constant(0))

    def inside(self, condition):
        replicas.run(STRATEGY, lambda: tf.cond(condition, self.step, lambda: tf.constant(0)))
        return tf.constant(0)

    def chosen(self, condition):
        def step():
            gradient = tf.cond(condition, lambda: self.weight * 1.0, lambda: tf.constant(0.0))
            self.optimizer.apply_gradients([(gradient, self.weight)])
            return tf.constant(0)

        replicas.run(STRATEGY, step)
        return tf.constant(0)


def main():
    found = {}
    for name, wrap in WRAPPERS.items():
        for place in ("around", "inside", "chosen"):
            for traced in (True, False):
                case = Case(wrap)
                call = getattr(case, place)
                if traced:
                    call = tf.function(call, autograph=False)
                try:
                    call(tf.constant(True))
                    result = [float(copy.numpy()) for copy in case.copies()]
                except RuntimeError as error:
                    result = str(error)
                how = "traced" if traced else "eager"
                found[f"{name} {place} {how}"] = result
    print(json.dumps(found))


main()
