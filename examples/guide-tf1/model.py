"""A network of two layers that computes in float16, and stores its weights in float32."""

import tensorflow as tf

import data


def float32_storage(getter, name, shape, dtype, **kwargs):
    """Stores a weight in float32, and casts it to the dtype in which its layer computes."""
    return tf.cast(getter(name, shape, dtype=tf.float32, **kwargs), dtype)


def dense(x, units, name):
    xavier = tf.contrib.layers.xavier_initializer()
    with tf.variable_scope(name, custom_getter=float32_storage):
        kernel = tf.get_variable("kernel", [x.shape[1], units], x.dtype, initializer=xavier)
        bias = tf.get_variable("bias", [units], x.dtype, initializer=tf.zeros_initializer())
    return tf.matmul(x, kernel) + bias


def logits(points):
    hidden = tf.nn.relu(dense(tf.cast(points, tf.float16), 32, "hidden"))
    return tf.cast(dense(hidden, data.CLASSES, "logits"), tf.float32)
