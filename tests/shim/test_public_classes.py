"""The docstring of every public class: its state, and an example that runs.

The examples run on every TensorFlow; `make doctest` runs them on the newest one only.
"""

import doctest
import inspect
import re

import processes
import pytest
import recorded

import tf_lossscale as tfls
from tf_lossscale import _namespace, _paths

NOT_OURS = {"_keras.policy:Policy"}
"""The class of the installed Keras."""

if hasattr(getattr(recorded.tf.keras.mixed_precision, "experimental", None), "Policy"):
    NOT_OURS.add("_keras.policy:ExperimentalPolicy")  # up to TensorFlow 2.8

CLASSES = {
    symbol.implementation: _namespace.load(symbol)
    for symbol in _paths.SYMBOLS
    if symbol.implementation not in NOT_OURS and inspect.isclass(_namespace.load(symbol))
}


def run_example(name, documentation):
    """Returns the failures of the examples in a docstring, as doctest prints them."""
    test = doctest.DocTestParser().get_doctest(documentation, {}, name, None, None)
    said = []
    with recorded.eagerly():
        doctest.DocTestRunner(verbose=False).run(test, out=said.append)
    assert test.examples, name
    return "".join(said)


MONITORING = {name: getattr(tfls.monitoring, name) for name in tfls.monitoring.__all__}


@pytest.mark.parametrize("name", [*CLASSES, *MONITORING])
def test_the_example_runs(name):
    documented = {**CLASSES, **MONITORING}[name]
    assert run_example(name, inspect.getdoc(documented)) == ""


def test_an_example_that_is_wrong_is_noticed():
    assert "Expected" in run_example("wrong", ">>> 1 + 1\n3\n")


def documented_state(cls):
    return dict(re.findall(r"(?m)^\* `(\w+)` \((\w+)\)", inspect.getdoc(cls)))


def optimizer():
    inner = recorded.tf.keras.optimizers.SGD(0.5)
    return tfls.keras.mixed_precision.LossScaleOptimizer(inner)


MADE = {
    "_v1.managers:ExponentialUpdateLossScaleManager": lambda cls: dict(cls(8.0, 2)._state_here()),
    "_core.loss_scales:DynamicLossScale": lambda cls: dict(cls()._state_here()),
    "_keras.final:LossScaleOptimizer": lambda cls: {
        name: getattr(optimizer(), name) for name in ("loss_scale", "dynamic_counter")
    },
}


@pytest.mark.parametrize("name", CLASSES)
def test_the_state_is_documented_field_by_field(name):
    with recorded.eagerly():
        real = MADE[name](CLASSES[name]) if name in MADE else {}
    assert {key: value.dtype.base_dtype.name for key, value in real.items()} == documented_state(
        CLASSES[name]
    )


MODES = ["ours first", "replace", "uninstall"]
if recorded.TF < (2, 0):
    MODES.append("originals first")  # the program imports `tf.contrib` itself


@pytest.mark.parametrize("mode", MODES)
def test_our_class_and_tensorflows_class_of_the_same_name_count_as_one(mode):
    """Each test of a class gives the answer of the original program, in every mixture."""
    assert processes.run_program("core/programs/class_tests.py", mode) == []
