"""The settings of inner optimizers: how they are read."""

import pytest
import tensorflow as tf
from test_record_keras import in_eager_mode

from tf_lossscale._versions.settings import settings_of

__all__ = ["in_eager_mode"]

tf1 = tf.compat.v1
UNUSED = dict.fromkeys(("clipnorm", "clipvalue", "global_clipnorm", "weight_decay"))


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
