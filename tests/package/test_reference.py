"""The build of the reference pages fails where a class lacks a method or a docstring."""

import importlib.util
import inspect
import os
import re

import pytest

from tf_lossscale import _namespace, _paths

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CLASSES = {
    "keras.mixed_precision": "get_scaled_loss",
    "keras.mixed_precision.experimental": "get_unscaled_gradients",
    "contrib.mixed_precision": None,
}


@pytest.fixture
def generate():
    spec = importlib.util.spec_from_file_location(
        "generate", os.path.join(ROOT, "docs", "generate.py")
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def missing_of(generate, namespace):
    found = []
    generate.describe(_paths.NAMESPACES[namespace]["LossScaleOptimizer"], found)
    return found


@pytest.mark.parametrize("namespace", CLASSES)
def test_the_pages_are_complete(generate, namespace):
    assert missing_of(generate, namespace) == []


@pytest.mark.parametrize("namespace", CLASSES)
def test_a_missing_method_is_noticed(generate, namespace, monkeypatch):
    hidden, members = CLASSES[namespace], generate.public_members
    monkeypatch.setattr(
        generate,
        "public_members",
        lambda cls: [each for each in members(cls) if hidden and each[0] != hidden],
    )
    assert missing_of(generate, namespace) == [
        "LossScaleOptimizer." + (hidden or "(no method at all)")
    ]


def test_a_missing_docstring_is_noticed(generate):
    found = []
    generate.block("step", lambda: None, "Optimizer.step", found)
    assert found == ["Optimizer.step"]


def undocumented_arguments(function):
    """Parameters that the docstring does not have below "Args:"."""
    names = [name for name in inspect.signature(function).parameters if name not in ("self", "cls")]
    section = re.search(r"^Args:\n((?:  .*\n?|\n)*)", inspect.getdoc(function) or "", re.MULTILINE)
    documented = re.findall(r"^  \*{0,2}(\w+):", section[1] if section else "", re.MULTILINE)
    return [name for name in names if name not in documented]


@pytest.mark.parametrize("symbol", _paths.SYMBOLS, ids=lambda symbol: symbol.implementation)
def test_every_argument_is_documented(generate, symbol):
    value = _namespace.load(symbol)
    if not value.__module__.startswith(_namespace.ROOT):
        assert symbol.name in ("Policy", "set_global_policy", "global_policy")  # Keras's own
        return
    functions = {symbol.name: value}
    if inspect.isclass(value):
        functions.update(generate.public_members(value))
    for name, function in functions.items():
        if not isinstance(function, property):
            assert undocumented_arguments(function) == [], name


def test_an_argument_that_is_not_documented_is_noticed():
    def step(gradients, name=None):
        """Makes a step.

        Args:
          gradients: the gradients.
        """

    assert undocumented_arguments(step) == ["name"]
