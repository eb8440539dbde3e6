"""The settings of inner optimizers: how they are read, and what `compare` says of them."""

import pytest
import tensorflow as tf
from simulated import Run, record
from test_record_keras import in_eager_mode

from tf_lossscale._compare.comparing import Conditions, Verdict, compare
from tf_lossscale._versions.watching import settings_of

__all__ = ["in_eager_mode"]

tf1 = tf.compat.v1
UNUSED = dict.fromkeys(("clipnorm", "clipvalue", "global_clipnorm", "weight_decay"))
ROUNDS = Run(steps=300, initial_scale=8.0, growth_steps=10_000, rounding=1e-4)


def test_settings_of_tensorflow_1_optimizers():
    train = tf1.train
    found = settings_of(train.AdamOptimizer(0.1, 0.8, epsilon=1e-3))
    assert found == {"learning_rate": 0.1, "beta_1": 0.8, "beta_2": 0.999, "epsilon": 1e-3}
    found = settings_of(train.RMSPropOptimizer(0.1, 0.7, 0.5))
    assert {name: found[name] for name in ("rho", "momentum")} == {"rho": 0.7, "momentum": 0.5}
    assert settings_of(train.AdagradOptimizer(0.1))["initial_accumulator_value"] == 0.1
    with tf.Graph().as_default():
        rate = tf1.placeholder(tf.float32, [])
        found = settings_of(train.MomentumOptimizer(rate, 0.9, use_nesterov=True))
    assert found == {"momentum": 0.9, "nesterov": True}  # the value of the rate is not known


@pytest.mark.parametrize("has_stepped", [False, True])
def test_settings_of_keras_optimizers(has_stepped):
    optimizer = tf.keras.optimizers.SGD(0.1, momentum=0.9, clipnorm=2.0)
    if has_stepped:
        optimizer.apply_gradients([(tf.constant(1.0), tf.Variable(1.0))])
    found = settings_of(optimizer)
    numbers = {name: found.pop(name) for name in ("learning_rate", "momentum")}  # in float32
    assert numbers == pytest.approx({"learning_rate": 0.1, "momentum": 0.9})
    assert found == {"nesterov": False, **UNUSED, "clipnorm": 2.0}


def test_a_schedule_is_not_called():
    class Schedule(tf.keras.optimizers.schedules.LearningRateSchedule):
        calls = 0

        def __call__(self, step):
            self.calls += 1
            return tf.constant(0.1)

        def get_config(self):
            return {}

    schedule = Schedule()
    optimizer = tf.keras.optimizers.SGD(schedule)
    calls = schedule.calls
    assert "learning_rate" not in settings_of(optimizer)
    assert schedule.calls == calls


def test_what_cannot_be_read_is_left_out():
    class Broken:
        @property
        def learning_rate(self):
            raise RuntimeError

        momentum = "much"

    assert settings_of(Broken()) == {}


def pair(old, new, **changed):
    one, other = record(ROUNDS), record(Run(**{**vars(ROUNDS), "rounding": 0.0, **changed}))
    one.settings, other.settings = old, new
    return compare(one, other)


def test_settings_that_differ_are_never_the_same():
    # Adam hardly changes where each gradient is clipped: no number shows that.
    found = pair({"clipnorm": None, "beta_1": 0.9}, {"clipnorm": 0.5, "beta_1": 0.9})
    assert found.verdict is Verdict.UNDECIDED
    assert found.sentence.startswith(
        "Not shown to be the same: the inner optimizers have clipnorm none and 0.5. Apart from "
        "that: Same: 300 steps"
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"learning_rate": 0.1}, {"learning_rate": 0.10000000149}),  # in float32
        ({"momentum": 0.9}, {}),
        ({"clipnorm": None}, {"clipnorm": None}),
    ],
)
def test_settings_that_are_equal_or_unknown_say_nothing(old, new):
    assert pair(old, new).verdict is Verdict.SAME


def test_equal_bits_are_the_same_whatever_the_settings_are():
    # Such as a limit of norms that no gradient reaches.
    one, other = record(ROUNDS), record(ROUNDS)
    one.settings, other.settings = {"clipnorm": None}, {"clipnorm": 100.0}
    found = compare(one, other)
    assert found.verdict is Verdict.IDENTICAL
    assert "settings of the inner optimizers differ: clipnorm none and 100" in found.evidence


def test_settings_that_differ_are_the_cause_of_what_follows_them():
    rates = {"learning_rate": 0.02}, {"learning_rate": 0.024}
    found = pair(*rates, rate=0.024)
    assert found.verdict is Verdict.DIFFERENT
    assert "cause: the inner optimizers have learning_rate 0.02 and 0.024." in found.sentence
    one, other = record(ROUNDS), record(ROUNDS)
    other.loss[7] *= 1 + 1e-6
    one.settings, other.settings = rates
    found = compare(one, other, Conditions(are_equal=True))
    assert "(by 1e-06); cause: the inner optimizers have learning_rate 0.02" in found.sentence
    # Not of what precedes the first update.
    assert "learning_rate" not in pair(*rates, data=2).sentence
