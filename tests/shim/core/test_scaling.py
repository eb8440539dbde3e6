"""The dtypes of unscaled gradients; and each gradient is freed as soon as possible."""

import weakref

import numpy as np
import pytest
import support
import tensorflow as tf

from tf_lossscale._core.scaling import divide_gradients, unscale_gradients


@pytest.mark.parametrize("unscale", [unscale_gradients, divide_gradients])
def test_dtypes_slices_and_none(unscale):
    with support.eager():
        gradients = [
            tf.constant([8.0, -4.0], tf.float16),
            None,
            tf.constant(2.0, tf.float64),
            tf.IndexedSlices(tf.constant([16.0]), tf.constant([3]), tf.constant([5])),
        ]
        half, nothing, double, slices = unscale(list(gradients), tf.constant(4.0))
        assert nothing is None
        expected = tf.float32 if unscale is divide_gradients else tf.float16
        assert (half.dtype, double.dtype) == (expected, tf.float64)
        np.testing.assert_array_equal(half.numpy(), [2.0, -1.0])
        assert double.numpy() == 0.5
        assert isinstance(slices, tf.IndexedSlices)
        assert (slices.values.numpy(), slices.indices.numpy()) == ([4.0], [3])
        assert slices.dense_shape is gradients[3].dense_shape


@pytest.mark.parametrize(
    ("unscale", "operation"), [(unscale_gradients, "Mul"), (divide_gradients, "RealDiv")]
)
def test_scaled_gradients_are_freed_one_by_one(unscale, operation, monkeypatch):
    calculate, alive_at_each = getattr(tf.raw_ops, operation), []

    def counting(**kwargs):
        alive_at_each.append(sum(reference() is not None for reference in references))
        return calculate(**kwargs)

    monkeypatch.setattr(tf.raw_ops, operation, counting)
    with support.eager():
        gradients = [tf.fill([4], float(number)) for number in range(6)]
        references = [weakref.ref(gradient) for gradient in gradients]
        unscaled = unscale(gradients, 2.0)
        assert gradients == []
        assert alive_at_each == [6, 5, 4, 3, 2, 1]
        assert [gradient.numpy()[0] for gradient in unscaled] == [0.0, 0.5, 1.0, 1.5, 2.0, 2.5]
