"""Reads and calls `loss_scale` under a strategy of two replicas: `... SUBJECT...`; prints JSON."""

import json
import sys
from typing import Any, Dict, List

import recorded
import replicas
import tensorflow as tf

tf.compat.v1.enable_v2_behavior()


def values(strategy: Any, result: Any) -> List[float]:
    return [float(value.numpy()) for value in replicas.local(strategy, result)]


def uses(strategy: Any, subject) -> Dict[str, List[float]]:
    """The scale, 8, in all the ways in which a program can get it."""
    with strategy.scope():
        optimizer = subject.dynamic(subject.inner("SGD", learning_rate=0.5), 8.0, 1)
        scale = optimizer.loss_scale
        outside = [float(scale), float(scale()), float(optimizer.loss_scale * 1.0)]

    def run(function: Any, *args: Any) -> Any:
        return replicas.run(strategy, function, args)

    def read() -> Any:
        return optimizer.loss_scale * 1.0

    found = {
        "read": run(read),
        "called": run(lambda: optimizer.loss_scale()),
        "argument": run(lambda given: given * 1.0, scale),
        "read in a function": tf.function(lambda: run(read))(),
        "called in a function": tf.function(lambda: run(lambda: optimizer.loss_scale()))(),
        "kept, and called in a function": tf.function(lambda: run(lambda: scale()))(),
        "argument of a function": tf.function(lambda given: run(lambda inner: inner * 1.0, given))(
            scale
        ),
    }
    return {"outside": outside, **{use: values(strategy, found[use]) for use in found}}


def main():
    strategy = replicas.mirrored(2)
    subjects = {str(subject): subject for subject in recorded.ours()}
    print(json.dumps({name: uses(strategy, subjects[name]) for name in sys.argv[1:]}))


if __name__ == "__main__":
    main()
