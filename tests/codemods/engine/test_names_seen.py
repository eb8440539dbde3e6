"""`-v`: why a file that holds a legacy name is left unchanged."""

import pytest
from tf_lossscale_codemods.engine.transform import transform
from tf_lossscale_codemods.model import Options

CASES = {
    "another library's": (
        "from apex.amp import LossScaleOptimizer",
        "`LossScaleOptimizer` comes from `apex.amp`, which is not TensorFlow",
    ),
    "the final class": (
        "import tensorflow as tf\ntf.keras.mixed_precision.LossScaleOptimizer(opt)",
        "`LossScaleOptimizer` is the final API already",
    ),
    "the shim's": (
        "import tf_lossscale as tfls\ntfls.contrib.mixed_precision.FixedLossScaleManager(8)",
        "`FixedLossScaleManager` is the shim's already",
    ),
    "its own class": (
        "class LossScaleOptimizer:\n    pass",
        "`LossScaleOptimizer` is defined in this file",
    ),
    "a string": (
        "x = 'of tf.contrib.mixed_precision.LossScaleOptimizer'",
        "`LossScaleOptimizer` is only in a string, a comment or an argument",
    ),
    "a method": (
        "def step(opt, loss):\n    return opt.get_scaled_loss(loss)",
        "`get_scaled_loss` is an attribute of `opt`, an object whose type is not known",
    ),
    "a module": (
        "from tensorflow.keras import mixed_precision",
        "`mixed_precision` comes from `tensorflow.keras`, where no name needs a rewrite",
    ),
    "many": (
        "x = 'LossScale LossScaleManager FixedLossScale DynamicLossScale LossScaleOptimizer "
        "cross_replica_sum'",
        "; and 1 more",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_note_names_each_symbol_and_its_origin(name):
    source, expected = CASES[name]
    note = transform(source.encode() + b"\n", Options()).note
    assert note.startswith("no symbol to migrate in it: ")
    assert expected in note


def test_note_of_rules_that_are_not_selected():
    source = b"from tensorflow.contrib.mixed_precision import LossScaleOptimizer\n"
    assert "selected rules" in transform(source, Options(select=("LS5",))).note


def test_note_of_silenced_findings():
    source = b"""\
from tensorflow.contrib.mixed_precision import LossScaleOptimizer  # lossscale: ignore[LS1] later
"""
    result = transform(source, Options())
    assert not result.findings
    assert result.note == "comments silence all findings in it"


def test_one_finding_at_one_place():
    source = b"""\
import tensorflow as tf

if type(opt).__name__ in ["LossScaleOptimizer", "LossScaleOptimizerV1"]:
    opt = opt.inner_optimizer
"""
    (finding,) = transform(source, Options()).findings
    assert finding.code == "LS906"
