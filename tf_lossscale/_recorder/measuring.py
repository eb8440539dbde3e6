"""The numbers of one step: on the host in eager mode, as one tensor in a graph."""

from typing import Any, List, NamedTuple, Optional, Sequence

import numpy as np

from tf_lossscale._recorder.optimizers import LossScale
from tf_lossscale._versions.base import tf, where
from tf_lossscale._versions.graphs import in_xla_context

__all__ = ["COLUMNS", "Gradients", "Row", "measured", "row_of", "unpacked"]

COLUMNS = 7
_UNKNOWN = -1.0


class Gradients(NamedTuple):
    """The gradients of a step.

    Attributes:
      tested: for each variable, the tensors and `IndexedSlices` that must be finite: one for each
        replica, or one for all.
      are_applied: whether each replica applies its own, which are equal on all of them. Otherwise
        the norm of what is applied is unknown.
      are_scaled: whether they are those of the scaled loss.
    """

    tested: Sequence[Sequence[Any]]
    are_applied: bool
    are_scaled: bool = False


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
        """
        if self.good_steps is None or self.scale is None or later.scale is None:
            return True
        if applied:
            counted = self.good_steps + 1
            if later.good_steps == 0:
                return not later.scale < self.scale and counted >= (growth_steps or 0)
            return later.good_steps == counted and not later.scale < self.scale
        return later.good_steps in (0, self.good_steps) and not later.scale > self.scale


def row_of(loss: Optional[Any], loss_scale: LossScale, gradients: Optional[Gradients]) -> Row:
    """Returns the numbers of a step in eager mode."""
    scale = _on_host(loss_scale.value)
    norm = bad = _UNKNOWN
    if gradients is not None:
        halves = tf.stack(_halves(gradients)).numpy().astype(np.float64)
        numbers = [number for number, each in enumerate(gradients.tested) for _ in each]
        bad = next((i for i, half in zip(numbers, halves) if not np.isfinite(half)), -2.0)
        norms = [np.sqrt(2.0 * np.sum(halves[each])) for each in _of_replicas(gradients)]
        norm = norms[0] if norms and len(set(norms)) == 1 else _UNKNOWN
        norm = norm / scale if gradients.are_scaled else norm
    good_steps, bad_steps = _on_host(loss_scale.good_steps), _on_host(loss_scale.bad_steps)
    return _row(None if loss is None else _on_host(loss), scale, good_steps, bad_steps, norm, bad)


def _on_host(value: Optional[Any]) -> float:
    if value is None:
        return _UNKNOWN
    return float(value.numpy() if hasattr(value, "numpy") else value)


def measured(loss: Optional[Any], loss_scale: LossScale, gradients: Optional[Gradients]) -> Any:
    """Returns the numbers of a step in a graph: a float64 tensor of shape `[COLUMNS]`.

    Args:
      loss: scalar tensor, or None.
      loss_scale: the loss scale before the step.
      gradients: what is known of the gradients; None if nothing is to be recorded.
    """
    scale = _float64(loss_scale.value)
    norm: Any = _float64(_UNKNOWN)
    bad: Any = norm
    if gradients is not None:
        halves = tf.cast(tf.stack(_halves(gradients)), tf.float64)
        bad = _first_bad(gradients, halves)
        norms = [tf.sqrt(2.0 * _sum_of(halves, each)) for each in _of_replicas(gradients)]
        if norms:
            norm = norms[0]
            if len(norms) > 1:
                agree = tf.reduce_all(tf.equal(tf.stack(norms), norm))
                norm = where(agree, norm, _float64(_UNKNOWN))
            norm = norm / scale if gradients.are_scaled else norm
    return tf.stack(
        [
            _float64(0.0 if loss is None else loss),
            _float64(float(loss is not None)),
            scale,
            _float64(_UNKNOWN if loss_scale.good_steps is None else loss_scale.good_steps),
            _float64(_UNKNOWN if loss_scale.bad_steps is None else loss_scale.bad_steps),
            norm,
            bad,
        ]
    )


def _halves(gradients: Gradients) -> List[Any]:
    """Returns half the sum of squares of each tensor, in float32: one pass over its elements.

    It is not finite if the tensor is not. That it can also overflow for finite elements above 1e19
    matters only to the first bad variable of a step that a fixed loss scale applies.
    """
    return [tf.nn.l2_loss(_summed(each)) for tensors in gradients.tested for each in tensors]


def _of_replicas(gradients: Gradients) -> List[List[int]]:
    """Returns for each replica the positions of its gradients in `_halves`; none if unknown."""
    flat = [each for tensors in gradients.tested for each in tensors]
    is_sparse = any(isinstance(each, tf.IndexedSlices) for each in flat)
    if not gradients.are_applied or (is_sparse and in_xla_context()):
        return []
    count = max(len(tensors) for tensors in gradients.tested)
    positions: List[List[int]] = [[] for _ in range(count)]
    position = 0
    for tensors in gradients.tested:
        for replica in range(len(tensors)):
            positions[replica].append(position)
            position += 1
    return positions


def _sum_of(values: Any, positions: Sequence[int]) -> Any:
    is_all = len(positions) == values.shape[0]
    return tf.reduce_sum(values if is_all else tf.gather(values, list(positions)))


def _first_bad(gradients: Gradients, halves: Any) -> Any:
    """Returns the number of the first variable that is not finite; below `_UNKNOWN` if none is."""
    numbers = [float(number) for number, each in enumerate(gradients.tested) for _ in each]
    end = float(len(gradients.tested))
    finite = tf.math.is_finite(halves)
    first = tf.reduce_min(where(finite, tf.fill([len(numbers)], _float64(end)), numbers))
    return where(tf.equal(first, end), _float64(-1.0 - end), first)


def _summed(gradient: Any) -> Any:
    """Returns the values of a gradient in float32; those of one row of a sparse one are added.

    Otherwise the norm would depend on how often a row is listed, which versions differ in.
    """
    if not isinstance(gradient, tf.IndexedSlices):
        return tf.cast(gradient, tf.float32)
    values = tf.cast(gradient.values, tf.float32)
    if in_xla_context():
        return values  # XLA cannot find the rows
    rows, places = tf.unique(gradient.indices)
    return tf.math.unsorted_segment_sum(values, places, tf.size(rows))


def _float64(value: Any) -> Any:
    if isinstance(value, float):
        return tf.constant(value, tf.float64)
    return tf.cast(tf.reshape(tf.convert_to_tensor(value), []), tf.float64)


def unpacked(values: np.ndarray) -> Row:
    """Returns the numbers of a step from the value of the tensor."""
    loss, has_loss, scale, good, bad_steps, norm, bad = [float(each) for each in values]
    return _row(loss if has_loss else None, scale, good, bad_steps, norm, bad)


def _row(
    loss: Optional[float], scale: float, good: float, bad_steps: float, norm: float, bad: float
) -> Row:
    tested = bad != _UNKNOWN
    finite = bad < 0 if tested else None
    return Row(
        loss=loss,
        scale=scale,
        good_steps=int(good) if good >= 0 else None,
        bad_steps=int(bad_steps) if bad_steps >= 0 else None,
        # The square of a large norm is infinite, and the norm of infinite gradients says nothing.
        norm=float(norm) if finite and np.isfinite(norm) and norm >= 0 else None,
        finite=finite,
        bad=int(bad) if tested and bad >= 0 else None,
    )
