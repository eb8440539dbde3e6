"""Trains with tensor2tensor's `ConditionalOptimizer`, which wraps optimizers in contrib's class.

python t2t_steps.py original|ours
"""

from results import SHAPES, run_cases, total, use_ours

# isort: split
import numpy as np
import tensorflow as tf

import tf_lossscale

if use_ours():  # tensor2tensor uses the names in tf.contrib
    tf_lossscale.install(replace=True)
    from tensorflow.contrib import mixed_precision

    assert mixed_precision.LossScaleOptimizer.__module__.startswith("tf_lossscale")

from tensor2tensor.utils import hparam, optimize

NAMES = ("sgd", "momentum", "adam", "adafactor", "adam_w", "multistep_adam", "true_adam")


def settings(name, **options):
    values = {
        "activation_dtype": "float16",
        "weight_dtype": "float32",
        "mixed_precision_optimizer_loss_scaler": "exponential",
        "mixed_precision_optimizer_init_loss_scale": 2.0**10,
        "optimizer": name,
        "optimizer_zero_grads": False,
        "optimizer_adam_beta1": 0.9,
        "optimizer_adam_beta2": 0.99,
        "optimizer_adam_epsilon": 1e-6,
        "optimizer_momentum_momentum": 0.5,
        "optimizer_momentum_nesterov": False,
        "optimizer_multistep_accumulate_steps": 2,
        "optimizer_adafactor_factored": True,
        "optimizer_adafactor_decay_type": "pow",
        "optimizer_adafactor_beta1": 0.0,
        "optimizer_adafactor_beta2": 0.99,
        "optimizer_adafactor_memory_exponent": 0.8,
        "optimizer_adafactor_clipping_threshold": 1.0,
        "optimizer_adafactor_multiply_by_parameter_scale": True,
        "clip_grad_norm": 0.0,
        "grad_noise_scale": 0.0,
        "weight_decay": 0.0,
        "weight_noise": 0.0,
        "gpu_automatic_mixed_precision": False,
        "summarize_grads": False,
        "summarize_vars": False,
        "learning_rate": 0.1,
        "num_async_replicas": 1,
        "initializer": "zeros",
    }
    return hparam.HParams(**dict(values, **options))


def train(name, **options):
    with tf.Graph().as_default():
        variables = [
            tf.get_variable(f"w{index}", initializer=np.ones(shape, np.float32))
            for index, shape in enumerate(SHAPES)
        ]
        factor = tf.placeholder(tf.float32, [])
        tf.train.get_or_create_global_step()
        loss = total(variables, factor)
        step = optimize.optimize(loss, 0.1, settings(name, **options), use_tpu=False)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for value in (1.0, 2.0, np.inf, np.inf, 3.0, 1e-3):
                session.run(step, {factor: value})
            everything = sorted(tf.global_variables(), key=lambda one: one.op.name)
            return [np.ravel(value).tolist() for value in session.run(everything)]


def cases():
    for name in NAMES:
        yield name, lambda n=name: train(n)
        yield f"{name} clipped", lambda n=name: train(n, clip_grad_norm=0.5)
        yield f"{name} decayed", lambda n=name: train(n, weight_decay=0.01)


if __name__ == "__main__":
    run_cases(cases())
