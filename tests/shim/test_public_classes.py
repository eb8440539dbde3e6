"""The docstring of every public class: what it reimplements, its state, and an example that runs.

The examples run on every TensorFlow; `make doctest` runs them on the newest one only.
"""

import doctest
import inspect
import os
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


def missing(documentation):
    """What the docstring of a public class lacks."""
    wanted = {
        "the class that it stands for": r"Stands for `tf\.[\w.]+`",
        "its TensorFlow": r"TensorFlow\s[12]\.\d+",
        "its state": r"(?m)^(State: |This class has no state)",
        "an example": r"(?m)^ +>>> ",
        "what the example computes": r"(?m)^ +(\(|True|False|-?\d)",
    }
    paragraphs = documentation.split("\n\n")
    found = [what for what, pattern in wanted.items() if not re.search(pattern, documentation)]
    if max(len(each.splitlines()) for each in paragraphs[2:3] or [""]) < 2:
        found.append("the algorithm in a paragraph of its own")
    return found


@pytest.mark.parametrize("name", CLASSES)
def test_the_docstring_is_complete(name):
    assert missing(inspect.getdoc(CLASSES[name])) == []


def test_what_a_docstring_lacks_is_noticed():
    whole = inspect.getdoc(CLASSES["_core.loss_scales:FixedLossScale"])
    assert missing("A class.\n\nStands for nothing.") != []
    for part in ("State: ", ">>> ", "Stands for `tf.", "TensorFlow 2.21"):
        assert len(missing(whole.replace(part, ""))) >= 1, part


def test_every_family_has_its_classes_here():
    assert len(CLASSES) >= 11
    families = {name.split(".")[0] for name in CLASSES}
    assert families == {"_core", "_v1", "_keras"}


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
    text = inspect.getdoc(CLASSES[name])
    for field in real:
        described = re.search(rf"\* `{field}` .*?(?=\n\* |\n\n)", text, re.DOTALL)[0]
        resets = r"[Bb]ack to 0|resets\s+it\s+to\s+0|never\s+reset|nothing\s+resets it"
        assert re.search(resets, described), field


MODES = ["ours first", "replace", "uninstall"]
if recorded.TF < (2, 0):
    MODES.append("originals first")  # the program imports `tf.contrib` itself


@pytest.mark.parametrize("mode", MODES)
def test_our_class_and_tensorflows_class_of_the_same_name_count_as_one(mode):
    """Each test of a class gives the answer of the original program, in every mixture."""
    program = os.path.join(processes.SHIM, "core", "programs", "class_tests.py")
    assert processes.run_program(program, mode) == []
