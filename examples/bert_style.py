"""Trains a small classifier like BERT's code, with `create_optimizer` and `if use_tpu`.

The same file runs in one process, on several devices, and as a worker of a cluster::

    python examples/bert_style.py --use_tpu
    python examples/bert_style.py --use_tpu --devices 4
    TF_CONFIG='{"cluster": ..., "task": ...}' python examples/bert_style.py --use_tpu

It prints the loss before and after, and one weight, as JSON.
"""

import argparse
import json
import os

import numpy as np
import tensorflow as tf

import tf_lossscale as tfls

tf1 = tf.compat.v1
STEPS, WARM_UP, BATCH = 30, 5, 16


class AdamWeightDecayOptimizer(tf1.train.Optimizer):
    """Adam without bias correction, and with weight decay that does not affect the moments."""

    def __init__(self, learning_rate, weight_decay_rate=0.01, exclude=("bias",)):
        super().__init__(False, "AdamWeightDecayOptimizer")
        self.learning_rate = learning_rate
        self.weight_decay_rate = weight_decay_rate
        self.exclude = exclude

    def _create_slots(self, var_list):
        for variable in var_list:
            self._zeros_slot(variable, "adam_m", self._name)
            self._zeros_slot(variable, "adam_v", self._name)

    def _resource_apply_dense(self, grad, handle):
        m, v = self.get_slot(handle, "adam_m"), self.get_slot(handle, "adam_v")
        next_m = 0.9 * m + 0.1 * grad
        next_v = 0.999 * v + 0.001 * tf.square(grad)
        update = next_m / (tf.sqrt(next_v) + 1e-6)
        if not any(word in handle.name for word in self.exclude):
            update += self.weight_decay_rate * handle
        return tf.group(
            handle.assign_sub(self.learning_rate() * update), m.assign(next_m), v.assign(next_v)
        )


def create_optimizer(init_lr, num_train_steps, num_warmup_steps, use_tpu):
    """Returns a function that creates the step for a loss, as in BERT's optimization.py."""
    global_step = tf1.train.get_or_create_global_step()

    def learning_rate():
        step = tf.cast(global_step, tf.float32)
        warm_up = step / num_warmup_steps
        return init_lr * tf.minimum(warm_up, 1.0 - step / num_train_steps)

    optimizer = AdamWeightDecayOptimizer(learning_rate)
    if use_tpu:
        optimizer = tfls.contrib.tpu.CrossShardOptimizer(optimizer)

    def train(loss, tvars):
        grads = tf1.gradients(loss, tvars)
        (grads, _) = tf.clip_by_global_norm(grads, clip_norm=1.0)
        return optimizer.apply_gradients(zip(grads, tvars), global_step=global_step)

    return train


def make_strategy(devices):
    """Returns the strategy for a cluster, for several devices, or the default strategy."""
    if "TF_CONFIG" in os.environ:
        name = "MultiWorkerMirroredStrategy"
        return (getattr(tf.distribute, name, None) or getattr(tf.distribute.experimental, name))()
    if devices == 1:
        return tf.distribute.get_strategy()
    config = tf.config.experimental
    config.set_virtual_device_configuration(
        config.list_physical_devices("CPU")[0],
        [config.VirtualDeviceConfiguration() for _ in range(devices)],
    )
    return tf.distribute.MirroredStrategy([f"/cpu:{i}" for i in range(devices)])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--use_tpu", action="store_true")
    parser.add_argument("--devices", type=int, default=1)
    flags = parser.parse_args()
    tf1.enable_eager_execution()
    strategy = make_strategy(flags.devices)
    run = getattr(strategy, "run", None) or strategy.experimental_run_v2

    random = np.random.RandomState(7)
    inputs = random.normal(size=(BATCH, 8)).astype(np.float32)
    labels = (inputs[:, 0] > inputs[:, 1]).astype(np.int32)

    with strategy.scope():
        kernel = tf1.get_variable("kernel", initializer=tf.zeros([8, 2]), use_resource=True)
        bias = tf1.get_variable("bias", initializer=tf.zeros([2]), use_resource=True)
        train = create_optimizer(0.1, STEPS, WARM_UP, flags.use_tpu)

    def loss_of():
        logits = tf.matmul(inputs, kernel) + bias
        return tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        )

    def step():
        loss = loss_of()
        with tf.control_dependencies([train(loss, [kernel, bias])]):
            return tf.identity(loss)

    one_step = tf.function(lambda: run(step), autograph=False)
    losses = [
        float(strategy.experimental_local_results(one_step())[0].numpy()) for _ in range(STEPS)
    ]
    weight = strategy.experimental_local_results(kernel)[-1].numpy()[0, 1]
    print(json.dumps({"first": losses[0], "last": losses[-1], "weight": float(weight)}))


if __name__ == "__main__":
    main()
