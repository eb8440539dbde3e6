"""A name that is bound again to what is read from it is rewritten or reported."""

import textwrap

import pytest
from tf_lossscale_codemods.model import Options, Target
from verbs import transformed

SHIM, KERAS_2, KERAS_3 = Options(target=Target.SHIM), Options(), Options(keras=3)

REBOUND = {
    "symbol": ("import tensorflow as tf", "tf = tf.train.experimental.FixedLossScale"),
    "symbol of a root": ("import tensorflow as tf", "tf = tf.contrib.tpu.CrossShardOptimizer"),
    "module": ("from tensorflow import tpu", "tpu = tpu.CrossShardOptimizer"),
    "module of contrib": ("from tensorflow.contrib import tpu", "tpu = tpu.CrossShardOptimizer"),
    "contrib": ("from tensorflow import contrib", "contrib = contrib.tpu.CrossShardOptimizer"),
    "annotated": ("from tensorflow import tpu", "tpu: type = tpu.CrossShardOptimizer"),
    "tuple": ("from tensorflow import tpu", "tpu, x = tpu.CrossShardOptimizer, 1"),
    "two names": ("from tensorflow import tpu", "x = tpu = tpu.CrossShardOptimizer"),
    "conditional": ("from tensorflow import tpu", "tpu = tpu.CrossShardOptimizer if a else None"),
    "walrus": ("from tensorflow import tpu", "print(tpu := tpu.CrossShardOptimizer)"),
    "list": ("from tensorflow import tpu", "tpu = [tpu.CrossShardOptimizer]"),
    "call": ("from tensorflow import tpu", "tpu = tpu.CrossShardOptimizer(tpu)"),
    "branch": ("from tensorflow import tpu", "if a:\n    tpu = tpu.CrossShardOptimizer"),
    "loop": ("import tensorflow as tf", "for i in a:\n    tf = tf.tpu.CrossShardOptimizer"),
    "through a name": (
        "import tensorflow as tf", "x = tf.train.experimental.FixedLossScale\ntf = x",
    ),
    "comprehension": (
        "import tensorflow as tf", "[tf.CrossShardOptimizer for tf in [tf.contrib.tpu]]",
    ),
    "generator": ("import tensorflow as tf", "f(tf for tf in [tf.tpu.cross_replica_sum])"),
    "dictionary": ("import tensorflow as tf", "{tf: 1 for tf in [tf.tpu.cross_replica_sum]}"),
    "used before": (
        "from tensorflow import tpu", "tpu.cross_replica_sum(x)\ntpu = tpu.CrossShardOptimizer",
    ),
    "used in another branch": (
        "from tensorflow import tpu",
        "if a:\n    tpu = tpu.CrossShardOptimizer\nelse:\n    tpu.cross_replica_sum(x)",
    ),
    "module used before": (
        "import tensorflow as tf",
        "use(tf.contrib.mixed_precision)\ntf = tf.train.experimental.FixedLossScale",
    ),
}  # fmt: skip
USES = {"alone": "", "shown": "\nprint({})", "called": "\nopt = {}(opt)"}


def unmentioned(source: str, options: Options) -> list:
    """The lines with a legacy symbol that neither change nor have a finding."""
    result = transformed(source, options)
    kept = result.source.decode().splitlines()
    reported = {finding.line for finding in result.findings if finding.is_left}
    legacy = ("CrossShard", "cross_replica", "FixedLossScale", "contrib.tpu", "mixed_precision")
    return [
        line
        for number, line in enumerate(source.splitlines(), 1)
        if any(word in line for word in legacy)
        and "import" not in line
        and "tfls" not in line
        and line in kept
        and number not in reported
    ]


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("form", REBOUND)
def test_name_that_is_bound_to_its_own_symbol_is_not_silent(form, use):
    line, body = REBOUND[form]
    name = line.split()[-1]
    source = f"{line}\n{body}{USES[use].format(name)}\n"
    assert unmentioned(source, SHIM) == []
    inside = f"def f(a, x, opt):\n{textwrap.indent(source, '    ')}"
    assert unmentioned(inside, SHIM) == []


def test_name_with_two_meanings_keeps_its_import():
    source = "import tensorflow as tf\ntf = tf.train.experimental.FixedLossScale\nprint(tf)\n"
    after = (
        "import tensorflow as tf\nimport tf_lossscale as tfls\n"
        "tf = tfls.train.experimental.FixedLossScale\nprint(tf)\n"
    )
    result = transformed(source, SHIM)
    assert result.source.decode() == after
    assert transformed(after, SHIM).source.decode() == after


@pytest.mark.parametrize("options", [KERAS_2, KERAS_3, SHIM], ids=["2", "3", "shim"])
@pytest.mark.parametrize("call", ["mp(opt, 'dynamic')", "mp", ""])
def test_class_that_takes_the_name_of_its_module_keeps_its_parameters(options, call):
    source = (
        "from tensorflow.keras.mixed_precision import experimental as mp\n"
        f"mp = mp.LossScaleOptimizer\n{call}\n"
    )
    result = transformed(source, options)
    assert "from tf_lossscale.keras.mixed_precision import experimental as mp" in (
        result.source.decode()
    )
    again = transformed(result.source.decode(), options)
    assert again.source == result.source


def test_version_1_under_the_name_of_tensorflow_is_followed():
    source = "import tensorflow as tf\ntf = tf.compat.v1\nx = tf.train.experimental.LossScale\n"
    result = transformed(source, SHIM)
    assert "x = tfls.train.experimental.LossScale" in result.source.decode()
    assert not [finding for finding in result.findings if finding.is_left]


def test_module_of_the_shim_under_the_name_of_its_symbol_is_right():
    source = "from tf_lossscale.contrib import tpu\ntpu = tpu.CrossShardOptimizer\nprint(tpu)\n"
    result = transformed(source, SHIM)
    assert result.source.decode() == source
    assert not [finding for finding in result.findings if finding.is_left]
