"""What a record says of the beginning of a run: weights, slots, and the dtype of the gradients."""

import numpy as np
import pytest
import support
import tensorflow as tf

from tf_lossscale._core.watching import Step
from tf_lossscale._recorder.beginning import computed_in, hash_of, read_eagerly, state_of_slots

tf1 = tf.compat.v1
SCALE = 8.0
COUNTS = np.arange(1.0, 12.0)
VALUES = {
    "float32": COUNTS / 3.0,
    "float16": 1.0 + COUNTS / 2.0**10,
    "bfloat16": 1.0 + COUNTS / 2.0**7,
}


def computed(gradient, scale=SCALE):
    found = computed_in(Step(None, [None], [[gradient]], True), scale)
    return found and found[0]


def unscaled(values):
    return tf.constant(np.float32(values) / np.float32(SCALE))


@pytest.mark.parametrize("dtype", sorted(VALUES))
def test_the_bits_of_a_gradient_show_its_dtype(dtype):
    with support.eager():
        assert computed(unscaled(VALUES[dtype])) == dtype
        assert computed(tf.cast(unscaled(VALUES[dtype]), tf.float16)) == "float16"


@pytest.mark.parametrize("dtype", sorted(VALUES))
def test_bits_that_may_be_so_by_chance_show_nothing(dtype):
    values = VALUES[dtype]
    with support.eager():
        assert computed(unscaled(values[:7])) is None
        assert computed(unscaled([*values[:7], *[0.0] * 9])) is None
        assert computed(unscaled([*values, np.inf])) is None
        assert computed(unscaled(values), scale=10.0) is None  # dividing by it has rounded
        assert computed(unscaled(COUNTS)) is None  # every dtype holds these


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_in_a_graph_the_operations_show_it(dtype):
    with tf.Graph().as_default():
        product = tf.matmul(tf.ones([2, 2], dtype), tf.ones([2, 2], dtype))
        assert computed(tf.cast(product, tf.float32) / SCALE) == dtype
        assert computed(tf1.placeholder(tf.float32, [2])) is None


def test_slots_are_fresh_while_all_their_values_are_equal():
    with support.eager():
        fresh = [tf.Variable([0.5, 0.5]), tf.Variable(3.0)]
        assert state_of_slots(fresh, read_eagerly) == "fresh"
        assert state_of_slots([*fresh, tf.Variable([0.5, 0.25])], read_eagerly) == "trained"
    assert state_of_slots(None, read_eagerly) is None
    assert state_of_slots([None], read_eagerly) is None


def test_equal_weights_have_one_hash():
    with support.eager():
        weights = [tf.Variable([1.0, 2.0]), tf.Variable(3.0)]
        found = hash_of(weights, read_eagerly)
        assert found is not None
        assert hash_of([tf.Variable([1.0, 2.0]), tf.Variable(3.0)], read_eagerly) == found
        assert hash_of(weights[::-1], read_eagerly) != found
    assert hash_of([None], read_eagerly) is None
