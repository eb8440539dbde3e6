"""Counts the steps of one optimizer where they are built, and the skipped ones in their branch."""

import weakref
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from tf_lossscale._core.conditional import gate
from tf_lossscale._core.finite import bad_gradients
from tf_lossscale._core.steps import (
    Step,
    WatchedStep,
    Watcher,
    unnoticed,
    variable_name,
)
from tf_lossscale._monitoring.optimizers import current_scale
from tf_lossscale._versions.base import tf, tf1, where
from tf_lossscale._versions.graphs import in_xla_context, outermost_graph
from tf_lossscale._versions.watching import RawVariable

__all__ = ["Counters", "StepCounter", "Values"]

_SCOPE = "tf_lossscale_monitor/"
_SIZE = 7
_NONE = -1


class Values(NamedTuple):
    """What the counters hold.

    Attributes:
      steps: number of steps.
      skipped: number of skipped steps.
      in_a_row: skipped steps in a row, up to the last step.
      longest: the most skipped steps in a row.
      bad: number of the first variable with a gradient that was not finite, in the last skipped
        step; None if there was none.
      all_bad: the number of variables of that step, if none of several had a finite gradient;
        otherwise 0.
    """

    steps: int
    skipped: int
    in_a_row: int
    longest: int
    bad: Optional[int]
    all_bad: int


class Counters:
    """One variable with all counters of a graph or of eager mode.

    A finite step only increments it. It holds the number of steps, of skipped steps, of steps up to
    the last skipped one, of skipped steps in a row then, the most of them, and the last two of
    `Values`.

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

    def count_skip(self, bad: Any, all_bad: Any) -> Any:
        """Counts a skipped step, before `count_step`; returns the operation, None in eager mode.

        Args:
          bad: int64 tensor of shape `[]`, the number of a variable, or negative.
          all_bad: int64 tensor of shape `[]`, see `Values`.
        """
        one = tf.constant(1, tf.int64)
        before = self._variable.read()
        steps, skipped, last, in_a_row, longest, _, _ = tf.unstack(before)
        in_a_row = where(tf.equal(last, steps), in_a_row + one, one)
        longest = where(in_a_row > longest, in_a_row, longest)
        after = tf.stack([steps, skipped + one, steps + one, in_a_row, longest, bad, all_bad])
        # Not assigned: another thread may count a step meanwhile.
        return self._variable.assign_add(after - before)

    def values(self, session: Any = None) -> Values:
        """Reads the counters."""
        if self.eager:
            numbers = self._variable.numpy()
        elif session.run(self._variable.is_initialized):
            numbers = session.run(self._read)
        else:
            numbers = [0] * _SIZE
        steps, skipped, last, in_a_row, longest, bad, all_bad = [int(each) for each in numbers]
        return Values(
            steps,
            skipped,
            in_a_row if skipped and last == steps else 0,
            longest,
            bad if skipped and bad > _NONE else None,
            all_bad,
        )


class StepCounter(Watcher):
    """Has counters for eager mode, and for each graph of a Session."""

    def __init__(self, optimizer: Any) -> None:
        self._optimizer = weakref.ref(optimizer)
        self._counters: Dict[Any, Counters] = {}
        self._names: List[str] = []
        self._first: Dict[Tuple[str, ...], int] = {}

    def begin(self, step: Step) -> Optional[WatchedStep]:
        """Begins a step: `Watcher`."""
        if step.is_unconditional:
            return None
        graph = outermost_graph()
        counters = self._counters.get(graph)
        with unnoticed(_SCOPE):
            if counters is None:
                counters = self._counters[graph] = Counters(self._scale)
            if not counters.eager and in_xla_context():
                raise NotImplementedError(
                    "tf_lossscale.monitoring.Monitor cannot count the steps that XLA compiles in a "
                    "Session. Remove the Monitor, or compile a tf.function in eager mode."
                )
            ready = counters.prepare()
        return _CountedStep(self, counters, step, ready)

    def number_of(self, variables: Sequence[Any]) -> int:
        """Returns the number of the first of `variables`; those of the others follow."""
        names = tuple(variable_name(each) for each in variables)
        if names not in self._first:
            self._first[names] = len(self._names)
            self._names.extend(names)
        return self._first[names]

    def name(self, number: int) -> str:
        """Returns the name of a variable by its number."""
        return self._names[number]

    def counters(self, graph: Any) -> Optional[Counters]:
        """Returns the counters of a graph (None: of eager mode), or None before its first step."""
        return self._counters.get(graph)

    def graphs(self) -> List[Any]:
        """Returns the graphs with steps; None stands for eager mode."""
        return list(self._counters)

    def _scale(self) -> Any:
        return current_scale(self._optimizer())


class _CountedStep(WatchedStep):
    def __init__(
        self,
        watcher: StepCounter,
        counters: Counters,
        step: Step,
        ready: Sequence[Any],
    ) -> None:
        self._watcher = watcher
        self._counters = counters
        self._step = step
        self._ready = ready

    @property
    def skipped(self) -> Callable[[], Any]:
        return self._count_skip

    def _count_skip(self) -> Any:
        first = self._watcher.number_of(self._step.variables)
        with unnoticed(_SCOPE), tf1.control_dependencies(self._ready):
            number = len(self._step.tested)
            count, zero, none = [tf.constant(each, tf.int64) for each in (number, 0, _NONE)]
            bad = bad_gradients(self._step.tested)
            position = where(tf.less(bad.first, count), bad.first + first, none)
            all_bad = where(bad.are_all, count, zero) if number > 1 else zero
            return self._counters.count_skip(position, all_bad)

    def finished(self, operation: Any, applied: Any) -> Any:
        in_graph = operation is not None and not tf.executing_eagerly()
        after = [operation] if in_graph else []
        with unnoticed(_SCOPE), tf1.control_dependencies([*self._ready, *after]):
            return self._counters.count_step()
