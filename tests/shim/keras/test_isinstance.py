"""The table of `isinstance` in docs/keras.md is exact, for every kind of inner optimizer."""

import inspect
from typing import Any, Optional

import processes
import pytest
import recorded
import tensorflow as tf

import tf_lossscale as tfls

FINAL = tfls.keras.mixed_precision.LossScaleOptimizer
EXPERIMENTAL = tfls.keras.mixed_precision.experimental.LossScaleOptimizer
KINDS = recorded.kinds()

kinds = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


def installed_final(kind: Any) -> Optional[Any]:
    if kind.name == "keras3":
        return kind.keras.mixed_precision.LossScaleOptimizer
    return getattr(kind.keras.mixed_precision, "LossScaleOptimizer", None)


def installed_experimental(kind: Any) -> Optional[Any]:
    namespace = getattr(kind.keras.mixed_precision, "experimental", None)
    return getattr(namespace, "LossScaleOptimizer", None)


def keras_base(kind: Any) -> Any:
    return kind.optimizers.Optimizer


def sgd(kind: Any) -> Any:
    return kind.optimizers.SGD(0.5)


@kinds
def test_our_experimental_instance(kind: Any) -> None:
    optimizer = EXPERIMENTAL(sgd(kind), "dynamic")
    assert isinstance(optimizer, FINAL)
    assert isinstance(optimizer, EXPERIMENTAL)
    assert isinstance(optimizer, keras_base(kind))
    for installed in (installed_final(kind), installed_experimental(kind)):
        assert installed is None or isinstance(optimizer, installed)


@kinds
def test_our_final_instance(kind: Any) -> None:
    optimizer = FINAL(sgd(kind))
    assert isinstance(optimizer, FINAL)
    assert not isinstance(optimizer, EXPERIMENTAL)
    assert isinstance(optimizer, keras_base(kind))
    assert installed_final(kind) is None or isinstance(optimizer, installed_final(kind))
    if installed_experimental(kind) is not None:
        below_2_4 = recorded.TF < (2, 4)
        assert isinstance(optimizer, installed_experimental(kind)) is below_2_4


@kinds
def test_an_installed_final_instance(kind: Any) -> None:
    if installed_final(kind) is None:
        assert recorded.TF < (2, 4)
        return
    optimizer = installed_final(kind)(sgd(kind))
    assert isinstance(optimizer, FINAL)
    assert not isinstance(optimizer, EXPERIMENTAL)
    assert isinstance(optimizer, keras_base(kind))


@kinds
def test_methods_that_an_installed_final_instance_lacks(kind: Any) -> None:
    if kind.name != "keras3":
        pytest.skip("only Keras 3's class lacks the methods of Keras 2")
    optimizer = installed_final(kind)(sgd(kind))
    assert isinstance(optimizer, FINAL)
    assert not hasattr(optimizer, "get_scaled_loss")
    with pytest.raises(AttributeError, match=r"before compile\(\), or call tf_lossscale.install"):
        optimizer.get_scaled_loss(1.0)
    with pytest.raises(AttributeError, match=r"no attribute 'nonsense'$"):
        optimizer.nonsense


@kinds
def test_subclasses_and_others(kind: Any) -> None:
    assert issubclass(EXPERIMENTAL, FINAL)
    assert not issubclass(FINAL, EXPERIMENTAL)
    for other in (sgd(kind), "sgd", None, tf.compat.v1.train.GradientDescentOptimizer(0.5)):
        assert not isinstance(other, (FINAL, EXPERIMENTAL))
    assert not isinstance(FINAL(sgd(kind)), tf.compat.v1.train.Optimizer)


@kinds
def test_the_class_over_one_kind_is_made_once(kind: Any) -> None:
    assert type(FINAL(sgd(kind))) is type(FINAL(sgd(kind)))
    assert type(EXPERIMENTAL(sgd(kind), 8)) is type(EXPERIMENTAL(sgd(kind), "dynamic"))


@kinds
def test_a_subclass_of_the_users(kind: Any) -> None:
    class Mine(FINAL):
        def twice(self) -> Any:
            return 2 * self.loss_scale

    optimizer = Mine(sgd(kind), initial_scale=8.0)
    assert isinstance(optimizer, Mine)
    assert isinstance(optimizer, FINAL)
    assert isinstance(optimizer, keras_base(kind))
    assert float(Mine(sgd(kind), initial_scale=8.0).twice()) == 16


def test_signatures() -> None:
    assert _arguments(FINAL) == [
        ("inner_optimizer", inspect.Parameter.empty),
        ("dynamic", True),
        ("initial_scale", None),
        ("dynamic_growth_steps", None),
    ]
    assert _arguments(EXPERIMENTAL) == [
        ("optimizer", inspect.Parameter.empty),
        ("loss_scale", inspect.Parameter.empty),
    ]


def _arguments(cls: Any) -> Any:
    parameters = list(inspect.signature(cls.__init__).parameters.values())[1:]
    return [(each.name, each.default) for each in parameters]


PUBLIC = {
    "apply_gradients",
    "dynamic",
    "dynamic_counter",
    "dynamic_growth_steps",
    "from_config",
    "get_config",
    "get_scaled_loss",
    "get_unscaled_gradients",
    "initial_scale",
    "inner_optimizer",
    "iterations",
    "learning_rate",
    "loss_scale",
    "minimize",
}


@pytest.mark.parametrize("cls", [FINAL, EXPERIMENTAL], ids=["final", "experimental"])
def test_the_public_class_shows_what_it_has(cls: Any) -> None:
    assert issubclass(cls, tf.keras.optimizers.Optimizer)
    assert cls.__module__.startswith("tf_lossscale.")
    for name in PUBLIC:
        assert inspect.getdoc(inspect.getattr_static(cls, name)), name


@kinds
def test_methods_of_the_installed_class_are_ours_with_its_signatures(kind: Any) -> None:
    for optimizer in (FINAL(sgd(kind)), EXPERIMENTAL(sgd(kind), 8)):
        assert set(dir(optimizer)) >= PUBLIC
        original = installed_final(kind) and type(installed_final(kind)(sgd(kind)))
        if original is None or kind.name == "keras3":
            continue
        for name in ("apply_gradients", "get_scaled_loss", "get_unscaled_gradients", "minimize"):
            mine = _names(getattr(type(optimizer), name))
            theirs = _names(getattr(original, name))
            assert mine[: len(theirs)] == theirs or set(theirs) <= set(mine), name


def _names(function: Any) -> Any:
    return [each for each in inspect.signature(function).parameters if each != "kwargs"]


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
def test_no_keras_is_imported_that_the_program_does_not_use(tmp_path: Any) -> None:
    program = tmp_path / "imports.py"
    program.write_text(IMPORTS)
    done = processes.run_forked(str(program))
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(len({kind.keras for kind in KINDS}) < 2, reason="there is one Keras only")
def test_two_kerases_side_by_side() -> None:
    for kind in KINDS:
        optimizer = FINAL(sgd(kind), initial_scale=8.0)
        variable = recorded.make_variable(kind, 1.0, "v")
        with tf.GradientTape() as tape:
            value = recorded.gradient_source(variable)
            loss = optimizer.get_scaled_loss(tf.identity(value) * 2.0)
        gradients = optimizer.get_unscaled_gradients(tape.gradient(loss, [value]))
        optimizer.apply_gradients(zip(gradients, [variable]))
        assert float(variable.numpy()) == 0
