"""Star imports: never rewritten; the names that they may bind are reported."""

import pytest
from tf_lossscale_codemods.model import Options, Safety, Target
from verbs import transformed

SHIM = Options(target=Target.SHIM)
STAR = "from tensorflow.contrib.mixed_precision import *\n"
USE = "manager = FixedLossScaleManager(8)\n"


@pytest.mark.parametrize(
    "source",
    [
        STAR,
        STAR + USE,
        f"{STAR}from utilities import *\n{USE}",
        f"from npu_bridge.npu_init import *\n{STAR}{USE}",
        f"if FP16:\n    {STAR}{USE}",
        f"try:\n    {STAR}except ImportError:\n    pass\n{USE}",
        f"{STAR}{USE}opt = CrossShardOptimizer(opt)\n",
        f"from tensorflow.keras.mixed_precision.experimental import *\n{USE}",
        f"from tensorflow.contrib.mixed_precision.python.loss_scale_manager import *\n{USE}",
    ],
)
def test_left_and_reported(source):
    result = transformed(source, SHIM)
    assert result.source.decode() == source
    assert {finding.outcome for finding in result.findings} == {Safety.MANUAL}


BELOW = {
    "tensorflow": "keras.mixed_precision.experimental.LossScaleOptimizer(opt, 8)",
    "tensorflow.keras": "mixed_precision.experimental.set_policy('mixed_float16')",
    "tensorflow.contrib": "mixed_precision.FixedLossScaleManager(8)",
    "tensorflow.compat.v2": "keras.mixed_precision.experimental.get_layer_policy(layer)",
    "tensorflow.train": "experimental.DynamicLossScale()",
    "compat": "mixed_precision.experimental.Policy('float32')",
    ".compat": "keras.mixed_precision.experimental.global_policy()",
}


@pytest.mark.parametrize("options", [SHIM, Options(), Options(keras=3)], ids=str)
@pytest.mark.parametrize("module", BELOW)
def test_chain_below_a_star_import_is_reported(module, options):
    source = f"from {module} import *\n\nit = {BELOW[module]}\n"
    result = transformed(source, options)
    assert result.source.decode() == source
    found = [(finding.line, finding.code, finding.outcome) for finding in result.findings]
    assert found == [(3, "LS901", Safety.MANUAL)]
    message = f"names from `import *` ({module}) are not resolved: import them by name"
    assert result.findings[0].message.startswith(message)


@pytest.mark.parametrize("options", [SHIM, Options(keras=3)], ids=["shim", "keras 3"])
def test_final_class_below_a_star_import_is_reported_where_it_moves(options):
    source = "from tensorflow.keras import *\nopt = mixed_precision.LossScaleOptimizer(opt)\n"
    assert [finding.code for finding in transformed(source, options).findings] == ["LS901"]
    assert not transformed(source, Options(keras=2)).findings


@pytest.mark.parametrize(
    "source",
    [
        "from npu_bridge.npu_init import *\nkeras.mixed_precision.experimental.set_policy('x')\n",
        "from tensorflow.keras import *\nmixed_precision.set_global_policy('float32')\n",
        "from tensorflow.train import *\nmixed_precision.experimental.other('x')\n",
    ],
)
def test_other_chains_are_not(source):
    assert not transformed(source, Options()).findings
