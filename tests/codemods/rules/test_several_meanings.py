"""Names with several meanings: nothing of them is left out, and a second run changes nothing.

The programs are those that mutated examples have shown (`engine/test_fuzz.py`), and their kind.
"""

import itertools
import time

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
    "another name": """
import tensorflow
tf = tensorflow
""",
    "or": """
import tensorflow
tf = given or tensorflow
""",
    "or, after None": """
import tensorflow
tf = None
tf = tf or tensorflow
""",
    "and": """
import tensorflow
tf = enabled and tensorflow
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


COMPUTED = {
    "an item of a dictionary": """
import tensorflow
tf = {"tensorflow": tensorflow}["tensorflow"]
""",
    "a part of a tuple that is computed": """
import tensorflow
tf, np = modules()
""",
    "a loop": """
import tensorflow
for tf in [tensorflow]:
    pass
""",
    "a context": """
with lazily(tensorflow) as tf:
    pass
""",
}
"""Other things that `tf` can be, of which only the names of attributes are known."""


@every_target
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("root", COMPUTED)
def test_what_is_called_like_a_use_of_tensorflow_is_mentioned(root, use, target):
    """One finding is for all names that come through the same expression."""
    suppression = "# lossscale: ignore[LS101]\n"  # so that the file is looked at
    source = f"{suppression}{COMPUTED[root].strip()}\n{use}\n"
    result = transform(source.encode(), OPTIONS[target])
    assert result.source == source.encode()
    lines = [finding.line for finding in result.findings if finding.is_left]
    assert source.count("\n") in lines


@every_target
def test_in_a_class_that_binds_the_name_again(target):
    """The value is made of the name of the module."""
    lines = ["import tensorflow as tf", "class Model:", "    tf = tf.compat.v2"]
    lines += [f"    {use}" for use in USES]
    result = transform("\n".join([*lines, ""]).encode(), OPTIONS[target])
    mentioned = {finding.line for finding in result.findings}
    assert mentioned == set(range(4, len(lines) + 1))
    assert_same_again(result, OPTIONS[target])


HELD = {
    "a class": "class Names:\n    tf = tf",
    "a class, later": "class Names:\n    pass\n\nNames.tf = tf",
    "an object": "Names = types.SimpleNamespace\nNames.tf = tf",
    "a pattern": "match tf:\n    case Names:\n        pass",
}


@every_target
@pytest.mark.parametrize("use", USES[:-2])
@pytest.mark.parametrize("held", HELD)
def test_what_a_program_holds_can_be_a_module(held, use, target):
    line = use.replace("tf.", "Names.tf.")
    source = f"import tensorflow as tf\n\n{HELD[held]}\n\n{line}\n"
    result = transform(source.encode(), OPTIONS[target])
    assert result.source == source.encode()
    assert source.count("\n") in [finding.line for finding in result.findings if finding.is_left]


@every_target
@pytest.mark.parametrize("line", ["def f[T: {}](x: T): ...", "class A[T: {}]: ..."])
def test_the_bounds_of_type_parameters(line, target):
    line = line.format("tf.train.experimental.LossScale")
    result = transform(f"import tensorflow as tf\n{line}\n".encode(), OPTIONS[target])
    assert [finding.code for finding in result.findings if finding.applied] == ["LS201"]
    assert_same_again(result, OPTIONS[target])


@pytest.mark.parametrize("value", ["{} or {}", "{} if x else {}", "({} or x).y if {} else {}"])
def test_names_that_are_made_of_each_other_take_little_time(value):
    """A use through one of them is still mentioned."""
    names = [f"tf{number}" for number in range(12)]
    lines = [
        f"{name} = {value.format(first, second, first)}"
        for name in names
        for first, second in zip(names, names[1:])
    ]
    lines = ["import tensorflow", "tf0 = tensorflow", *lines, USES[1].replace("tf.", "tf3.")]
    begin = time.process_time()
    result = transform("\n".join([*lines, ""]).encode(), OPTIONS["shim"])
    assert time.process_time() - begin < 5
    assert [finding.line for finding in result.findings] == [len(lines)]


@every_target
def test_an_item_of_something_with_a_common_name_is_none_of_tensorflow(target):
    source = b"for module in modules:\n    module.LossScaleOptimizer(opt)\nx = a[0]\nx.Policy(1)\n"
    assert transform(source, OPTIONS[target]).findings == ()


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
    "a class that holds a final module": """
import tensorflow as tf

class Model:
    mp = tf.keras.mixed_precision
    mp.experimental.set_policy("mixed_float16")

    def policy(self):
        return self.mp.Policy("float32")
""",
    "another name of a module, in a function": """
import tensorflow as tf
exp = tf.train.experimental
exp.FixedLossScale(8)

def scale():
    e = exp
    return e.DynamicLossScale()
""",
    "modules that a setting chooses": """
from tensorflow.keras import mixed_precision
mp = mixed_precision.experimental if old else mixed_precision
opt = mp.LossScaleOptimizer(opt)
""",
    "modules that a condition chooses": """
from tensorflow.keras import mixed_precision
mp = version < 3 and mixed_precision.experimental or mixed_precision
opt = mp.LossScaleOptimizer(opt)
""",
    "two names of a module, one for something else": """
import tensorflow as tf
v = w = tf.train.experimental
scale = v.FixedLossScale(8)
state = w.PythonState()
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


def test_two_names_of_a_module_stay_if_one_is_for_something_else():
    source = PROGRAMS["two names of a module, one for something else"].encode()
    lines = transform(source, OPTIONS["shim"]).source.decode().splitlines()
    assert lines[3:] == [
        "v = w = tf.train.experimental",
        "scale = tfls.train.experimental.FixedLossScale(8)",
        "state = w.PythonState()",
    ]


def test_an_attribute_of_objects_keeps_its_meaning():
    source = PROGRAMS["a class that holds a final module"].encode()
    after = transform(source, OPTIONS["Keras 2"]).source.decode()
    assert "    mp = tf.keras.mixed_precision\n    mp.set_global_policy" in after


def left(result):
    return sorted(finding.code for finding in result.findings if finding.is_left)


@pytest.mark.parametrize("target", ["Keras 3", "Keras 3, unsafe"])
def test_an_optimizer_of_graph_mode_has_no_methods_of_keras(target):
    program = PROGRAMS["a step of Keras beside an optimizer of graph mode"]
    assert "LS407" in left(transform(program.encode(), OPTIONS[target]))
