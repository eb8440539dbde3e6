"""Compiles a model again, under `mixed_float16`, with Keras's own class and with ours: prints JSON.

What `install(replace=True)` puts in the place of Keras's class must not wrap an optimizer twice.
"""

import json
from typing import Any, Callable, Dict, List, Union

import recorded
import tensorflow as tf
from small_model import set_policy

import tf_lossscale as tfls

keras = tf.keras


def model() -> Any:
    return keras.Sequential([keras.layers.Dense(1, input_shape=(1,))])


def optimizers(optimizer: Any) -> List[str]:
    """The names of the classes, outermost first."""
    own = vars(optimizer)
    inner = own.get("inner_optimizer", own.get("_optimizer"))
    return [type(optimizer).__name__, *([] if inner is None else optimizers(inner))]


def outcome(compile_again: Callable[[], Any]) -> Union[List[str], str]:
    try:
        return optimizers(compile_again().optimizer)
    except ValueError:
        return "ValueError"


def run() -> Dict[str, Any]:
    optimizer, first = keras.optimizers.SGD(0.5), model()
    first.compile(optimizer, "mse")

    def again(with_optimizer: Any, which: Any) -> Any:
        which.compile(with_optimizer, "mse")
        return which

    return {
        "ours": recorded.is_ours(first.optimizer),
        "its own optimizer": outcome(lambda: again(first.optimizer, first)),
        "the bare optimizer": outcome(lambda: again(optimizer, first)),
        "another model": outcome(lambda: again(optimizer, model())),
    }


if __name__ == "__main__":
    set_policy(keras, "mixed_float16")
    found = {"original": run()}
    tfls.install(replace=True)
    found["ours"] = run()
    print(json.dumps(found))
