"""`--to shim` calls an instance check safe only if the file makes every instance it tests."""

import sys

import pytest
from tf_lossscale_codemods.model import Options, Safety, Target
from verbs import transformed

SHIM = Options(target=Target.SHIM)
HEAD = "import tensorflow as tf\nfrom model import build\n\n"
MAKES = {
    "tf.tpu.CrossShardOptimizer": "{c}(tf.compat.v1.train.AdamOptimizer())",
    "tf.contrib.tpu.CrossShardOptimizer": "{c}(tf.train.AdamOptimizer())",
    "tf.compat.v1.tpu.CrossShardOptimizer": "{c}(tf.compat.v1.train.AdamOptimizer())",
    "tf.train.experimental.DynamicLossScale": "{c}(8)",
    "tf.compat.v1.mixed_precision.FixedLossScale": "{c}(8)",
    "tf.compat.v1.mixed_precision.MixedPrecisionLossScaleOptimizer": "{c}(build(), 8)",
    "tf.contrib.mixed_precision.FixedLossScaleManager": "{c}(8)",
    "tf.keras.mixed_precision.experimental.Policy": '{c}("float32")',
}
TESTS = {
    "isinstance": "print(isinstance(it, {c}))\n",
    "isinstance among others": "print(isinstance(it, (int, {c})))\n",
    "a tuple": "KINDS = (int, {c})\nprint(isinstance(it, KINDS))\n",
    "type is": "print(type(it) is {c})\n",
    "type of": "print({c} == it.__class__)\n",
}
KNOWN = {
    "made here": "it = {m}\n",
    "made under a flag": "it = tf.compat.v1.train.AdamOptimizer()\nif build.flag:\n    it = {m}\n",
    "made by a function": "def make():\n    return {m}\n\n\nit = make()\n",
    "made or nothing": "it = {m} if build.flag else None\n",
}
NOT_KNOWN = {
    "from another file": "made = {m}\nit = build()\n",
    "made or from elsewhere": "it = build()\nif build.flag:\n    it = {m}\n",
    "bound again": "it = {m}\nit = build(it)\n",
    "an attribute": "made = {m}\nit = build.it\n",
    "of a loop": "made = {m}\nfor it in build():\n    pass\n",
}


def check_moved(source: str, legacy: str) -> None:
    result = transformed(source, SHIM)
    assert {one.outcome for one in result.findings} == {Safety.SAFE}
    after = result.source.decode()
    assert legacy not in after
    again = transformed(after, SHIM)
    assert again.source == result.source
    assert not again.findings


def check_left(source: str) -> None:
    result = transformed(source, SHIM)
    assert result.source.decode() == source
    assert Safety.UNSAFE in {one.outcome for one in result.findings}
    assert not any(one.applied for one in result.findings)
    assert any("test for both classes" in one.message for one in result.findings)


@pytest.mark.parametrize("legacy", MAKES)
@pytest.mark.parametrize("test", TESTS.values(), ids=TESTS)
def test_instance_check(legacy, test):
    made = MAKES[legacy].format(c=legacy)
    test = test.format(c=legacy)
    for known in KNOWN.values():
        check_moved(HEAD + known.format(m=made) + test, legacy)
    for unknown in NOT_KNOWN.values():
        check_left(HEAD + unknown.format(m=made) + test)
    indented = "".join(f"    {line}\n" for line in test.splitlines())
    check_left(f"{HEAD}made = {made}\n\n\ndef look(it):\n{indented}")


@pytest.mark.parametrize("legacy", MAKES)
def test_other_tests_of_the_class(legacy):
    made = MAKES[legacy].format(c=legacy)
    check_left(f"{HEAD}it = {made}\nprint(issubclass(build, {legacy}))\n")


@pytest.mark.skipif(
    sys.version_info < (3, 10), reason="match statements need Python 3.10 to be checked"
)
@pytest.mark.parametrize("legacy", MAKES)
def test_class_pattern(legacy):
    check_left(f"{HEAD}match build():\n    case {legacy}():\n        pass\n")


@pytest.mark.parametrize("legacy", MAKES)
def test_annotations_and_constructors_test_nothing(legacy):
    made = MAKES[legacy].format(c=legacy)
    check_moved(f"{HEAD}def make(it: {legacy}) -> {legacy}:\n    return {made}\n", legacy)
    check_moved(f"{HEAD}it = {made} if {legacy} is not None else None\n", legacy)
    check_moved(f"{HEAD}wrap = {legacy} if build.flag else build\nit = {made}\n", legacy)


@pytest.mark.parametrize("call", ["global_policy()", "get_layer_policy(layer)"])
@pytest.mark.parametrize("test", ["isinstance({}, mp.Policy)", "type({}) is mp.Policy"])
def test_policy_that_a_function_returns_was_made_elsewhere(call, test):
    # Up to TensorFlow 2.3 such a test is True for the policies that `set_policy` makes.
    head = "import tensorflow as tf\nmp = tf.keras.mixed_precision.experimental\n"
    check_left(f"{head}mp.set_policy('float32')\nprint({test.format('mp.' + call)})\n")
