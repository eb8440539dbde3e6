"""`checkpoints.restore` continues what older versions saved as the run that was not stopped.

`tests/data/fixtures/half_trained` has the files of each version and kind of optimizer, and what the
real class did in the 20 steps after the save: scales, iterations, and outputs of the model. A slot
or an iteration that is lost shows in them at once.
"""

import functools
import json
import os
import tarfile
from typing import Any, Dict

import half_trained as runs
import numpy as np
import pytest
import recorded
from recorded_files import FIXTURES

import tf_lossscale as tfls

FOLDER = os.path.join(FIXTURES, "half_trained")
ONLY_WEIGHTS = ("weights", "weights.h5")
KIND = recorded.kinds()[-1]  # Keras 3, where there is one


@functools.lru_cache(maxsize=None)
def recorded_cases(archive: str) -> Dict[str, Any]:
    """What the real class did, by the name of the case: the model, the optimizer and the form."""
    with tarfile.open(os.path.join(FOLDER, archive)) as opened:
        file = opened.extractfile("expected.json")
        assert file is not None
        found: Dict[str, Any] = json.loads(file.read().decode())["cases"]
    return found


ARCHIVES = sorted(name for name in os.listdir(FOLDER) if name.endswith(".tar.gz"))
CASES = [
    pytest.param(archive, case, id=f"{archive[:-7]}-{case}")
    for archive in ARCHIVES
    for case in sorted(recorded_cases(archive))
    if hasattr(KIND.keras.layers, "MultiHeadAttention") or "attention" not in case
]


def unpacked(archive: str, folder: Any) -> str:
    with tarfile.open(os.path.join(FOLDER, archive)) as opened:
        safely: Dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        opened.extractall(str(folder), **safely)
    return str(folder)


@pytest.mark.skipif(KIND.name != "keras3", reason="the runs continue on Keras 3")
@pytest.mark.sampled(6)
@pytest.mark.parametrize(("archive", "case"), CASES)
def test_a_recorded_run_goes_on(archive: str, case: str, tmp_path: Any):
    expected = recorded_cases(archive)[case]
    model_name, name, form = case.split("-")
    model = runs.built(KIND.keras, model_name)
    for weight in model.weights:
        weight.assign(weight * 0.0)
    optimizer = tfls.keras.mixed_precision.LossScaleOptimizer(
        runs.inner_optimizer(KIND.optimizers, name, rate=0.5),
        initial_scale=4.0 * runs.SCALE,
        dynamic_growth_steps=runs.PERIOD,
    )
    path = os.path.join(unpacked(archive, tmp_path), case)
    given = [model] if form in ONLY_WEIGHTS else [model, optimizer]
    report = tfls.checkpoints.restore(path, *given)
    assert not report.unused
    np.testing.assert_allclose(runs.outputs(model), expected["at_save"], rtol=1e-5, atol=1e-6)
    if form in ONLY_WEIGHTS:
        return
    found = runs.go_on(model, optimizer)
    assert found["iterations"] == expected["iterations"]
    if form != "model.h5":  # which has no loss scale
        assert found["scales"] == expected["scales"]
        assert not report.initial
    for left, right in zip(found["outputs"], expected["outputs"]):
        np.testing.assert_allclose(left, right, rtol=1e-3, atol=1e-4)
