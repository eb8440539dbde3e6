"""The way through an `.h5` file of weights, as docs/checkpoints.md and the guide describe it.

tf_keras reads the checkpoint of an old TensorFlow and writes the weights, which Keras 3 loads.
"""

import os
from typing import Any

import half_trained as runs
import numpy as np
import pytest
import recorded
import tensorflow as tf
from test_half_trained import ARCHIVES, recorded_cases, unpacked

KINDS = {kind.name: kind for kind in recorded.kinds()}
HAS_BOTH = "keras3" in KINDS and len(KINDS) > 1


@pytest.mark.skipif(not HAS_BOTH, reason="needs tf_keras and Keras 3")
@pytest.mark.parametrize("archive", [name for name in ARCHIVES if name.startswith(("2.3", "2.4"))])
def test_weights_go_through_an_hdf5_file(archive: str, tmp_path: Any):
    case, expected = next(
        (case, expected)
        for case, expected in sorted(recorded_cases(archive).items())
        if case.startswith("functional") and case.endswith("checkpoint")
    )
    old = runs.built(__import__("tf_keras"), "functional")
    path = os.path.join(unpacked(archive, tmp_path), case)
    latest = tf.train.latest_checkpoint(path) or path
    tf.train.Checkpoint(model=old).restore(latest).expect_partial()
    weights = str(tmp_path / "run.h5")
    old.save_weights(weights)
    new = runs.built(KINDS["keras3"].keras, "functional")
    new.load_weights(weights)
    np.testing.assert_allclose(runs.outputs(new), expected["at_save"], rtol=1e-5, atol=1e-6)
