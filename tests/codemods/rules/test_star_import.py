"""Star imports: moved only where every name certainly comes from `tf.contrib.mixed_precision`."""

import pytest
from tf_lossscale_codemods.model import Options, Safety, Target
from verbs import transformed

SHIM = Options(target=Target.SHIM)
STAR = "from tensorflow.contrib.mixed_precision import *\n"
USE = "manager = FixedLossScaleManager(8)\n"


@pytest.mark.parametrize(
    "source",
    [
        f"{STAR}from utilities import *\n{USE}",
        f"from npu_bridge.npu_init import *\n{STAR}{USE}",
        f"if FP16:\n    {STAR}{USE}",
        f"try:\n    {STAR}except ImportError:\n    pass\n{USE}",
        f"{STAR}{USE}opt = CrossShardOptimizer(opt)\n",
        f"from tensorflow.keras.mixed_precision.experimental import *\n{USE}",
        f"from tensorflow.contrib.mixed_precision.python.loss_scale_manager import *\n{USE}",
    ],
)
def test_left_where_a_name_may_come_from_elsewhere(source):
    result = transformed(source, SHIM)
    assert result.source.decode() == source
    assert {finding.outcome for finding in result.findings} <= {Safety.MANUAL}


@pytest.mark.parametrize("path", ["tensorflow", "tensorflow.compat.v1", "tensorflow_core"])
@pytest.mark.parametrize("use", ["", USE, "opt = LossScaleOptimizer(opt, manager)\n"])
def test_moved_where_it_is_the_only_one(path, use):
    source = f"from {path}.contrib.mixed_precision import *  # all\n{use}"
    result = transformed(source, SHIM)
    moved = f"from tf_lossscale.contrib.mixed_precision import *  # all\n{use}"
    assert result.source.decode() == moved
    assert [finding.outcome for finding in result.findings] == [Safety.SAFE]
    again = transformed(moved, SHIM)
    assert again.source.decode() == moved
    assert not again.findings


def test_left_on_the_final_target():
    result = transformed(STAR + USE, Options())
    assert result.source.decode() == STAR + USE
    assert {finding.outcome for finding in result.findings} == {Safety.MANUAL}
