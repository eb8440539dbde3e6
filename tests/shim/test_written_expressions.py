"""What docs/what-to-write.md says `migrate --to shim` writes runs on every TensorFlow."""

import os
import re
import types

import pytest
import recorded

import tf_lossscale as tfls
from tf_lossscale import _paths

tf = recorded.tf
PAGE = os.path.join(os.path.dirname(__file__), "..", "..", "docs", "what-to-write.md")
WITHOUT_THIS_ARGUMENT = "loss_scale='dynamic')"
"""Of the final class, as no TensorFlow has had it; `migrate` reports it."""


def written():
    """The expressions of the first column, with the shim's names."""
    with open(PAGE, encoding="utf-8") as file:
        found = re.findall(r"(?m)^\| `(tf\..*?)` \|", file.read())
    for code in found:
        code = code.replace(
            "tf.keras.mixed_precision.set_", "tf.keras.mixed_precision.experimental.set_"
        )
        for symbol in _paths.SYMBOLS:
            for namespace in symbol.namespaces:
                path = re.escape(f"{namespace}.{symbol.name}")
                code = re.sub(rf"\btf\.({path})\b", r"tfls.\1", code)
        yield code


EXPRESSIONS = sorted(set(written()))
OF_V1 = ("contrib", "tpu", "MixedPrecisionLossScaleOptimizer")


def values(code):
    """What the names in an expression stand for."""
    v1 = tf.compat.v1
    is_v1 = any(word in code for word in OF_V1)
    return {
        "tf": tf,
        "tfls": tfls,
        "opt": v1.train.GradientDescentOptimizer(0.5) if is_v1 else tf.keras.optimizers.SGD(0.5),
        "manager": tfls.contrib.mixed_precision.FixedLossScaleManager(8.0),
        "scale": tfls.train.experimental.FixedLossScale(8.0),
        "flags": types.SimpleNamespace(loss_scale="dynamic"),
        "layer": tf.keras.layers.Dense(1),
        "loss": tf.constant(1.0),
        "grads": [tf.constant(1.0)],
        "x": tf.constant(1.0),
    }


@pytest.fixture
def policy():
    """Sets an experimental policy, and undoes what was set.

    From TensorFlow 2.4 to 2.8, a policy that was set by its name has no loss scale.
    """
    if recorded.TF < (2, 0):  # policies are a part of TensorFlow 2's behavior
        from tensorflow.python.keras.engine import base_layer_utils

        base_layer_utils.enable_v2_dtype_behavior()
    experimental = tfls.keras.mixed_precision.experimental
    experimental.set_policy(experimental.Policy("float32"))
    yield
    tfls.train.experimental.disable_mixed_precision_graph_rewrite()
    tfls.keras.mixed_precision.set_global_policy("float32")


@pytest.mark.parametrize("code", EXPRESSIONS)
def test_it_runs(code, policy):
    with recorded.eagerly():
        if code.endswith(WITHOUT_THIS_ARGUMENT) and "experimental" not in code:
            with pytest.raises(TypeError, match="loss_scale"):
                eval(code, values(code))
        else:
            eval(code, values(code))


def test_there_are_expressions():
    assert len(EXPRESSIONS) > 30
    assert all(code.startswith("tfls.") for code in EXPRESSIONS)
