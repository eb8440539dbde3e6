"""Messages that give a line with `tfls` to write also give its import, if the file has none."""

import pytest
from tf_lossscale_codemods.engine.transform import transform
from tf_lossscale_codemods.model import Options

SOURCE = """\
import tensorflow as tf
{imports}

optimizer = {prefix}.LossScaleOptimizer(tf.keras.optimizers.Adam(), "dynamic")
checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer)
checkpoint.restore(path)
"""
EXPERIMENTAL = "tensorflow.keras.mixed_precision.experimental"


@pytest.mark.parametrize(
    ("imports", "prefix", "is_missing"),
    [
        (f"import {EXPERIMENTAL} as prec", "prec", True),
        (f"import {EXPERIMENTAL} as prec\nimport tf_lossscale as tfls", "prec", False),
        ("", "tf.keras.mixed_precision.experimental", False),
    ],
)
def test_a_message_names_the_import_that_its_line_needs(imports, prefix, is_missing):
    source = SOURCE.format(imports=imports, prefix=prefix).encode()
    result = transform(source, Options(keras=3))
    (message,) = [found.message for found in result.findings if found.code == "LS409"]
    assert "write tfls.checkpoints.restore(path, checkpoint)" in message
    assert message.endswith(" (with import tf_lossscale as tfls)") is is_missing
