"""The way through an `.h5` file of weights, as docs/checkpoints.md and the guide describe it.

tf_keras reads the checkpoint of an old TensorFlow and writes the weights, which Keras 3 loads.
"""

from typing import Any

import h5py
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

TENSORFLOW_REFUSES = (
    r"trying to restore a checkpoint from a legacy .*optimizer into a v2\.11\+ Optimizer, .*"
    r"tf\.keras\.optimizers\.legacy"
)
"""Words of the title of a section of docs/troubleshooting.md."""


@pytest.mark.skipif(not HAS_BOTH, reason="needs tf_keras and Keras 3")
@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.archive)
def test_weights_go_through_an_hdf5_file(run: Resumed, tmp_path: Any):
    old = runs.built(__import__("tf_keras"), run.case.model)
    path = run.unpack(tmp_path)
    latest = tf.train.latest_checkpoint(path) or path
    tf.train.Checkpoint(model=old).restore(latest).expect_partial()
    weights = str(tmp_path / "run.h5")
    old.save_weights(weights)
    with h5py.File(weights, "r") as file:
        assert not [name for name in file if "optimizer" in name]
    new = runs.built(KINDS["keras3"].keras, run.case.model)
    new.load_weights(weights)
    expected = run.expected["outputs"]
    np.testing.assert_allclose(runs.outputs(new), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.skipif(not HAS_BOTH, reason="needs tf_keras and Keras 3")
@pytest.mark.parametrize("kind", ["legacy", "new"])
def test_only_legacy_optimizers_restore_what_an_old_one_wrote(kind: str, tmp_path: Any):
    run = Resumed("2.4-legacy", runs.Case("nested", "adam", "checkpoint"), "keras3")
    old = runs.built(__import__("tf_keras"), run.case.model)
    optimizer = KINDS[kind].optimizers.Adam()
    wrapped = __import__("tf_keras").mixed_precision.LossScaleOptimizer(optimizer)
    path = run.unpack(tmp_path)
    checkpoint = tf.train.Checkpoint(model=old, optimizer=wrapped)
    if kind == "new":
        with pytest.raises(ValueError, match=TENSORFLOW_REFUSES):
            checkpoint.restore(path)
        return
    checkpoint.restore(path).expect_partial()
    optimizer._create_all_weights(old.trainable_variables)
    slots = [optimizer.get_slot(variable, "m") for variable in old.trainable_variables]
    assert all(np.any(slot.numpy()) for slot in slots)
