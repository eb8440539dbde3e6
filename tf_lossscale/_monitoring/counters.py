"""The counters of one optimizer in one graph, or in eager mode."""

from typing import Any, List, NamedTuple, Optional

from tf_lossscale._core.conditional import gate
from tf_lossscale._versions.base import tf, tf1, where
from tf_lossscale._versions.watching import RawVariable

__all__ = ["Counters", "Values", "own_scope"]

_SIZE = 6
_NONE = -1


def own_scope() -> Any:
    """Returns a name scope for operations that watch a step; other names do not change."""
    return tf1.name_scope("tf_lossscale_monitor/")


class Values(NamedTuple):
    """What the counters hold.

    Attributes:
      steps: number of steps.
      skipped: number of skipped steps.
      in_a_row: skipped steps in a row, up to the last step.
      longest: the most skipped steps in a row.
      bad: number of the first variable with a gradient that was not finite, in the last skipped
        step; None if there was none.
    """

    steps: int
    skipped: int
    in_a_row: int
    longest: int
    bad: Optional[int]


class Counters:
    """One variable with all counters, which a finite step only increments.

    It holds the number of steps, of skipped steps, of steps up to the last skipped one, of skipped
    steps in a row then, the most of them, and the number of a variable.

    Args:
      scale: called once, in the outermost graph; returns the loss scale to read along with the
        counters. Not called in eager mode.
    """

    def __init__(self, scale: Any) -> None:
        self._variable = RawVariable([_SIZE])
        self.scale: Any = None
        self._read: Any = None
        if not self._variable.eager:
            # Created now, because the graph may be finalized later.
            with tf.init_scope():
                self._read = self._variable.read()
                self.scale = scale()

    @property
    def eager(self) -> bool:
        """Whether they are read in eager mode, and not in a Session."""
        return self._variable.eager

    def prepare(self) -> List[Any]:
        """Returns what the operations of a step depend on, in a Session: the initialized variable.

        No one else initializes it, because no collection contains it.
        """
        self._variable.capture()
        if self._variable.eager:
            return []
        initialized = tf.raw_ops.VarIsInitializedOp(resource=self._variable.handle)
        return [gate(initialized, self._variable.initialize)]

    def count_step(self) -> Any:
        """Counts a step; returns the operation, None in eager mode."""
        return self._variable.assign_add([1] + [0] * (_SIZE - 1))

    def count_skip(self, bad: Any) -> Any:
        """Counts a skipped step, before `count_step`; returns the operation, None in eager mode.

        Args:
          bad: int64 tensor of shape `[]`, the number of a variable, or negative.
        """
        one = tf.constant(1, tf.int64)
        before = self._variable.read()
        steps, skipped, last, in_a_row, longest, _ = tf.unstack(before)
        in_a_row = where(tf.equal(last, steps), in_a_row + one, one)
        longest = where(in_a_row > longest, in_a_row, longest)
        after = tf.stack([steps, skipped + one, steps + one, in_a_row, longest, bad])
        # Not assigned: another thread may count a step meanwhile.
        return self._variable.assign_add(after - before)

    def values(self, session: Any = None) -> Values:
        """Reads the counters.

        Args:
          session: a Session; not used in eager mode.
        """
        if self.eager:
            numbers = self._variable.numpy()
        elif session.run(self._variable.is_initialized):
            numbers = session.run(self._read)
        else:
            numbers = [0] * _SIZE
        steps, skipped, last, in_a_row, longest, bad = [int(each) for each in numbers]
        return Values(
            steps,
            skipped,
            in_a_row if skipped and last == steps else 0,
            longest,
            bad if skipped and bad > _NONE else None,
        )
