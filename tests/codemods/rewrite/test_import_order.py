"""A rewritten place never reads an import of TensorFlow that stands below it."""

import pytest
from tf_lossscale_codemods.model import Options, Target
from verbs import transformed

BELOW = """\
from tensorflow.contrib import tpu as contrib_tpu

{use}
import tensorflow as tf

print(contrib_tpu, tf)
"""
AT_ONCE = {
    "a statement": "opt = contrib_tpu.CrossShardOptimizer(opt)\n",
    "a class": "class Settings:\n    opt = contrib_tpu.CrossShardOptimizer(opt)\n",
    "a comprehension": "opts = [contrib_tpu.CrossShardOptimizer(one) for one in opts]\n",
    "a default": "def f(kind=contrib_tpu.CrossShardOptimizer):\n    pass\n",
}
LATER = {
    "a function": "def wrap(opt):\n    return contrib_tpu.CrossShardOptimizer(opt)\n",
    "a lambda": "wrap = lambda opt: contrib_tpu.CrossShardOptimizer(opt)\n",
    "a method": "class A:\n    def f(self):\n        return contrib_tpu.CrossShardOptimizer(1)\n",
}


@pytest.mark.parametrize("use", AT_ONCE)
def test_what_runs_at_once_gets_an_import_above_it(use):
    after = transformed(BELOW.format(use=AT_ONCE[use]), Options()).source.decode()
    assert "tf.compat" not in after
    assert after.index("import tensorflow\n") < after.index("tensorflow.compat.v1.tpu.CrossShard")
    assert transformed(after, Options()).source.decode() == after


@pytest.mark.parametrize("use", LATER)
def test_what_runs_later_uses_the_import_that_is_there(use):
    after = transformed(BELOW.format(use=LATER[use]), Options()).source.decode()
    assert "tf.compat.v1.tpu.CrossShardOptimizer" in after
    assert "import tensorflow\n" not in after


def test_import_of_the_shim_below_the_use():
    source = BELOW.format(use=AT_ONCE["a statement"]).replace(
        "tensorflow as tf", "tf_lossscale as tfls"
    )
    source = source.replace(", tf)", ", tfls)")
    after = transformed(source, Options(target=Target.SHIM)).source.decode()
    assert after.index("import tf_lossscale\n") < after.index("tf_lossscale.contrib.tpu.CrossShard")
