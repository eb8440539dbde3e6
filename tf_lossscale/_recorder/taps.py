"""Connects the operations of an optimizer's step with its record.

`Tap.loss` and `Tap.step` run in place of the optimizer's methods, and call them. A step consists of
two calls to Python: one before it, with its numbers, and one that only runs when the inner
optimizer applies the gradients. In eager mode they are ordinary calls, in graphs operations.
"""

import contextlib
import weakref
from typing import Any, Dict, Iterator, List, MutableMapping, Optional, Sequence

from tf_lossscale._recorder.measuring import measured
from tf_lossscale._recorder.optimizers import (
    Variables,
    inner_optimizer,
    loss_scale_of,
    skips_after_all,
)
from tf_lossscale._recorder.record_file import RecordFile
from tf_lossscale._recorder.refusals import refuse_unsupported
from tf_lossscale._recorder.steps import Steps
from tf_lossscale._versions.base import tf, tf1
from tf_lossscale._versions.host_calls import (
    add_control_input,
    host_call,
    runs_stateful_operations,
    uncounted,
)
from tf_lossscale._versions.recorded_classes import Recorded

__all__ = ["Tap", "applying"]

_SCOPE = "tf_lossscale_recording/"
"""The slash makes it an absolute name, which does not change the names of other operations."""


class _Step:
    """A step that is being built or made: its number, and what it belongs to."""

    def __init__(self, steps: Steps, number: Any) -> None:
        self.steps = steps
        self.number = number

    def mark(self, result: Any) -> None:
        """Notes that the inner optimizer applies the step, when `result` is run."""
        if tf.executing_eagerly():
            self.steps.mark_applied(self.number)
            return

        def mark(number: Any) -> Any:
            return self.steps.mark_applied(number)

        with uncounted(), tf1.name_scope(_SCOPE):
            marked = host_call(mark, [self.number], "applied")
        operation = None if result is None else getattr(result, "op", result)
        if isinstance(operation, tf.Operation) and operation.graph is marked.graph:
            add_control_input(operation, marked.op)
        elif not runs_stateful_operations(marked.graph):
            self.steps.application_is_known = False


_applying: Dict[int, List[_Step]] = {}
"""By the `id` of the inner optimizer, the steps that are being built."""


def applying(inner: Any) -> Optional[_Step]:
    """Returns the step that `inner` is being called to apply, or None."""
    steps = _applying.get(id(inner))
    return steps[-1] if steps else None


class Tap:
    """Records the steps of one optimizer.

    Args:
      file: the record.
      kind: the class of the optimizer.
      optimizer: the optimizer.
      with_norm: whether to look at the gradients, for their norm and the first bad variable.
    """

    def __init__(self, file: RecordFile, kind: Recorded, optimizer: Any, with_norm: bool) -> None:
        self._file = file
        self._kind = kind
        self._optimizer = weakref.ref(optimizer)
        self._with_norm = with_norm
        self._eager_losses: List[Any] = []
        self._graph_losses: MutableMapping[Any, List[Any]] = weakref.WeakKeyDictionary()
        self._steps: Optional[Steps] = None

    def belongs_to(self, optimizer: Any) -> bool:
        """Returns whether this records the steps of `optimizer`."""
        return self._optimizer() is optimizer

    def note_loss(self, loss: Any) -> None:
        """Remembers the loss of the next step that is made, or built in the same graph."""
        losses = self._losses_here()
        losses.append(loss)
        del losses[2:]  # with two it is not certain which one belongs to the step

    def _losses_here(self) -> List[Any]:
        if tf.executing_eagerly():
            return self._eager_losses
        return self._graph_losses.setdefault(tf1.get_default_graph(), [])

    @contextlib.contextmanager
    def step(
        self, inner_is_tapped: bool, gradients: Sequence[Any], variables: Sequence[Any]
    ) -> Iterator[None]:
        """Records the step that is built or made within the block.

        Args:
          inner_is_tapped: whether the inner optimizer calls `applying`.
          gradients: the gradients of the step, and None.
          variables: their variables.
        """
        optimizer = self._optimizer()
        if all(each is None for each in gradients):
            yield  # the optimizer raises an error, or does nothing
            return
        refuse_unsupported(self._kind)
        inner = inner_optimizer(self._kind, optimizer)
        with uncounted(), tf1.name_scope(_SCOPE):
            number = self._begin(optimizer, gradients, variables)
        assert self._steps is not None
        if not inner_is_tapped:
            self._steps.application_is_known = False
        if skips_after_all(optimizer, inner):
            self._steps.may_skip_later = True
        _applying.setdefault(id(inner), []).append(_Step(self._steps, number))
        waits = [] if tf.executing_eagerly() else [number]
        try:
            with tf1.control_dependencies(waits):
                yield
        finally:
            _applying[id(inner)].pop()

    def _begin(self, optimizer: Any, gradients: Sequence[Any], variables: Sequence[Any]) -> Any:
        loss_scale = loss_scale_of(self._kind, optimizer)
        if self._steps is None:
            name = type(optimizer).__name__
            self._steps = Steps(self._file, name, loss_scale, Variables(variables))
        steps = self._steps
        values = measured(
            self._take_loss(),
            loss_scale,
            gradients if self._with_norm else None,
            self._kind.gradients_are_scaled,
        )
        if tf.executing_eagerly():
            return steps.begin(values.numpy())

        def begin(numbers: Any) -> Any:
            return steps.begin(numbers)

        return host_call(begin, [values], "step")

    def _take_loss(self) -> Optional[Any]:
        """Returns the loss of this step, or None if it is not certain which one that is."""
        here = self._losses_here()
        losses, here[:] = list(here), []
        if len(losses) != 1:
            return None
        loss = losses[0]
        if not isinstance(loss, (tf.Tensor, tf.Variable)):
            return None
        if loss.shape.rank != 0 or not loss.dtype.is_floating:
            return None
        if tf.executing_eagerly():
            return loss if hasattr(loss, "numpy") else None
        is_eager = hasattr(loss, "_numpy") or not hasattr(loss, "graph")
        if is_eager or loss.graph is not tf1.get_default_graph():
            return None
        return loss

    def close(self) -> None:
        """Adds the steps that are still open to the record."""
        if self._steps is not None:
            self._steps.close()
