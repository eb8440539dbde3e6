"""The way through an `.h5` file of weights, as docs/checkpoints.md and the guide describe it.

tf_keras reads the checkpoint of an old TensorFlow and writes the weights, which Keras 3 loads.
"""

from typing import Any

import half_trained as runs
import numpy as np
import pytest
import recorded
import tensorflow as tf
from test_half_trained import Resumed

KINDS = {kind.name: kind for kind in recorded.kinds()}
HAS_BOTH = "keras3" in KINDS and len(KINDS) > 1
RUNS = [
    Resumed("2.0-legacy", runs.Case("sequential", "adadelta", "checkpoint"), "keras3"),
    Resumed("2.3-legacy", runs.Case("recurrent", "nadam", "manager"), "keras3"),
    Resumed("2.4-legacy", runs.Case("nested", "adam", "checkpoint"), "keras3"),
    Resumed("2.8-legacy", runs.Case("sequential", "centered", "checkpoint"), "keras3"),
]


@pytest.mark.skipif(not HAS_BOTH, reason="needs tf_keras and Keras 3")
@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.archive)
def test_weights_go_through_an_hdf5_file(run: Resumed, tmp_path: Any):
    old = runs.built(__import__("tf_keras"), run.case.model)
    path = run.unpack(tmp_path)
    latest = tf.train.latest_checkpoint(path) or path
    tf.train.Checkpoint(model=old).restore(latest).expect_partial()
    weights = str(tmp_path / "run.h5")
    old.save_weights(weights)
    new = runs.built(KINDS["keras3"].keras, run.case.model)
    new.load_weights(weights)
    expected = run.expected["outputs"]
    np.testing.assert_allclose(runs.outputs(new), expected, rtol=1e-5, atol=1e-6)
