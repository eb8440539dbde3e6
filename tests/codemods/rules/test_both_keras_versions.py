"""For an unknown Keras version, the result is the safe one for Keras 3, which runs on both."""

import textwrap

import pytest
from tf_lossscale_codemods.engine.transform import transform
from tf_lossscale_codemods.model import Options

from examples import all_examples

EXAMPLES = [
    pytest.param(example, id=f"{rule.slug}: {example.id}") for rule, example in all_examples()
]
INSTALLED = "tf.keras.mixed_precision.LossScaleOptimizer("
BEFORE = f"import tensorflow as tf\n\nopt = {INSTALLED}opt)\n"


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_goes_the_safe_way_for_keras_3(example):
    source = textwrap.dedent(example.before).encode()
    both, keras_3 = (
        transform(source, Options(target=example.target, keras=keras)) for keras in (None, 3)
    )
    assert both == keras_3


@pytest.mark.parametrize("unsafe", [False, True])
def test_the_final_class_moves_to_the_shim(unsafe):
    """Also with `--unsafe`: the class of Keras 3 lacks the methods that Keras 2 code calls."""
    after = transform(BEFORE.encode(), Options(keras=None, unsafe=unsafe)).source
    assert b"opt = tfls.keras.mixed_precision.LossScaleOptimizer(opt)" in after
    assert transform(BEFORE.encode(), Options(keras=2)).source == BEFORE.encode()
