"""The numbers of one step, as one tensor."""

from typing import Any, NamedTuple, Optional, Sequence

import numpy as np

from tf_lossscale._recorder.optimizers import LossScale
from tf_lossscale._recorder.replicas import Gradients
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

    def may_precede(self, later: "Row", applied: bool, growth_steps: Optional[int]) -> bool:
        """Returns whether `later` can be the next step, if this one was applied or skipped.

        A counter that jumps shows that steps between them were not recorded.

        Args:
          later: another step.
          applied: whether this step was applied.
          growth_steps: the number of finite steps after which the scale grows, or None.
        """
        if self.good_steps is None or self.scale is None or later.scale is None:
            return True
        if applied:
            counted = self.good_steps + 1
            if later.good_steps == 0:
                return not later.scale < self.scale and counted >= (growth_steps or 0)
            return later.good_steps == counted and not later.scale < self.scale
        return later.good_steps in (0, self.good_steps) and not later.scale > self.scale


_UNKNOWN = -1.0


def measured(
    loss: Optional[Any],
    loss_scale: LossScale,
    gradients: Optional[Gradients],
    gradients_are_scaled: bool,
) -> Any:
    """Returns a float64 tensor of shape `[COLUMNS]`.

    Args:
      loss: scalar tensor, or None.
      loss_scale: the loss scale before the step.
      gradients: what is known of the gradients; None if nothing is to be recorded.
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
        values[6] = _first_bad(gradients.tested)
        norms = [_norm(each) for each in gradients.applied]
        if norms:
            norm = norms[0]
            if len(norms) > 1:
                agree = tf.reduce_all(tf.equal(tf.stack(norms), norm))
                norm = where(agree, norm, tf.constant(_UNKNOWN, tf.float64))
            values[5] = norm / scale if gradients_are_scaled else norm
    return tf.stack(values)


def _first_bad(gradients: Sequence[Sequence[Any]]) -> Any:
    """Returns the number of the first gradient that is not finite; below `_UNKNOWN` if none is."""
    numbered = [(i, tensor) for i, tensors in enumerate(gradients) for tensor in tensors]
    flags = tf.stack([tf.reduce_all(tf.math.is_finite(each)) for _, each in numbered])
    end = len(gradients)
    numbers = where(
        flags,
        tf.fill(tf.shape(flags), tf.constant(end, tf.int32)),
        tf.constant([i for i, _ in numbered], tf.int32),
    )
    first = tf.reduce_min(numbers)
    return _float64(where(tf.equal(first, end), -1 - end, first))


def _norm(gradients: Sequence[Any]) -> Any:
    halves = [tf.nn.l2_loss(_summed(each)) for each in gradients]
    return tf.sqrt(2.0 * _float64(tf.reduce_sum(tf.stack(halves))))


def _summed(gradient: Any) -> Any:
    """Returns the values of a gradient in float32; those of one row of a sparse one are added.

    Otherwise the norm would depend on how often a row is listed, which versions differ in.
    """
    if not isinstance(gradient, tf.IndexedSlices):
        return tf.cast(gradient, tf.float32)
    values = tf.cast(gradient.values, tf.float32)
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
