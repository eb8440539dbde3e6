"""`find_nonfinite`."""

from typing import Any

from tf_lossscale._core.first_bad import bad_positions
from tf_lossscale._monitoring.watcher import unnoticed, variable_name
from tf_lossscale._versions.base import do_not_convert, tf, tf1

__all__ = ["find_nonfinite"]


@do_not_convert
def find_nonfinite(grads_and_vars: Any) -> Any:
    """Finds the variables whose gradient holds an infinity or a NaN.

    Every element of every gradient is tested, which takes longer than the finite check of an
    optimizer: use it to debug. Under a strategy, it tests the gradients of the current replica.

    Examples:
      >>> import tensorflow as tf
      >>> import tf_lossscale as tfls
      >>> one, two = tf.Variable(1.0, name="one"), tf.Variable(2.0, name="two")
      >>> gradients = [tf.constant(1.0), tf.constant(float("nan"))]
      >>> tfls.monitoring.find_nonfinite(zip(gradients, [one, two]))
      ['two']

    Args:
      grads_and_vars: pairs of a float gradient (a tensor, `IndexedSlices`, or None, which counts as
        finite) and its variable.

    Returns:
      In eager mode, the list of the names of these variables, in the order of the pairs. In a graph
      or a `tf.function`, a string tensor of shape `[n]` with the same names, for `tf.print` or
      `Session.run`. XLA cannot compile strings.
    """
    pairs = list(grads_and_vars)
    names = [variable_name(variable) for _, variable in pairs]
    with unnoticed():
        positions = bad_positions([[gradient] for gradient, _ in pairs])
        if positions is None:
            return [] if tf.executing_eagerly() else tf.zeros([0], tf.string)
        if tf.executing_eagerly():
            bad = {int(each) for each in positions.numpy()}
            return [name for number, name in enumerate(names) if number in bad]
        is_bad = tf1.reduce_any(
            tf.equal(positions[:, tf.newaxis], tf.range(len(names), dtype=tf.int64)), axis=0
        )
        return tf.boolean_mask(tf.constant(names), is_bad)
