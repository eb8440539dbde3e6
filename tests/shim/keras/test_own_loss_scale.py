"""Multipliers other than 2, and loss scales of a user's own class, on the experimental class.

The original took them up to TensorFlow 2.3. Ours takes them on every version and kind (K15).
"""

import json
import os
from typing import Any, List

import pytest
import recorded
import small_model
import tensorflow as tf

import tf_lossscale as tfls

LEGACY = recorded.TF < (2, 4)
SUBJECTS = [subject for subject in recorded.experimental() if subject.who == "ours" or LEGACY]
OURS = [subject for subject in SUBJECTS if subject.who == "ours"]
CASES = recorded.with_loss_scales(SUBJECTS)
every = pytest.mark.parametrize(("subject", "scales"), CASES)


def make(subject, loss_scale: Any) -> Any:
    return subject.cls(subject.inner("SGD", learning_rate=0.5, momentum=0.5), loss_scale)


def number(optimizer: Any) -> float:
    return float(recorded.scale_of(optimizer))


def step(optimizer: Any, variable: Any, value: Any):
    """A step whose gradient, unscaled, is `value`."""
    scaled = optimizer.get_scaled_loss(value)
    gradients = optimizer.get_unscaled_gradients([scaled])
    optimizer.apply_gradients(list(zip(gradients, [variable])))


def run(subject, optimizer: Any, values: List[float], in_function: bool) -> List[Any]:
    """The weight and the scale after each step."""
    variable = recorded.make_variable(subject.kind, 1.0, "v")

    def one(value: Any):
        step(optimizer, variable, value)

    one_step = tf.function(one) if in_function else one
    seen = []
    for value in values:
        one_step(tf.constant(value))
        seen.append((float(variable.numpy()), number(optimizer)))
    return seen


in_functions = pytest.mark.parametrize("in_function", [False, True], ids=["eager", "function"])


@in_functions
@every
def test_its_update_is_called_and_obeyed(subject, scales: Any, in_function: bool):
    optimizer = make(subject, recorded.below_100(scales)())
    seen = run(subject, optimizer, [1.0, 200.0, 2.0], in_function)
    # With the momentum 0.5, the steps subtract 0.5 * 1 and 0.5 * (0.5 + 2).
    assert seen == [(0.5, 5.0), (0.5, 6.0), (-0.75, 7.0)]
    if subject.who == "ours":
        assert int(recorded.number(optimizer.iterations)) == 3


@every
def test_a_python_bool_decides(subject, scales: Any):
    class Never(recorded.below_100(scales)):
        def update(self, grads: Any) -> Any:
            return None if tf.executing_eagerly() else tf.no_op(), self._decision

    for decision, weight in ((True, float("-inf")), (False, 1.0)):
        for in_function in (False, True):
            loss_scale = Never()
            loss_scale._decision = decision
            optimizer = make(subject, loss_scale)
            seen = run(subject, optimizer, [float("inf")], in_function)
            assert seen == [(weight, 4.0)]


@every
def test_an_override_is_called(subject, scales: Any):
    class Kept(scales.DynamicLossScale):
        def update(self, grads: Any) -> Any:
            _, should_apply = super().update(grads)
            self._current_loss_scale.assign(8.0)
            return None, should_apply

    optimizer = make(subject, Kept(8.0, 1))
    assert run(subject, optimizer, [1.0, float("inf")], False) == [(0.5, 8.0), (0.5, 8.0)]


WITH_CONFIG = [case for case in CASES if recorded.TF >= (2, 0) or case.values[0].who == "ours"]


@pytest.mark.parametrize(("subject", "scales"), WITH_CONFIG)
def test_configs(subject, scales: Any):
    own = recorded.below_100(scales)
    for loss_scale, expected in (
        (own(8.0), {"class_name": "Below100", "config": {"scale": 8.0}}),
        (
            scales.DynamicLossScale(8, 2, 4),
            {
                "class_name": "DynamicLossScale",
                "config": {"initial_loss_scale": 8, "increment_period": 2, "multiplier": 4},
            },
        ),
    ):
        optimizer = make(subject, loss_scale)
        # Keras 2.11 leaves NumPy's numbers in the configuration of the inner optimizer.
        config = json.loads(json.dumps(optimizer.get_config(), default=float))
        assert config["loss_scale"] == expected
        again = type(optimizer).from_config(config, custom_objects={"Below100": own})
        assert isinstance(again, subject.cls)
        assert number(again) == 8.0
        assert again.get_config()["loss_scale"] == expected
        if subject.who == "ours":
            final = tfls.keras.mixed_precision.LossScaleOptimizer
            again = final.from_config(config, custom_objects={"Below100": own})
            assert isinstance(again, subject.cls)
            with tf.keras.utils.CustomObjectScope({"Below100": own}):
                assert number(final.from_config(config)) == 8.0


def test_what_a_config_cannot_be_read_as():
    class Mine(tfls.keras.mixed_precision.LossScaleOptimizer):
        pass

    optimizer = make(OURS[0], tfls.compat.v1.train.experimental.DynamicLossScale(8, 2, 4))
    config = optimizer.get_config()
    with pytest.raises(ValueError, match="multiplier"):
        Mine.from_config(config)
    config["loss_scale"]["class_name"] = "Unknown"
    with pytest.raises(ValueError, match="Unknown"):
        type(optimizer).from_config(config)


@every
def test_checkpoints(subject, scales: Any, tmp_path: Any):
    own = recorded.below_100(scales)
    for name, make_scale in (
        ("own", lambda: own(8.0)),
        ("multiplier", lambda: scales.DynamicLossScale(8.0, 1, 8 / 9)),
    ):
        trained, restored = make(subject, make_scale()), make(subject, make_scale())
        variable = recorded.make_variable(subject.kind, 1.0, "v")
        step(trained, variable, tf.constant(float("nan") if name == "multiplier" else 1.0))
        assert number(trained) == 9.0
        path = tf.train.Checkpoint(optimizer=trained).save(str(tmp_path / name))
        tf.train.Checkpoint(optimizer=restored).restore(path)
        assert number(restored) == 9.0


def forms(subject) -> List[str]:
    if subject.kind.name == "keras3":
        return ["keras"]
    return ["h5", "keras"] if recorded.has_keras_format(subject.kind) else ["h5"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("subject", "scales"), WITH_CONFIG)
def test_files(subject, scales: Any, tmp_path: Any):
    """Those of Keras 2 have no place for the value of the scale (K12)."""
    own = recorded.below_100(scales)
    keeps = subject.kind.name == "keras3"
    for form in forms(subject):
        for loss_scale, trained in ((own(8.0), 9.0), (scales.DynamicLossScale(8.0, 1, 4.0), 32.0)):
            model = small_model.build(subject.kind.keras, make(subject, loss_scale))
            small_model.feed(model, 0)
            assert number(model.optimizer) == trained
            path = os.path.join(str(tmp_path), "model." + form)
            model.save(path)
            objects = {"Below100": own}
            if subject.who == "ours":
                objects["LossScaleOptimizer"] = tfls.keras.mixed_precision.LossScaleOptimizer
            again = subject.kind.keras.models.load_model(path, custom_objects=objects)
            assert isinstance(again.optimizer, subject.cls)
            assert number(again.optimizer) == (trained if keeps else 8.0)
            small_model.feed(again, 0)


def test_under_a_strategy_and_in_a_graph(in_a_process: Any):
    """`update` gets the gradients of each replica, which decide for all."""
    who = ["ours", "original"] if LEGACY else ["ours"]
    # Two replicas subtract 0.5 * (1 + 1). The step in which one of them exceeds 100 is skipped.
    mirrored = {"seen": [[2], [2], [2]], "weights": [0.0, 0.0, -1.0], "scales": [5.0, 6.0, 7.0]}
    multiplied = {"seen": [], "weights": [0.0, 0.0, -1.0], "scales": [32.0, 8.0, 32.0]}
    in_graph = {"weights": [0.5, 0.5, 0.0], "scales": [5.0, 6.0, 7.0]}
    assert in_a_process["own"] == dict.fromkeys(who, mirrored)
    assert in_a_process["multiplier"] == dict.fromkeys(who, multiplied)
    has_graphs = not hasattr(tf.keras, "Variable")
    assert in_a_process["graph"] == (dict.fromkeys(who, in_graph) if has_graphs else {})
