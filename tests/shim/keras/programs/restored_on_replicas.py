"""The first step, on two replicas, of an optimizer whose slots wait for it; prints JSON.

The arguments are checkpoints. Prints by checkpoint, and for `set_weights`, whether the slots of all
replicas are equal, and the first slot.
"""

import json
import sys
from typing import Any, List

import keras
import replicas
import tensorflow as tf

import tf_lossscale as tfls

TWO = replicas.mirrored(2)


def made() -> Any:
    inner = keras.optimizers.Adam(0.0625)
    return tfls.keras.mixed_precision.LossScaleOptimizer(inner)


def variables() -> List[Any]:
    return [tf.Variable([1.0, 2.0]), tf.Variable([[3.0]]), tf.Variable(0.5)]


def step(optimizer: Any, trained: List[Any]):
    optimizer.apply_gradients([(tf.ones_like(variable), variable) for variable in trained])


def outcome(optimizer: Any, trained: List[Any]) -> Any:
    TWO.run(step, (optimizer, trained))
    slots = [slot.value.values for slot in optimizer.inner_optimizer.variables]
    equal = all((first.numpy() == second.numpy()).all() for first, second in slots)
    return [bool(equal), optimizer.inner_optimizer._momentums[0].value.values[1].numpy().tolist()]


def restored(path: str) -> Any:
    with TWO.scope():
        optimizer, trained = made(), variables()
        tf.train.Checkpoint(opt=optimizer, v=trained).restore(path)
    return outcome(optimizer, trained)


def with_weights() -> Any:
    with TWO.scope():
        source, trained = made(), variables()
    TWO.run(step, (source, trained))
    with TWO.scope():
        optimizer, trained = made(), variables()
        optimizer.set_weights(source.get_weights())
    return outcome(optimizer, trained)


found = {path: restored(path) for path in sys.argv[1:]}
print(json.dumps({**found, "set_weights": with_weights()}))
