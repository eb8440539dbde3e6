"""Names with several meanings: nothing of them is left out, and a second run changes nothing.

The programs are those that mutated examples have shown (`engine/test_fuzz.py`), and their kind.
"""

import itertools

import pytest
from tf_lossscale_codemods.engine.transform import transform
from tf_lossscale_codemods.model import Options, Target

OPTIONS = {
    "shim": Options(target=Target.SHIM),
    **{
        f"Keras {keras}{', unsafe' if unsafe else ''}": Options(keras=keras, unsafe=unsafe)
        for keras, unsafe in itertools.product([2, 3], [False, True])
    },
}
every_target = pytest.mark.parametrize("target", OPTIONS)

ROOTS = {
    "one": """
import tensorflow as tf
""",
    "the second where the first is missing": """
try:
    import tensorflow.compat.v1 as tf
    tf.disable_v2_behavior()
except ImportError:
    import tensorflow as tf
""",
    "the first, or else the second": """
try:
    import tensorflow as tf
except ImportError:
    import tensorflow.compat.v1 as tf
""",
    "none": """
try:
    import tensorflow as tf
except ImportError:
    tf = None
""",
    "by a setting": """
import tensorflow
tf = tensorflow.compat.v1 if graph_mode else tensorflow
""",
    "bound again": """
import tensorflow as tf
if hasattr(tf, "compat"):
    tf = tf.compat.v1
""",
    "of the core": """
try:
    import tensorflow_core as tf
except ImportError:
    import tensorflow as tf
""",
    "one after the other": """
import tensorflow as tf
import tensorflow.compat.v1 as tf
""",
}
"""What `tf` can be."""
USES = """
scale = tf.train.experimental.DynamicLossScale()
opt = tf.train.experimental.MixedPrecisionLossScaleOptimizer(opt, scale)
opt = tf.keras.mixed_precision.experimental.LossScaleOptimizer(opt, "dynamic")
assert isinstance(scale, tf.train.experimental.LossScale)
manager = tf.contrib.mixed_precision.FixedLossScaleManager(8)
opt = tf.train.experimental.enable_mixed_precision_graph_rewrite(opt)
scale = tf.mixed_precision.experimental.FixedLossScale(8)
tf.keras.mixed_precision.experimental.set_policy("mixed_float16")
opt = tf.contrib.tpu.CrossShardOptimizer(opt)
policies = tf.keras.mixed_precision.experimental
managers = tf.contrib.mixed_precision
loss_scales = tf.train.experimental
""".strip().splitlines()


@every_target
@pytest.mark.parametrize("root", ROOTS)
def test_each_use_is_mentioned(root, target):
    lines = [*ROOTS[root].strip().splitlines(), *USES]
    result = transform("\n".join([*lines, ""]).encode(), OPTIONS[target])
    mentioned = {finding.line for finding in result.findings}
    left_out = [line for number, line in enumerate(lines, 1) if number not in mentioned]
    assert not set(left_out) & set(USES)
    assert_same_again(result, OPTIONS[target])


REPLACED = [
    "the second where the first is missing", "the first, or else the second", "bound again",
    "one after the other",
]  # fmt: skip
"""The roots of which an import can stand in the place."""


@every_target
@pytest.mark.parametrize("root", REPLACED)
def test_one_symbol_of_two_roots_is_rewritten(root, target):
    source = f"{ROOTS[root]}{USES[0]}\n{USES[2]}\n"
    result = transform(source.encode(), OPTIONS[target])
    *_, scale, opt = result.source.decode().splitlines()
    module = (
        "tfls.train.experimental" if target == "shim" else "tensorflow.compat.v1.mixed_precision"
    )
    assert scale == f"scale = {module}.DynamicLossScale()"
    assert "experimental.LossScaleOptimizer" not in opt or target == "shim"
    assert left(result) == []


ASSIGNED = {
    "a setting": ROOTS["by a setting"],
    "a branch": """
import tensorflow
if graph_mode:
    tf = tensorflow.compat.v1
else:
    tf = tensorflow
""",
    "an import in a handler": """
try:
    import tensorflow.compat.v1
except ImportError:
    import tensorflow as tf
else:
    tf = tensorflow.compat.v1
""",
}


@every_target
@pytest.mark.parametrize("use", [USES[0], USES[2], USES[4], USES[8], USES[9]])
@pytest.mark.parametrize("root", ASSIGNED)
def test_a_name_that_other_statements_bind_is_left_to_the_user(root, use, target):
    """Nothing says where the import has run that the new name needs."""
    source = f"{ASSIGNED[root]}{use}\n".encode()
    result = transform(source, OPTIONS[target])
    assert result.source == source
    assert left(result) == ["LS904"]


PROGRAMS = {
    "the argument of a class that can be the project's": """
try:
    from tensorflow.keras.mixed_precision import LossScaleOptimizer
except ImportError:
    from common.compat import LossScaleOptimizer

opt = LossScaleOptimizer(opt, "dynamic")
""",
    "a setting, and a class of the project": """
if use_contrib:
    from tensorflow.contrib.mixed_precision import LossScaleOptimizer
else:
    from tensorflow.keras.mixed_precision.experimental import LossScaleOptimizer
opt = LossScaleOptimizer(opt, scale)
from common.compat import LossScaleOptimizer
opt = LossScaleOptimizer(opt, "dynamic")
""",
    "a module that is passed on, and a final policy": """
import tensorflow as tf

setup(tf.keras.mixed_precision.experimental)
tf.keras.mixed_precision.set_global_policy("mixed_float16")
""",
    "a class that imports the modules": """
class Settings:
    import tensorflow as tf
    from tensorflow.keras import mixed_precision

    scale = tf.train.experimental.DynamicLossScale()
    mixed_precision.set_global_policy("float32")
""",
    "a class that imports the final module, and an optimizer": """
class Settings:
    from tensorflow.keras import mixed_precision
    import tensorflow as tf

    opt = tf.keras.mixed_precision.experimental.LossScaleOptimizer(opt, "dynamic")
""",
    "a step of Keras beside an optimizer of graph mode": """
import tensorflow as tf
from tensorflow.contrib.mixed_precision import FixedLossScaleManager, LossScaleOptimizer

def step(opt, tape, loss, variables):
    gradients = tape.gradient(opt.get_scaled_loss(loss), variables)
    opt.apply_gradients(zip(opt.get_unscaled_gradients(gradients), variables))

opt = LossScaleOptimizer(opt, FixedLossScaleManager(128))
""",
}


@every_target
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_second_run_changes_nothing(name, target):
    options = OPTIONS[target]
    assert_same_again(transform(PROGRAMS[name].encode(), options), options)


def assert_same_again(result, options):
    again = transform(result.source, options)
    assert again.source.decode() == result.source.decode()
    assert not any(finding.applied for finding in again.findings)
    assert left(again) == left(result)


def left(result):
    return sorted(finding.code for finding in result.findings if finding.is_left)


@pytest.mark.parametrize("target", ["Keras 3", "Keras 3, unsafe"])
def test_an_optimizer_of_graph_mode_has_no_methods_of_keras(target):
    program = PROGRAMS["a step of Keras beside an optimizer of graph mode"]
    assert "LS407" in left(transform(program.encode(), OPTIONS[target]))
