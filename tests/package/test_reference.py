"""The build of the reference pages fails where a class lacks a method or a docstring."""

import importlib.util
import os

import pytest

from tf_lossscale import _paths

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
