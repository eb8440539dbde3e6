"""Policies of the shim are those of Keras 2: `compile` follows them on every Keras.

A *side* is TensorFlow's own names, where it has all of them, or ours.
"""

import copy
import gc
import pickle
import threading
from typing import Any, Dict, Iterator, List, NamedTuple, Optional

import numpy as np
import processes
import pytest
import recorded
import tensorflow as tf
from small_model import set_policy

import tf_lossscale as tfls
from tf_lossscale._versions import interventions

FINAL = tfls.keras.mixed_precision
EXPERIMENTAL = tfls.keras.mixed_precision.experimental
INSTALLED = tf.keras.mixed_precision
INSTALLED_EXPERIMENTAL = getattr(INSTALLED, "experimental", None)
HAS_EXPERIMENTAL = hasattr(INSTALLED_EXPERIMENTAL, "Policy")
KERAS_3 = hasattr(tf.keras, "Operation")
LossScales = tfls.compat.v1.mixed_precision


@pytest.fixture(autouse=True)
def _float32_before_and_after() -> Iterator[None]:
    with recorded.eagerly():
        set_policy(tf.keras, "float32")
        yield
        set_policy(tf.keras, "float32")


def network(cls: Any = None, **options: Any) -> Any:
    inputs = tf.keras.layers.Input((1,))
    return (cls or tf.keras.Model)(inputs, tf.keras.layers.Dense(1)(inputs), **options)


def compiled(model: Any, *args: Any, **kwargs: Any) -> Any:
    model.compile(*(args or (tf.keras.optimizers.SGD(0.5),)), loss="mse", **kwargs)
    return model.optimizer


def is_ours(optimizer: Any) -> bool:
    return any(cls.__module__.startswith("tf_lossscale") for cls in type(optimizer).__mro__)


def scale(optimizer: Any) -> Optional[float]:
    """The loss scale of an optimizer with the methods of Keras 2; None if it scales nothing."""
    if not hasattr(optimizer, "get_scaled_loss"):
        return None
    return float(optimizer.get_scaled_loss(tf.constant(1.0)).numpy())


def kept_scale(policy: Any) -> Any:
    """What a policy shows as its loss scale: the class and the configuration."""
    loss_scale = policy.loss_scale
    return None if loss_scale is None else (type(loss_scale).__name__, loss_scale.get_config())


def test_no_keras_has_the_old_function_in_the_final_namespace():
    """The first policies were all in `experimental`, so `set_policy` was never moved."""
    assert not hasattr(tf.keras.mixed_precision, "set_policy")


def test_the_final_names_are_those_of_the_installed_keras():
    installed = getattr(INSTALLED, "Policy", None) or INSTALLED_EXPERIMENTAL.Policy
    for name in ("float32", "mixed_float16", "float64"):
        policy = FINAL.Policy(name)
        assert type(policy) is type(installed(name))
        assert isinstance(policy, FINAL.Policy)
        assert isinstance(policy, installed)
        assert isinstance(installed(name), FINAL.Policy)
        assert repr(policy).partition(", loss_scale")[0] in repr(installed(name))
    assert not isinstance("float32", FINAL.Policy)
    names = ("global_policy", "dtype_policy")
    getters = [getattr(INSTALLED, name) for name in names if hasattr(INSTALLED, name)]
    assert FINAL.global_policy is (getters or [INSTALLED_EXPERIMENTAL.global_policy])[0]


@pytest.mark.parametrize("name", ["float32", "mixed_float16", "mixed_bfloat16", "float64"])
def test_set_and_get(name: str):
    FINAL.set_global_policy(name)
    assert FINAL.global_policy().name == name
    assert EXPERIMENTAL.global_policy().name == name
    FINAL.set_global_policy("float32")
    EXPERIMENTAL.set_policy(name)
    assert FINAL.global_policy().name == name
    EXPERIMENTAL.set_policy(EXPERIMENTAL.Policy("float32"))
    assert FINAL.global_policy().name == "float32"
    EXPERIMENTAL.set_policy(None)
    assert FINAL.global_policy().name == "float32"
    FINAL.set_global_policy(FINAL.Policy(name))
    assert FINAL.global_policy().name == name
    FINAL.set_global_policy(None)
    assert FINAL.global_policy().name == ("float32" if tf.executing_eagerly() else "_infer")


def test_the_policy_of_a_layer():
    layer = tf.keras.layers.Dense(1, dtype=EXPERIMENTAL.Policy("mixed_float16"))
    policy = EXPERIMENTAL.get_layer_policy(layer)
    assert policy.name == "mixed_float16"
    assert policy.compute_dtype == "float16"
    assert policy.variable_dtype == "float32"
    assert policy.loss_scale is not None
    plain = EXPERIMENTAL.get_layer_policy(tf.keras.layers.Dense(1))
    assert plain.name == "float32"
    assert getattr(plain, "loss_scale", None) is None  # a final policy of 2.4 to 2.8 has none
    with pytest.raises(ValueError, match="can only be called on a layer"):
        EXPERIMENTAL.get_layer_policy("layer")


class Side(NamedTuple):
    """The names of the experimental policies, and of the loss scales."""

    name: str
    policies: Any
    loss_scales: Any
    optimizers: Any

    def __str__(self) -> str:
        return self.name


OURS = Side("ours", EXPERIMENTAL, LossScales, EXPERIMENTAL)
SIDES = [OURS]
if HAS_EXPERIMENTAL:
    SIDES.append(
        Side(
            "original",
            INSTALLED_EXPERIMENTAL,
            tf.compat.v1.train.experimental,
            INSTALLED_EXPERIMENTAL,
        )
    )
sides = pytest.mark.parametrize("side", SIDES, ids=str)

DEFAULTS = {"initial_loss_scale": 2.0**15, "increment_period": 2000, "multiplier": 2.0}
DYNAMIC = {"class_name": "DynamicLossScale", "config": DEFAULTS}


class Case(NamedTuple):
    """A policy, and what `compile` makes of an optimizer under it."""

    name: str
    loss_scale: Any  # the argument, or a function that makes it
    scale: Optional[float]
    dynamic: bool = False
    only_ours_since: Any = (9, 9)  # the first TensorFlow whose class refuses the loss scale

    def policy(self, side: Side) -> Any:
        if self.loss_scale == "auto":
            return side.policies.Policy(self.name)
        is_made = callable(self.loss_scale)
        loss_scale = self.loss_scale(side.loss_scales) if is_made else self.loss_scale
        return side.policies.Policy(self.name, loss_scale=loss_scale)


def own_loss_scale(loss_scales: Any) -> Any:
    class Own(loss_scales.LossScale):
        def __call__(self) -> Any:
            return tf.constant(4.0)

        def update(self, grads: Any) -> Any:
            return tf.no_op(), True

        def get_config(self) -> Dict[str, Any]:
            return {}

    return Own()


CASES = [
    Case("mixed_float16", "auto", 2.0**15, True),
    Case("mixed_float16", "dynamic", 2.0**15, True),
    Case("mixed_float16", 128, 128.0),
    Case("mixed_float16", None, None),
    Case("mixed_float16", lambda scales: scales.FixedLossScale(64), 64.0),
    Case("mixed_float16", lambda scales: scales.DynamicLossScale(16, 3), 16.0, True),
    Case("mixed_float16", lambda scales: scales.DynamicLossScale(), 2.0**15, True),
    Case("mixed_float16", lambda scales: scales.DynamicLossScale(16, 3, 4.0), 16.0, True, (2, 4)),
    Case("mixed_float16", own_loss_scale, 4.0, True, (2, 4)),
    Case("float32", "auto", None),
    Case("float32", "dynamic", 2.0**15, True),
    Case("float32", 8, 8.0),
    Case("float32", None, None),
    Case("float16", "auto", None),
    Case("float16", 8, 8.0),
    Case("float64", lambda scales: scales.FixedLossScale(2), 2.0),
]


@sides
@pytest.mark.parametrize("set_by", ["set", "model"])
@pytest.mark.parametrize("case", CASES, ids=[str(number) for number in range(len(CASES))])
def test_compile_applies_the_loss_scale_of_a_policy(case: Case, side: Side, set_by: str):
    policy = case.policy(side)
    model = model_with(policy, side, set_by)
    if side.name == "original" and case.only_ours_since <= recorded.TF:
        with pytest.raises((TypeError, ValueError)):
            compiled(model)
        return
    optimizer = compiled(model)
    assert scale(optimizer) == case.scale
    assert isinstance(optimizer, side.optimizers.LossScaleOptimizer) is (case.scale is not None)
    if case.scale is not None:
        assert is_ours(optimizer) is (side is OURS)
        if hasattr(optimizer, "dynamic"):  # from 2.4 on
            assert optimizer.dynamic is case.dynamic
    assert (policy.loss_scale is None) is (case.scale is None)


def model_with(policy: Any, side: Side, set_by: str) -> Any:
    """A model whose policy was set, or that was made with it."""
    if set_by == "model":

        class Line(tf.keras.Model):
            pass

        return Line(dtype=policy)
    side.policies.set_policy(policy)
    assert side.policies.global_policy() is policy
    model = network()
    if hasattr(side.policies, "get_layer_policy"):  # not in 1.15
        assert side.policies.get_layer_policy(model) is policy
    set_policy(tf.keras, "float32")
    return model


@sides
def test_the_name_of_an_experimental_policy(side: Side):
    """From 2.4 on, Keras makes a final policy of a name, so `compile` wraps in the final class."""
    side.policies.set_policy("mixed_float16")
    optimizer = compiled(network())
    is_final = side.name == "original" and recorded.TF >= (2, 4)
    assert isinstance(optimizer, side.optimizers.LossScaleOptimizer) is not is_final
    assert is_ours(optimizer) is (side is OURS)
    if side is OURS:
        assert isinstance(optimizer, FINAL.LossScaleOptimizer)


@sides
def test_the_numbers_of_a_policy_are_those_of_its_optimizer(side: Side):
    """An infinity halves the loss scale; finite steps double it."""
    side.policies.set_policy(
        side.policies.Policy(
            "mixed_float16", loss_scale=side.loss_scales.DynamicLossScale(16, increment_period=2)
        )
    )
    model = network()
    optimizer = compiled(model)
    found = []
    for value in (1.0, np.inf, 1.0, 1.0):
        model.train_on_batch(np.full((1, 1), value, "float32"), np.zeros((1, 1), "float32"))
        found.append(scale(optimizer))
    assert found == [16.0, 8.0, 8.0, 16.0]


NAMES = ["float32", "float16", "float64", "mixed_float16"]
LOSS_SCALES: List[Any] = ["auto", "dynamic", None, 8]


@pytest.mark.skipif(not HAS_EXPERIMENTAL, reason="this TensorFlow has no experimental policies")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("loss_scale", LOSS_SCALES)
def test_a_layer_is_configured_as_with_the_original_policy(name: str, loss_scale: Any):
    arguments = {} if loss_scale == "auto" else {"loss_scale": loss_scale}
    for find in (
        lambda side: side.policies.Policy(name, **arguments).get_config(),
        lambda side: tf.keras.layers.Dense(
            1, dtype=side.policies.Policy(name, **arguments)
        ).get_config()["dtype"],
    ):
        if recorded.TF >= (2, 0) or "loss_scale" in str(find):
            assert find(OURS) == find(SIDES[1])


@pytest.mark.parametrize("name", ["float32", "mixed_float16"])
def test_a_set_policy_is_written_to_files_as_the_installed_one(name: str):
    FINAL.set_global_policy("float32")
    set_policy(tf.keras, name)
    expected = tf.keras.layers.Dense(1).get_config()["dtype"]
    FINAL.set_global_policy(name)
    assert tf.keras.layers.Dense(1).get_config()["dtype"] == expected
    EXPERIMENTAL.set_policy(name)
    assert tf.keras.layers.Dense(1).get_config()["dtype"] == expected
    if not HAS_EXPERIMENTAL:  # where it has, its files contain the loss scale
        for policy in (name, EXPERIMENTAL.Policy(name), EXPERIMENTAL.Policy(name, loss_scale=8)):
            EXPERIMENTAL.set_policy(policy)
            layer = tf.keras.layers.Dense(1)
            written = layer.get_config()["dtype"]
            if name == "float32" and scale_of_layer(layer) is not None and not KERAS_3:
                # Keras 2 writes a name only for policies of its own class.
                assert written["config"] == {"name": name}
            else:
                assert written == expected


@pytest.mark.skipif(not (2, 4) <= recorded.TF < (2, 9), reason="as in these versions only")
@sides
def test_the_loss_scale_of_a_set_policy_is_lost_with_the_files_of_these_versions(side: Side):
    side.policies.set_policy(side.policies.Policy("mixed_float16", loss_scale=8))
    config = tf.keras.layers.Dense(1).get_config()
    assert config["dtype"]["config"]["loss_scale"]["config"] == {"loss_scale_value": 8.0}
    set_policy(tf.keras, "float32")
    policy = tf.keras.layers.Dense.from_config(config).dtype_policy
    assert policy.name == "mixed_float16"
    assert not hasattr(policy, "loss_scale")


def scale_of_layer(layer: Any) -> Any:
    return EXPERIMENTAL.get_layer_policy(layer).loss_scale


READS = """
import sys
sys.modules["tf_lossscale"] = None  # as if it was not installed
import tensorflow as tf
for path in sys.argv[1:]:
    try:
        tf.keras.models.load_model(path)
    except Exception as error:
        print("read: ", type(error).__name__)
    else:
        print("read: loaded")
"""


@pytest.mark.skipif(not KERAS_3, reason="Keras 2 takes its own class of this name")
def test_a_layer_with_a_loss_scale_is_saved_under_the_name_of_this_package(tmp_path: Any):
    program = tmp_path / "reads.py"
    program.write_text(READS)
    named: List[bool] = []

    def written(suffix: str, is_set: bool) -> str:
        policy = EXPERIMENTAL.Policy("mixed_float16", loss_scale=128)
        EXPERIMENTAL.set_policy(policy if is_set else "float32")
        inputs = tf.keras.layers.Input((1,))
        layer = tf.keras.layers.Dense(1, dtype=None if is_set else policy)
        named.append("tf_lossscale" in str(layer.get_config()["dtype"]))
        path = str(tmp_path / f"{is_set}{suffix}")
        tf.keras.Model(inputs, layer(inputs)).save(path)
        return path

    paths = [written(".keras", True), written(".keras", False), written(".h5", False)]
    done = processes.run_python(str(program), *paths)
    lines = [line for line in done.stdout.splitlines() if line.startswith("read: ")]
    of_set, of_layer, of_h5 = (line == "read: loaded" for line in lines)
    assert of_set
    assert not named[0]
    assert of_layer != named[1]  # Keras 3.3 writes the name of the policy
    if tf.keras.__version__.startswith("3.15."):
        assert named[1]
        assert not of_h5


def test_a_policy_reads_back_what_it_wrote():
    if recorded.TF < (2, 1):
        pytest.skip("policies of 1.15 have no from_config")
    for case in CASES:
        if case.loss_scale is own_loss_scale:
            continue  # its class is not registered with Keras
        policy = case.policy(OURS)
        again = EXPERIMENTAL.Policy.from_config(policy.get_config())
        assert again.name == policy.name
        assert kept_scale(again) == kept_scale(policy)
        assert scale(compiled(model_with(again, OURS, "set"))) == case.scale


@pytest.mark.skipif(recorded.TF < (2, 2), reason="1.15 does not write policies")
def test_layers_with_a_policy_can_be_cloned_and_copied():
    for loss_scale in ("auto", 128):
        policy = EXPERIMENTAL.Policy("mixed_float16", loss_scale=loss_scale)
        inputs = tf.keras.layers.Input((1,))
        model = tf.keras.Model(inputs, tf.keras.layers.Dense(1, dtype=policy)(inputs))
        clone = tf.keras.models.clone_model(model)
        assert EXPERIMENTAL.get_layer_policy(clone.layers[-1]).name == "mixed_float16"
        again = tf.keras.models.model_from_json(model.to_json())
        assert EXPERIMENTAL.get_layer_policy(again.layers[-1]).name == "mixed_float16"


def test_copies_of_a_policy_are_ours():
    for policy in (
        FINAL.Policy("mixed_float16"),
        EXPERIMENTAL.Policy("mixed_float16"),
        EXPERIMENTAL.Policy("mixed_float16", loss_scale=8),
    ):
        expected = scale(compiled(model_with(policy, OURS, "model")))
        copies = [copy.copy(policy), copy.deepcopy(policy)]
        if not HAS_EXPERIMENTAL:  # TensorFlow's loss scales cannot be pickled on every version
            copies.append(pickle.loads(pickle.dumps(policy)))
        for other in copies:
            optimizer = compiled(model_with(other, OURS, "model"))
            assert is_ours(optimizer)
            assert scale(optimizer) == expected
    for cls in (FINAL.Policy, EXPERIMENTAL.Policy):
        assert pickle.loads(pickle.dumps(cls)) is cls


def test_a_loss_scale_is_kept_itself_and_a_policy_that_is_set_comes_back():
    loss_scale = LossScales.DynamicLossScale()
    policy = EXPERIMENTAL.Policy("mixed_float16", loss_scale=loss_scale)
    assert policy.loss_scale is loss_scale
    EXPERIMENTAL.set_policy(policy)
    assert EXPERIMENTAL.global_policy() is policy
    # As a program reads it that does not name the shim.
    current = FINAL.global_policy()
    assert current.loss_scale is loss_scale
    assert isinstance(current, EXPERIMENTAL.Policy)
    FINAL.set_global_policy(current)
    assert EXPERIMENTAL.global_policy() is policy
    FINAL.set_global_policy("mixed_float16")
    assert getattr(EXPERIMENTAL.global_policy(), "loss_scale", None) is not loss_scale


def test_a_policy_of_tensorflow_that_is_set_by_our_name_is_ours():
    installed = getattr(INSTALLED, "Policy", None) or INSTALLED_EXPERIMENTAL.Policy
    FINAL.set_global_policy(installed("mixed_float16"))
    optimizer = compiled(network())
    assert is_ours(optimizer)
    assert scale(optimizer) == 2.0**15


def test_another_policy_ends_ours_for_new_models_only():
    for set_ours in (FINAL.set_global_policy, EXPERIMENTAL.set_policy):
        set_ours("mixed_float16")
        model = network()
        for name in ("mixed_float16", "float32"):
            set_policy(tf.keras, name)
            other = compiled(network())
            assert not is_ours(other)
            assert isinstance(other, FINAL.LossScaleOptimizer) is (name == "mixed_float16")
            assert is_ours(compiled(model))


@pytest.mark.skipif(recorded.TF < (2, 6), reason="a model has no policy by name")
def test_the_global_policy_is_meant_by_its_name():
    class Line(tf.keras.Model):
        pass

    assert not is_ours(compiled(Line(dtype="mixed_float16")))
    FINAL.set_global_policy("mixed_float16")
    assert is_ours(compiled(Line(dtype="mixed_float16")))
    assert not is_ours(compiled(Line(dtype="float32")))
    EXPERIMENTAL.set_policy(EXPERIMENTAL.Policy("float32", loss_scale=8))
    optimizer = compiled(Line(dtype="mixed_float16"))
    assert is_ours(optimizer)
    assert scale(optimizer) == 2.0**15  # that of the name
    assert scale(compiled(Line(dtype="float32"))) is None


@pytest.mark.skipif(not KERAS_3, reason="Keras 2 has one global policy for all threads")
def test_the_global_policy_of_another_thread_is_not_ours():
    FINAL.set_global_policy("mixed_float16")
    found = []

    def run():
        found.append(compiled(network()))
        set_policy(tf.keras, "mixed_float16")
        found.append(compiled(network()))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert [is_ours(optimizer) for optimizer in found] == [False, False]
    assert is_ours(compiled(network()))


@pytest.mark.parametrize("by", ["name", "configuration"])
def test_an_optimizer_by_name_or_configuration(by: str):
    optimizer = "sgd"
    if by == "configuration":
        if not KERAS_3:
            pytest.skip("Keras 2 takes a dictionary for several optimizers")
        optimizer = tf.keras.optimizers.serialize(tf.keras.optimizers.SGD())
    EXPERIMENTAL.set_policy(EXPERIMENTAL.Policy("mixed_float16", loss_scale=8))
    assert scale(compiled(network(), optimizer)) == 8.0
    EXPERIMENTAL.set_policy(EXPERIMENTAL.Policy("mixed_float16", loss_scale=None))
    made = compiled(network(), optimizer)
    assert type(made).__name__ == "SGD"


@pytest.mark.skipif(KERAS_3 or recorded.TF < (2, 2), reason="others take one optimizer")
def test_several_optimizers():
    given = [tf.keras.optimizers.SGD(0.5), "adam"]
    EXPERIMENTAL.set_policy(EXPERIMENTAL.Policy("float32", loss_scale=8))
    assert [scale(optimizer) for optimizer in compiled(network(), given)] == [8.0, 8.0]


def test_an_optimizer_that_scales_is_kept():
    FINAL.set_global_policy("mixed_float16")
    for optimizer in (
        FINAL.LossScaleOptimizer(tf.keras.optimizers.SGD(0.5), False, 8),
        EXPERIMENTAL.LossScaleOptimizer(tf.keras.optimizers.SGD(0.5), 16),
    ):
        assert compiled(network(), optimizer) is optimizer


def test_models_that_override_compile():
    class Overrides(tf.keras.Model):
        def compile(self, optimizer: Any, loss: Any = None, **kwargs: Any):
            self.given = optimizer
            super().compile(optimizer=optimizer, loss=loss, **kwargs)

    FINAL.set_global_policy("mixed_float16")
    model = network(Overrides)
    inner = tf.keras.optimizers.SGD(0.5)
    optimizer = compiled(model, inner)
    assert is_ours(optimizer)
    assert optimizer.inner_optimizer is model.given is inner


@pytest.mark.skipif(not KERAS_3, reason="an argument of Keras 3")
def test_a_model_can_refuse_loss_scaling_by_the_argument_of_keras_3():
    FINAL.set_global_policy("mixed_float16")
    inner = tf.keras.optimizers.SGD(0.5)
    assert compiled(network(), inner, auto_scale_loss=False) is inner
    with pytest.raises(TypeError, match="no_such_argument"):
        network().compile(inner, no_such_argument=1)


@pytest.mark.skipif(recorded.TF < (2, 2), reason="1.15 has no train_step")
@pytest.mark.parametrize("suffix", [".keras", ".h5"])
def test_load_model_follows_the_policy(suffix: str, tmp_path: Any):
    if suffix == ".h5" and KERAS_3 and recorded.TF < (2, 21):
        pytest.skip("Keras 3 could not read its own files of this kind")
    if suffix == ".keras" and recorded.TF < (2, 12):
        pytest.skip("the format came with TensorFlow 2.12")
    for policy in (None, EXPERIMENTAL.Policy("mixed_float16", loss_scale=128)):
        set_ours(policy)
        model = network()
        model.compile(tf.keras.optimizers.SGD(0.5), tf.keras.losses.MeanSquaredError())
        model.train_on_batch(np.ones((1, 1), "float32"), np.zeros((1, 1), "float32"))
        path = str(tmp_path / ("model" + suffix))
        model.save(path)
        expected = scale(model.optimizer)
        for clear in (False, True):
            if clear:
                set_policy(tf.keras, "float32")
                set_ours(policy)
            loaded = tf.keras.models.load_model(path)
            assert is_ours(loaded.optimizer)
            if policy is not None or KERAS_3:  # files of Keras 2 have no current scale
                assert scale(loaded.optimizer) == expected
            np.testing.assert_array_equal(loaded.get_weights()[0], model.get_weights()[0])


def set_ours(policy: Any):
    if policy is None:
        FINAL.set_global_policy("mixed_float16")
    else:
        EXPERIMENTAL.set_policy(policy)


def test_compile_is_as_before_when_the_last_policy_is_gone():
    FINAL.set_global_policy("mixed_float16")
    model = network()
    assert interventions._hooks
    set_policy(tf.keras, "float32")
    tf.keras.backend.clear_session()
    gc.collect()
    assert interventions._hooks
    assert is_ours(compiled(model))
    if recorded.TF < (2, 4):
        return  # Keras keeps the models in a global graph
    del model
    gc.collect()
    assert not interventions._hooks


def test_uninstall_ends_it_until_the_next_policy():
    FINAL.set_global_policy("mixed_float16")
    model = network()
    tfls.uninstall()
    assert not is_ours(compiled(model))
    FINAL.set_global_policy("mixed_float16")
    assert is_ours(compiled(network()))
    assert is_ours(compiled(model))


@pytest.mark.parametrize("kind", ["final", "experimental", "fixed"])
def test_a_policy_from_before_uninstall_can_be_set_after_it(kind: str):
    names = FINAL if kind == "final" else EXPERIMENTAL
    arguments = {"loss_scale": 128} if kind == "fixed" else {}
    policy = names.Policy("mixed_float16", **arguments)
    set_by_name = FINAL.set_global_policy if kind == "final" else EXPERIMENTAL.set_policy
    set_by_name(policy)
    tfls.uninstall()
    for _ in range(2):
        set_by_name(policy)
        optimizer = compiled(network())
        assert is_ours(optimizer)
        assert scale(optimizer) == (128.0 if kind == "fixed" else 2.0**15)
    references = [reference() for reference in interventions._served]
    assert len(references) == len({id(reference) for reference in references})


def test_a_compile_of_an_unknown_keras_is_refused():
    class Unknown:
        __name__ = "keras.src.trainers.unknown"

    with pytest.raises(RuntimeError, match="wrap the optimizer before compile"):
        interventions.hook_compile(Unknown(), interventions.POLICY, lambda model, always: None)
    with pytest.raises(RuntimeError, match="no_such_keras of this Keras version"):
        interventions.serve(Unknown(), "no_such_keras", lambda model, always: None)


def test_wrong_names_and_loss_scales():
    with pytest.raises((ValueError, TypeError)):
        EXPERIMENTAL.Policy("no_such_policy")
    with pytest.raises((ValueError, TypeError)):
        FINAL.Policy("no_such_policy")

    for side in SIDES:
        with pytest.raises(ValueError, match="loss scale"):
            side.policies.Policy("mixed_float16", loss_scale="nonsense")
        with pytest.raises(ValueError, match="must be at least 1"):
            side.policies.Policy("mixed_float16", loss_scale=0.5)
