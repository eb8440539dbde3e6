"""The numbers of one step, as one tensor."""

from typing import Any, NamedTuple, Optional, Sequence

import numpy as np

from tf_lossscale._recorder.optimizers import LossScale
from tf_lossscale._versions.base import tf, where

__all__ = ["COLUMNS", "Row", "measured", "unpacked"]

COLUMNS = 7


class Row(NamedTuple):
    """The numbers of one step; None means unknown.

    Attributes:
      loss: the unscaled loss.
      scale: the loss scale that the step uses.
      good_steps: the count before the step.
      bad_steps: the count before the step.
      norm: the norm of the unscaled gradients.
      finite: whether all gradients are finite.
      bad: the number of the first variable with a non-finite gradient.
    """

    loss: Optional[float]
    scale: Optional[float]
    good_steps: Optional[int]
    bad_steps: Optional[int]
    norm: Optional[float]
    finite: Optional[bool]
    bad: Optional[int]


_UNKNOWN = -1.0


def measured(
    loss: Optional[Any],
    loss_scale: LossScale,
    gradients: Optional[Sequence[Any]],
    gradients_are_scaled: bool,
) -> Any:
    """Returns a float64 tensor of shape `[COLUMNS]`.

    Args:
      loss: scalar tensor, or None.
      loss_scale: the loss scale before the step.
      gradients: gradients and None; None instead of the list if they are not known.
      gradients_are_scaled: whether they are those of the scaled loss.
    """
    scale = _float64(loss_scale.value)
    values = [
        tf.constant(0.0, tf.float64) if loss is None else _float64(loss),
        tf.constant(float(loss is not None), tf.float64),
        scale,
        _float64(_UNKNOWN if loss_scale.good_steps is None else loss_scale.good_steps),
        _float64(_UNKNOWN if loss_scale.bad_steps is None else loss_scale.bad_steps),
        tf.constant(_UNKNOWN, tf.float64),
        tf.constant(_UNKNOWN, tf.float64),
    ]
    if gradients is not None:
        numbered = [(i, _values(each)) for i, each in enumerate(gradients) if each is not None]
        flags = tf.stack([tf.reduce_all(tf.math.is_finite(each)) for _, each in numbered])
        end = len(gradients)
        numbers = where(
            flags,
            tf.fill(tf.shape(flags), tf.constant(end, tf.int32)),
            tf.constant([i for i, _ in numbered], tf.int32),
        )
        first_bad = tf.reduce_min(numbers)
        values[6] = _float64(where(tf.equal(first_bad, end), -1 - end, first_bad))
        halves = [tf.nn.l2_loss(_summed(each)) for each in gradients if each is not None]
        norm = tf.sqrt(2.0 * _float64(tf.reduce_sum(tf.stack(halves))))
        values[5] = norm / scale if gradients_are_scaled else norm
    return tf.stack(values)


def _values(gradient: Any) -> Any:
    if isinstance(gradient, tf.IndexedSlices):
        gradient = gradient.values
    return tf.convert_to_tensor(gradient)


def _summed(gradient: Any) -> Any:
    """Returns the values of a gradient in float32; those of one row of a sparse one are added.

    Otherwise the norm would depend on how often a row is listed, which versions differ in.
    """
    values = tf.cast(_values(gradient), tf.float32)
    if not isinstance(gradient, tf.IndexedSlices):
        return values
    rows, places = tf.unique(gradient.indices)
    return tf.math.unsorted_segment_sum(values, places, tf.size(rows))


def _float64(value: Any) -> Any:
    return tf.cast(tf.reshape(tf.convert_to_tensor(value), []), tf.float64)


def unpacked(values: np.ndarray) -> Row:
    """Returns the numbers of a step from the value of the tensor."""
    loss, has_loss, scale, good, bad_steps, norm, bad = [float(each) for each in values]
    tested = bad != _UNKNOWN
    finite = bad < 0 if tested else None
    return Row(
        loss=loss if has_loss else None,
        scale=scale,
        good_steps=int(good) if good >= 0 else None,
        bad_steps=int(bad_steps) if bad_steps >= 0 else None,
        # The square of a large norm is infinite, and the norm of infinite gradients says nothing.
        norm=norm if finite and np.isfinite(norm) and norm >= 0 else None,
        finite=finite,
        bad=int(bad) if tested and bad >= 0 else None,
    )
