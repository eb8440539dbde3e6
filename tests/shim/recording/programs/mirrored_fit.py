"""Calls `fit` under a `MirroredStrategy` over two logical CPUs, with and without recording.

Usage: mirrored_fit.py SUBJECT. Prints what `replicated.py` prints of a case: what a callback saw of
each step, the record, and the names of what differs from the run without recording.
"""

import json
import os
import sys
import tempfile

import numpy as np
import recorded
import replicas
import replicated
import tensorflow as tf

import tf_lossscale as tfls

tf.compat.v1.enable_v2_behavior()
STRATEGY = replicas.mirrored(2)
SUBJECT = replicated.SUBJECTS[sys.argv[1]]
keras = SUBJECT.kind.keras


def fit():
    keras.backend.clear_session()
    tf.compat.v1.set_random_seed(3)
    with STRATEGY.scope():
        constant = keras.initializers.Constant(0.1)
        model = keras.Sequential(
            [keras.layers.Dense(size, kernel_initializer=constant) for size in (3, 1)]
        )
        model.build([None, 2])
        inner = SUBJECT.inner("SGD", learning_rate=0.5, momentum=0.5)
        options = {"jit_compile": False} if SUBJECT.kind.name == "keras3" else {}
        model.compile(SUBJECT.dynamic(inner, 1024.0, 2), "mse", **options)
    rows = []

    class Rows(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch, logs=None):
            model.reset_metrics()  # the loss is a mean over the batches since then

        def on_train_batch_end(self, batch, logs=None):
            scale = recorded.number(SUBJECT.scale_and_counter(model.optimizer)[0])
            weights = [np.concatenate([np.ravel(each) for each in model.get_weights()]).tolist()]
            rows.append({"weights": weights, "scales": [scale], "loss": float(logs["loss"])})

    images = np.linspace(0.1, 1.0, 40, dtype=np.float32).reshape([20, 2])
    images[6, 0] = images[9, 1] = float("inf")
    data = tf.data.Dataset.from_tensor_slices((images, images[:, :1])).batch(4)
    model.fit(data, epochs=1, shuffle=False, verbose=0, callbacks=[Rows()])
    return rows, tf.random.normal([2]).numpy().tolist()


path = os.path.join(tempfile.mkdtemp(), "record.jsonl")
tfls.recording.start(path)
try:
    kept = fit()
finally:
    tfls.recording.stop()
found = {"rows": kept[0], "record": replicated.summary(path)}
print(json.dumps(dict(found, changed=[] if replicated.same(kept, fit()) else ["something"])))
