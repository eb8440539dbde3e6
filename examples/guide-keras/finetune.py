"""Continues with `fit`. Under mixed_float16, `compile` wraps the optimizer."""

import sys

import numpy as np
import tensorflow as tf

import data
import model


def finetune(path, steps=200):
    """Trains the model in `path` for some more steps, and returns its loss."""
    net = model.classifier()
    net.load_weights(path)
    net.compile(tf.keras.optimizers.SGD(lr=0.1, momentum=0.9), model.loss_fn())
    points, labels = map(np.concatenate, zip(*data.batches(steps)))
    net.fit(points, labels, batch_size=256, shuffle=False, verbose=0)
    print(f"loss scale {float(net.optimizer.loss_scale)}")
    return net.evaluate(points, labels, verbose=0)


if __name__ == "__main__":
    print(f"loss {finetune(sys.argv[1]):.2f}")
