"""The contract of the experimental class: the final class with the old constructor."""

from typing import Any, Callable

import pytest
import recorded
import tensorflow as tf

EVERY = recorded.experimental()
OURS = [subject for subject in EVERY if subject.who == "ours"]
# The class was rewritten for 2.4; ours is the later one everywhere.
LATER = [subject for subject in EVERY if subject.who == "ours" or recorded.TF >= (2, 4)]

every = pytest.mark.parametrize("subject", EVERY, ids=str)
later = pytest.mark.parametrize("subject", LATER, ids=str)
ours = pytest.mark.parametrize("subject", OURS, ids=str)


def sgd(subject) -> Any:
    return subject.inner("SGD", learning_rate=0.5)


@later
def test_arguments_and_what_they_mean(subject):
    scales = tf.compat.v1.train.experimental
    for loss_scale, expected in (
        ("dynamic", (True, 2.0**15, 2000)),
        (8, (False, 8.0, None)),
        (0.5 if subject.kind.name != "keras3" else 1.5, (False, ..., None)),
        (scales.FixedLossScale(4), (False, 4.0, None)),
        (scales.DynamicLossScale(4, 5), (True, 4.0, 5)),
    ):
        optimizer = subject.cls(sgd(subject), loss_scale)
        scale = loss_scale if expected[1] is ... else expected[1]
        assert optimizer.dynamic is expected[0]
        assert optimizer.initial_scale == scale
        assert optimizer.dynamic_growth_steps == expected[2]
        assert callable(optimizer.loss_scale) is (subject.who == "ours" or recorded.TF < (2, 4))
        assert float(optimizer.loss_scale) == scale


@later
def test_wrong_arguments(subject):
    for wrong in (None, "static", [8.0], object()):
        with pytest.raises(ValueError, match="Invalid value passed to loss_scale"):
            subject.cls(sgd(subject), wrong)


# TensorFlow 1.15 calls it `opt`, later versions `optimizer`. Our class takes both.
NAMES = [
    (subject, name)
    for subject in EVERY
    for name in ("opt", "optimizer")
    if subject.who == "ours" or (name == "opt") is (recorded.TF < (2, 0))
]


@pytest.mark.parametrize(("subject", "name"), NAMES, ids=str)
def test_keywords(subject, name: str):
    loss_scale = subject.dynamic_loss_scale(8.0, 2)
    optimizer = subject.cls(**{name: sgd(subject)}, loss_scale=loss_scale)
    assert subject.read(optimizer)[0] == 8.0

    class Mine(subject.cls):
        def __init__(self, inner: Any):
            super().__init__(**{name: inner}, loss_scale=8.0)

    assert float(recorded.scale_of(Mine(sgd(subject)))) == 8.0


@ours
def test_an_optimizer_that_is_passed_twice_is_refused(subject):
    with pytest.raises(TypeError, match="multiple values for argument 'optimizer'"):
        subject.cls(sgd(subject), opt=sgd(subject), loss_scale=8.0)
    with pytest.raises(TypeError, match="unexpected keyword argument 'opt'"):
        subject.cls(optimizer=sgd(subject), opt=sgd(subject), loss_scale=8.0)


@later
def test_the_three_assertions_of_the_documentation(subject):
    """Those of TensorFlow 2.4: the two constructors give equal configs."""
    who = subject if subject.who == "ours" else subject._replace(who="original")
    final = who._replace(api="final").cls
    scales = tf.compat.v1.train.experimental

    def inner() -> Any:
        return subject.kind.optimizers.SGD(learning_rate=0.25, name="SGD")

    pairs: list[tuple[Callable[[], Any], Callable[[], Any]]] = [
        (lambda: subject.cls(inner(), "dynamic"), lambda: final(inner())),
        (
            lambda: subject.cls(inner(), 123),
            lambda: final(inner(), dynamic=False, initial_scale=123),
        ),
        (
            lambda: subject.cls(inner(), scales.DynamicLossScale(2048, increment_period=500)),
            lambda: final(inner(), initial_scale=2048, dynamic_growth_steps=500),
        ),
    ]
    for old, new in pairs:
        assert old().get_config() == new().get_config()


@ours
def test_config_round_trip(subject):
    for loss_scale in ("dynamic", 8.0, subject.dynamic_loss_scale(4.0, 5)):
        optimizer = subject.cls(sgd(subject), loss_scale)
        config = optimizer.get_config()
        again = type(optimizer).from_config(config)
        assert isinstance(again, subject.cls)
        assert again.get_config() == config == optimizer.get_config()


OLD_DYNAMIC = {
    "class_name": "DynamicLossScale",
    "config": {"initial_loss_scale": 8.0, "increment_period": 3, "multiplier": 2.0},
}
OLD_FIXED = {"class_name": "FixedLossScale", "config": {"loss_scale_value": 16.0}}
OLD_INNER = {
    "class_name": "Adam",
    "config": {
        "name": "Adam",
        "learning_rate": 0.25,
        "decay": 0.0,
        "beta_1": 0.5,
        "beta_2": 0.75,
        "epsilon": 1e-3,
        "amsgrad": False,
    },
}


@ours
@pytest.mark.parametrize("api", ["experimental", "final"])
def test_configs_of_tensorflow_2_3_are_read(subject, api: str):
    public = subject._replace(api=api)
    # The class over this kind; the public class would make an optimizer of `tf.keras`.
    cls = type(public.fixed(sgd(subject), 8.0))
    for loss_scale, expected in (
        (OLD_DYNAMIC, (True, 8.0, 3)),
        (OLD_FIXED, (False, 16.0, None)),
    ):
        optimizer = cls.from_config({"optimizer": OLD_INNER, "loss_scale": loss_scale})
        assert isinstance(optimizer, public.cls)
        found = optimizer.dynamic, optimizer.initial_scale, optimizer.dynamic_growth_steps
        assert found == expected
        assert recorded.number(optimizer.beta_1) == 0.5
        assert recorded.number(optimizer.learning_rate) == 0.25
    thrice = {"class_name": "DynamicLossScale", "config": dict(OLD_DYNAMIC["config"], multiplier=3)}
    optimizer = cls.from_config({"optimizer": OLD_INNER, "loss_scale": thrice})
    assert isinstance(optimizer, public._replace(api="experimental").cls)
    assert optimizer.get_config()["loss_scale"] == thrice
