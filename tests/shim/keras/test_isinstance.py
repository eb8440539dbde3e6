"""What docs/keras.md says of `isinstance` is exact, for every kind of inner optimizer."""

import inspect
from typing import Any

import processes
import pytest
import recorded
import tensorflow as tf

import tf_lossscale as tfls

FINAL = tfls.keras.mixed_precision.LossScaleOptimizer
EXPERIMENTAL = tfls.keras.mixed_precision.experimental.LossScaleOptimizer
kinds = pytest.mark.parametrize("kind", recorded.kinds(), ids=lambda kind: kind.name)


def sgd(kind: Any) -> Any:
    return kind.optimizers.SGD(0.5)


def installed_final(kind: Any) -> Any:
    return getattr(kind.keras.mixed_precision, "LossScaleOptimizer", None)


@kinds
def test_objects_and_classes(kind: Any):
    namespace = getattr(kind.keras.mixed_precision, "experimental", None)
    final = installed_final(kind)
    classes = {
        "final": FINAL,
        "experimental": EXPERIMENTAL,
        "installed final": final,
        "installed experimental": getattr(namespace, "LossScaleOptimizer", None),
        "optimizer": kind.optimizers.Optimizer,
        "v1": tf.compat.v1.train.Optimizer,
    }
    made = {
        "final": FINAL(sgd(kind)),
        "experimental": EXPERIMENTAL(sgd(kind), "dynamic"),
        "installed": final and final(sgd(kind)),
        "bare": sgd(kind),
        "v1": tf.compat.v1.train.GradientDescentOptimizer(0.5),
        "string": "sgd",
    }
    below_2_4 = recorded.TF < (2, 4)  # where Keras has the experimental class only
    expected = {
        "final": {"final", "installed final", "optimizer"}
        | ({"installed experimental"} if below_2_4 else set()),
        "experimental": set(classes) - {"v1"},
        "installed": {"final", "installed final", "optimizer"} if final else set(),
        "bare": {"optimizer"},
        "v1": {"v1"},
        "string": set(),
    }
    assert (final is None) is below_2_4
    for name, value in made.items():
        found = {path for path, cls in classes.items() if cls and isinstance(value, cls)}
        assert found == {path for path in expected[name] if classes[path]}, name
    assert issubclass(EXPERIMENTAL, FINAL)
    assert not issubclass(FINAL, EXPERIMENTAL)
    # The class over one kind is made once.
    assert type(FINAL(sgd(kind))) is type(made["final"])
    assert type(EXPERIMENTAL(sgd(kind), 8)) is type(made["experimental"])


@kinds
def test_a_class_test_adds_nothing_to_an_installed_class(kind: Any):
    installed = installed_final(kind)
    if installed is None:
        pytest.skip("up to TensorFlow 2.3 there is no final class")
    optimizer = installed(sgd(kind))
    before = {cls: dict(vars(cls)) for cls in type(optimizer).__mro__}
    assert isinstance(optimizer, FINAL)
    assert hasattr(optimizer, "get_scaled_loss") is (kind.name != "keras3")
    assert {cls: dict(vars(cls)) for cls in type(optimizer).__mro__} == before


@pytest.mark.parametrize(
    ("cls", "arguments"),
    [
        (FINAL, "inner_optimizer, dynamic=True, initial_scale=None, dynamic_growth_steps=None"),
        (EXPERIMENTAL, "optimizer, loss_scale"),
    ],
    ids=["final", "experimental"],
)
def test_the_public_class_shows_what_it_has(cls: Any, arguments: str):
    parameters = list(inspect.signature(cls.__init__).parameters.values())[1:]
    found = [parameter.replace(annotation=parameter.empty) for parameter in parameters]
    assert ", ".join(map(str, found)) == arguments
    assert issubclass(cls, tf.keras.optimizers.Optimizer)
    assert cls.__module__.startswith("tf_lossscale.")
    for name in PUBLIC:
        assert inspect.getdoc(inspect.getattr_static(cls, name)), name


METHODS = {"apply_gradients", "get_scaled_loss", "get_unscaled_gradients", "minimize"}
STATE = {"iterations", "learning_rate", "loss_scale", "dynamic_counter", "inner_optimizer"}
SETTINGS = {"dynamic", "dynamic_growth_steps", "initial_scale", "from_config", "get_config"}
PUBLIC = METHODS | STATE | SETTINGS


@kinds
def test_methods_of_the_installed_class_are_ours_with_its_signatures(kind: Any):
    def names(function: Any) -> Any:
        return [
            parameter
            for parameter in inspect.signature(function).parameters
            if parameter != "kwargs"
        ]

    for optimizer in (FINAL(sgd(kind)), EXPERIMENTAL(sgd(kind), 8)):
        assert set(dir(optimizer)) >= PUBLIC
        original = installed_final(kind) and type(installed_final(kind)(sgd(kind)))
        if original is None or kind.name == "keras3":
            continue
        for name in METHODS:
            mine, theirs = (names(getattr(owner, name)) for owner in (type(optimizer), original))
            assert mine[: len(theirs)] == theirs or set(theirs) <= set(mine), name


IMPORTS = """
import sys
import tensorflow as tf
import tf_lossscale as tfls
before = {name for name in ("keras", "tf_keras") if name in sys.modules}
tfls.keras.mixed_precision.LossScaleOptimizer
tfls.keras.mixed_precision.experimental.LossScaleOptimizer
after = {name for name in ("keras", "tf_keras") if name in sys.modules}
assert after == before, after - before
optimizer = tf.keras.optimizers.SGD(0.5)
tfls.keras.mixed_precision.LossScaleOptimizer(optimizer)
own = type(optimizer).__module__.split(".")[0]
assert {"keras", "tf_keras"} & set(sys.modules) <= {own} | before, own
"""


@pytest.mark.skipif(recorded.TF < (2, 16), reason="there is one Keras only")
def test_no_keras_is_imported_that_the_program_does_not_use(tmp_path: Any):
    program = tmp_path / "imports.py"
    program.write_text(IMPORTS)
    done = processes.run_forked(str(program))
    assert done.returncode == 0, done.stderr
