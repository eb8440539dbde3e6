"""The two rules by which a loss scale follows the gradients, exact to the bit.

Both grow the scale after a run of finite steps and shrink it after non-finite ones. They are
written without branches, because two conditionals in a graph cost more than these few scalar
operations. NaN and infinite scales are part of the rules (the recorded traces of the originals hold
such cases), so `max` is a comparison here: `tf.maximum` has changed its mind about NaN.
"""

from typing import Any, Callable, Optional

from tf_lossscale._core.conditional import branch
from tf_lossscale._versions.base import do_not_convert, tf, tf1, where

__all__ = ["contrib_update", "dynamic_update"]


@do_not_convert
def dynamic_update(scale: Any, good_steps: Any, finite: Any, period: int, multiplier: float) -> Any:
    """Assigns the next state of a `DynamicLossScale` or of a Keras 2 optimizer.

    * finite, and the `period`-th such step in a row: `scale *= multiplier` unless that is not
      finite, and the count starts again; finite otherwise: the count goes up by one;
    * not finite: `scale = max(scale / multiplier, 1)`, and the count starts again.

    Args:
      scale: float32 variable of shape `[]`.
      good_steps: int64 variable of shape `[]`, finite steps since the last change.
      finite: bool tensor of shape `[]` (or a Python bool in eager mode).
      period: finite steps after which the scale grows; 0 and below mean every step.
      multiplier: factor of growth, and divisor of decrease.

    Returns:
      An operation that makes both assignments; None in eager mode.
    """
    old_scale, counted = _read(scale), _read(good_steps) + 1
    grows = tf.logical_and(finite, counted >= period)
    grown = _unless_not_finite(old_scale * multiplier, old_scale)
    divided = old_scale / multiplier
    shrunk = where(divided < 1.0, tf.ones([], tf.float32), divided)  # NaN stays NaN
    kept_or_shrunk = where(finite, old_scale, shrunk)
    counts_on = tf.logical_and(finite, tf.logical_not(grows))
    return _assign(
        (scale, where(grows, grown, kept_or_shrunk)),
        (good_steps, where(counts_on, counted, tf.zeros_like(counted))),
    )


@do_not_convert
def contrib_update(
    scale: Any,
    good_steps: Any,
    bad_steps: Any,
    finite: Any,
    incr_every: Any,
    decr_every: Any,
    incr_ratio: Any,
    decr_ratio: Any,
    reset: Optional[Callable[[], Any]] = None,
) -> Any:
    """Assigns the next state of an `ExponentialUpdateLossScaleManager`.

    * finite, and the `incr_every`-th such step: `scale *= incr_ratio` unless that is not finite;
      both counts start again; finite otherwise: `good_steps` goes up, `bad_steps` stays;
    * not finite, and the `decr_every`-th such step: `scale = max(1, scale * decr_ratio)`; both
      counts start again; not finite otherwise: `bad_steps` goes up, `good_steps` starts again.

    Args:
      scale: float32 variable of shape `[]`.
      good_steps: int32 variable of shape `[]`.
      bad_steps: int32 variable of shape `[]`.
      finite: bool tensor of shape `[]` (or a Python bool in eager mode).
      incr_every: finite steps after which the scale grows.
      decr_every: non-finite steps after which it shrinks.
      incr_ratio: factor of growth.
      decr_ratio: factor of decrease.
      reset: called when the scale has changed, instead of starting both counts again; returns an
        operation, or None in eager mode.

    Returns:
      An operation that makes the assignments; None in eager mode.
    """
    old_scale, old_good, bad = _read(scale), _read(good_steps), _read(bad_steps)
    good, bad_counted = old_good + 1, bad + 1
    not_finite = tf.logical_not(finite)
    grows = tf.logical_and(finite, good >= incr_every)
    shrinks = tf.logical_and(not_finite, bad_counted >= decr_every)
    changes = tf.logical_or(grows, shrinks)
    grown = _unless_not_finite(old_scale * incr_ratio, old_scale)
    multiplied = old_scale * decr_ratio
    shrunk = where(multiplied > 1.0, multiplied, tf.ones([], tf.float32))  # NaN becomes 1
    zero = tf.zeros_like(good)
    kept_good, kept_bad = (zero, zero) if reset is None else (old_good, bad)
    assigned = _assign(
        (scale, where(grows, grown, where(shrinks, shrunk, old_scale))),
        (good_steps, where(changes, kept_good, where(finite, good, zero))),
        (bad_steps, where(changes, kept_bad, where(finite, bad, bad_counted))),
    )
    if reset is None:
        return assigned
    with tf.control_dependencies([] if assigned is None else [assigned]):
        was_reset = branch(tf.identity(changes), reset)
    return None if assigned is None else tf.group(was_reset)


def _read(variable: Any) -> Any:
    # A fresh read, not the cached snapshot of a reference variable. In both rules every tensor that
    # is read is an input of the value that is assigned to its variable, so that the assignments,
    # which reference variables make in place, cannot come before the reads.
    return variable.read_value()


def _unless_not_finite(new: Any, old: Any) -> Any:
    return where(tf1.is_finite(new), new, old)


def _assign(*pairs: Any) -> Any:
    return tf.group(*[variable.assign(value) for variable, value in pairs])
