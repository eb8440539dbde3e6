"""The steps of one optimizer, from their numbers to the lines of the record."""

import dataclasses
import weakref
from typing import Any, Dict, List, MutableMapping, Optional, Sequence, Set, Tuple

from tf_lossscale._core.replicas import replica_count
from tf_lossscale._core.steps import variable_name
from tf_lossscale._recorder.measuring import Row
from tf_lossscale._recorder.optimizers import LossScale, hash_of, run_header, shape_of
from tf_lossscale._recorder.record_file import RecordFile
from tf_lossscale._recorder.transport import Reader, Ring
from tf_lossscale._versions.graphs import outermost_graph

__all__ = ["Steps", "known_steps", "steps_of"]


class Steps:
    """Counts the steps of one optimizer, and adds them to the record in order.

    Attributes:
      cls: the name of the optimizer's class.
      count: the number of steps in this record, recorded or not.
      application_is_known: whether the inner optimizer reports that it applies a step.
    """

    def __init__(
        self,
        file: RecordFile,
        reader: Reader,
        optimizer: Any,
        loss_scale: LossScale,
        variables: Sequence[Any],
    ) -> None:
        self.cls = type(optimizer).__name__
        self.application_is_known = True
        self._replicas = replica_count()
        self._parameters = loss_scale.parameters
        self._tests_gradients = loss_scale.tests_gradients
        self._names = [variable_name(each) for each in variables]
        self._shapes = [shape_of(each) for each in variables]
        self._xla: Optional[bool] = None
        self._rings: Dict[Any, Ring] = {}
        """By the graph of a Session; None stands for eager mode."""
        self._initial_weights: Optional[str] = None
        self._begin_record(file, reader)
        self.note_weights(variables)
        _known.add(self)
        _of_optimizer[optimizer] = self

    def _begin_record(self, file: RecordFile, reader: Reader) -> None:
        self._file = file
        self._reader = reader
        self._initial_weights = None
        self._number: Optional[int] = None
        self.count = 0
        self._last: Tuple[int, Optional[Row], bool] = (-1, None, False)
        self._after_errors: Set[int] = set()
        self._is_broken = False

    def record_to(self, file: RecordFile, reader: Reader) -> None:
        """Begins another record, of steps that were built for an earlier one, too."""
        with file.guard:
            self._begin_record(file, reader)
            for ring in self._rings.values():
                ring.restart()
                reader.add(ring)

    def note_weights(self, variables: Sequence[Any]) -> None:
        """Remembers the weights before the first step; they are unknown if this is not called."""
        if self._number is None and self.count == 0:
            self._initial_weights = hash_of(variables)

    def ring(self, is_compiled: bool) -> Ring:
        """Returns the ring for the steps of the current graph."""
        if is_compiled:
            self._xla = True
        key = outermost_graph()
        ring = self._rings.get(key)
        if ring is None:
            ring = self._rings[key] = Ring(self._receive, self._skip)
            self._reader.add(ring)
        return ring

    def add(self, row: Row, applied: bool) -> None:
        """Adds a step that was made in eager mode."""
        with self._file.guard:
            ring = self._rings.get(None)
            if ring is not None:
                ring.flush(None, is_last=True)  # its steps come before this one
            self._receive(row, applied)

    def note_error(self) -> None:
        """Notes that a step ended with an error; it may have updated the scale."""
        self._after_errors.add(self.count)

    def _skip(self, count: int) -> None:
        """Leaves out some steps; the next one shows that they are missing."""
        self.count += count

    def _receive(self, row: Row, applied: bool) -> None:
        if self._file.is_closed:
            return
        step = self.count
        self.count += 1
        if self._number is None:
            self._number = self._describe(row, step)
        self._look_for_break(step, row, applied)
        is_certain = self.application_is_known and self._tests_gradients
        finite = applied if is_certain else row.finite
        # Keras 3's own class applies what is finite in its first replica only.
        is_finite = is_certain and applied and self._replicas == 1
        self._file.add_step(
            self._number,
            step,
            loss=row.loss,
            scale=row.scale,
            finite=finite,
            applied=applied if self.application_is_known else None,
            norm=row.norm if finite is not False else None,
            bad=None if is_finite else row.bad,
        )

    def _describe(self, first: Row, step: int) -> int:
        scale = dataclasses.replace(self._parameters)
        if step == 0:
            scale.initial_scale = first.scale
            scale.good_steps = first.good_steps or 0
            scale.bad_steps = first.bad_steps or 0
        return self._file.add_optimizer(
            run_header(self._replicas, self._xla),
            cls=self.cls,
            scale=scale,
            names=self._names,
            shapes=self._shapes,
            initial_weights=self._initial_weights,
        )

    def _look_for_break(self, step: int, row: Row, applied: bool) -> None:
        (number, last, was_applied), self._last = self._last, (step, row, applied)
        if self._is_broken or last is None or number != step - 1 or step in self._after_errors:
            return
        if not (self.application_is_known and self._tests_gradients):
            return
        if not last.may_precede(row, was_applied, self._parameters.growth_steps):
            self._is_broken = True
            self._file.complaints.append(
                f"The loss scale of {self.cls} or its counter changed between the recorded "
                f"steps {number} and {step} as no single step changes it. Either a step was made "
                "by a graph or function that was built before recording began, and is missing, or "
                "the program set or restored the scale, or trained in several threads at once."
            )


_known: "weakref.WeakSet[Steps]" = weakref.WeakSet()
"""Those of all recordings. The ring of a graph keeps them as long as the graph exists."""

_of_optimizer: "MutableMapping[Any, Steps]" = weakref.WeakKeyDictionary()


def known_steps() -> List[Steps]:
    """Returns the steps of all recordings, as long as something can still make them."""
    return list(_known)


def steps_of(optimizer: Any) -> Optional[Steps]:
    """Returns the steps of an optimizer that was recorded before, or None."""
    return _of_optimizer.get(optimizer)
