"""Trains a small BERT of transformers with its `create_optimizer` and a loss scale.

python transformers_steps.py original|ours
"""

from results import flat, run_cases, train, use_ours

# isort: split
import os

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import numpy as np
import tensorflow as tf
import transformers

import tf_lossscale as tfls

CONFIG = {
    "vocab_size": 30,
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 8,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
IDS = np.arange(32).reshape(4, 8) % 30
LABELS = np.array([0, 1, 0, 1])


def scaled(inner, **options):
    namespace = tfls.keras.mixed_precision if use_ours() else tf.keras.mixed_precision
    return namespace.LossScaleOptimizer(inner, initial_scale=8.0, **options)


def create(**options):
    return transformers.create_optimizer(0.01, num_train_steps=10, num_warmup_steps=2, **options)[0]


def model():
    tf.keras.utils.set_random_seed(1)
    made = transformers.TFBertForSequenceClassification(transformers.BertConfig(**CONFIG))
    made(IDS)
    return made


def fit(optimizer):
    trained = model()
    trained.compile(optimizer)
    trained.fit({"input_ids": IDS, "labels": LABELS}, batch_size=2, epochs=2, verbose=0)
    return flat(trained.get_weights())


def loop(optimizer, compiled):
    trained = model()

    def loss_of(variables, factor):
        return factor * tf.reduce_mean(trained(IDS, labels=LABELS, training=True).loss)

    variables = trained.trainable_variables
    train(optimizer, (1.0, float("inf"), 2.0), compiled, variables=variables, loss_of=loss_of)
    return flat(trained.get_weights())


def cases():
    for name, options in {
        "weight decay": {"weight_decay_rate": 0.01},
        "no weight decay": {},
        "clipped": {"weight_decay_rate": 0.01, "adam_clipnorm": 0.5},
    }.items():
        for scale, settings in {"dynamic": {}, "fixed": {"dynamic": False}}.items():

            def make(o=options, s=settings):
                return scaled(create(**o), **s)

            yield f"fit {name} {scale}", lambda m=make: fit(m())
            yield f"eager {name} {scale}", lambda m=make: loop(m(), False)
            yield f"function {name} {scale}", lambda m=make: loop(m(), True)


if __name__ == "__main__":
    run_cases(cases())
