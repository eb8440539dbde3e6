"""Version guards: a legacy branch beside a current one is left, every other one is renamed.

Both are reported, once. More forms of guards are among the programs of `execution/`.
"""

import textwrap

import pytest
from tf_lossscale_codemods.model import Options, Safety, Target
from verbs import transform_once as transform

KERAS = "tf.keras.mixed_precision"
TARGETS = {
    "final, Keras 2": Options(),
    "final, Keras 3": Options(keras=3),
    "shim": Options(target=Target.SHIM),
}
HEAD = """\
import importlib
import tensorflow as tf
from distutils.version import LooseVersion
from packaging import version
from . import compat
from .compat import IS_TF_2_3

env = compat.Env()
env.minor = int(tf.__version__.split(".")[1])

"""


def transformed(source, options):
    return transform(textwrap.dedent(source).encode(), options)


CONDITIONS = [
    "tf.__version__ < '2.4'",
    "tf.version.VERSION <= '2.3'",
    "'2.4.0' > tf.__version__",
    "not tf.__version__ >= '2.4'",
    "LooseVersion(tf.__version__) < LooseVersion('2.4.0')",
    "tuple(map(int, tf.__version__.split('.')[:2])) < (2, 4)",
    "tf.__version__.startswith('2.3')",
    "tf.__version__.startswith('1.')",
    "gpu and tf.__version__ < '2.2'",
    "env.minor < 4",
    "tf.keras.__version__ < '2.4'",
    "importlib.metadata.version('tensorflow') < '2.4'",
    "IS_TF_2_3",
    "hasattr(tf.keras.mixed_precision, 'experimental')",
    "gpu and hasattr(tf.keras.mixed_precision, 'experimental')",
    # New versions take these.
    "tf.__version__ >= '2.1'",
    "tf.__version__.startswith('2.')",
]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("test", CONDITIONS)
def test_branch_without_a_current_one_is_renamed_and_reported(test, target):
    use = "{}.keras.mixed_precision.experimental.set_policy('mixed_float16')"
    source = f"{HEAD}if {test}:\n    {use.format('tf')}\n"
    result = transformed(source, TARGETS[target])
    assert use.format("tfls") in result.source.decode()
    assert [one.outcome for one in result.findings if one.code == "LS908"] == [Safety.MANUAL]
    again = transform(result.source, TARGETS[target])
    assert again.source == result.source


@pytest.mark.parametrize("test", ["gpu", "sys.version_info < (3, 8)"])
def test_branch_of_another_condition_is_rewritten(test):
    source = f"{HEAD}if {test}:\n    {KERAS}.experimental.set_policy('mixed_float16')\n"
    result = transformed(source, Options())
    assert f"    {KERAS}.set_global_policy('mixed_float16')\n" in result.source.decode()
    assert not [one for one in result.findings if one.code == "LS908"]


@pytest.mark.parametrize(
    "binds",
    [
        "from tensorflow.keras.mixed_precision import experimental as mp",
        "mp = tf.keras.mixed_precision.experimental",
    ],
)
@pytest.mark.parametrize("use", ["LossScaleOptimizer(opt, 'dynamic')", "global_policy()"])
@pytest.mark.parametrize("target", TARGETS)
def test_module_used_inside_and_outside_a_guard_is_moved_by_one_run(target, use, binds):
    source = f"""\
{HEAD}{binds}
if hasattr(tf.keras.mixed_precision, "set_global_policy"):
    tf.keras.mixed_precision.set_global_policy("mixed_float16")
else:
    mp.set_policy("mixed_float16")
print(mp.{use})
"""
    first = transformed(source, TARGETS[target])
    assert "tensorflow.keras" not in first.source.decode()
    assert "tf.keras.mixed_precision.experimental" not in first.source.decode()
    assert f"print(mp.{use})" in first.source.decode()
    assert transform(first.source, TARGETS[target]).source == first.source


def test_a_branch_is_reported_at_its_first_name_in_every_run():
    source = f"""\
{HEAD}try:
    from tensorflow.keras.mixed_precision import LossScaleOptimizer, Policy
except ImportError:
    from tensorflow.keras.mixed_precision.experimental import LossScaleOptimizer, Policy
"""
    first = transformed(source, TARGETS["final, Keras 3"])
    again = transform(first.source, TARGETS["final, Keras 3"])
    for result in (first, again):
        found = [one.symbol for one in result.findings if one.code == "LS908"]
        assert found == ["LossScaleOptimizer"]
