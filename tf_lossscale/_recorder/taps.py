"""Connects the operations of an optimizer's step with its record.

`Tap.loss` and `Tap.step` run in place of the optimizer's methods, and call them. A step consists of
two calls to Python: one before it, with its numbers, and one that only runs when the inner
optimizer applies the gradients. In eager mode they are ordinary calls, in graphs operations. What
XLA compiles cannot call Python, and writes into a ring of variables instead.
"""

import contextlib
import threading
import weakref
from typing import (
    Any,
    Dict,
    Iterator,
    List,
    MutableMapping,
    MutableSet,
    Optional,
    Sequence,
    Tuple,
    TypeVar,
)

from tf_lossscale._core.replicas import replica_count
from tf_lossscale._recorder.measuring import measured
from tf_lossscale._recorder.optimizers import (
    Variables,
    inner_optimizer,
    loss_scale_of,
    skips_after_all,
)
from tf_lossscale._recorder.record_file import RecordFile
from tf_lossscale._recorder.refusals import (
    is_outside_replicas,
    refuse_outside_replicas,
    refuse_unsupported,
)
from tf_lossscale._recorder.replicas import (
    Contribution,
    Gradients,
    here,
    loss_factor,
    sums_replicas,
    together,
)
from tf_lossscale._recorder.rings import Rings
from tf_lossscale._recorder.steps import Steps, steps_of
from tf_lossscale._recorder.usable_losses import is_usable
from tf_lossscale._versions.base import tf, tf1
from tf_lossscale._versions.graphs import in_xla_context
from tf_lossscale._versions.recorded_classes import Recorded
from tf_lossscale._versions.watching import (
    add_control_input,
    host_call,
    runs_stateful_operations,
    without_changing_seeds,
)

__all__ = ["Tap", "applying"]

_Loss = Tuple[Any, float]
"""The loss of a replica, and what the sum over all replicas is multiplied with."""

_Value = TypeVar("_Value")
_Weak = MutableMapping[Any, _Value]

_SCOPE = "tf_lossscale_recording/"
"""The slash makes it an absolute name, which does not change the names of other operations."""


class _Step:
    """A step that is being built or made: its number, and what it belongs to."""

    def __init__(self, steps: Steps, number: Any, is_compiled: bool) -> None:
        self.steps = steps
        self.number = number
        self.is_compiled = is_compiled
        self.thread = threading.current_thread()

    def mark(self, result: Any) -> None:
        """Notes that the inner optimizer applies the step, when `result` is run."""
        if tf.executing_eagerly():
            self.steps.mark_applied(self.number)
            return

        if self.is_compiled:
            with tf1.name_scope(_SCOPE):
                self.steps.ring()[0].mark_applied(self.number)
            return

        def mark(number: Any) -> Any:
            return self.steps.mark_applied(number)

        with without_changing_seeds(), tf1.name_scope(_SCOPE):
            marked = host_call(mark, [self.number], "applied")
        operation = None if result is None else getattr(result, "op", result)
        if isinstance(operation, tf.Operation) and operation.graph is marked.graph:
            add_control_input(operation, marked.op)
        elif not runs_stateful_operations(marked.graph):
            self.steps.application_is_known = False


_applying: Dict[int, List[_Step]] = {}
"""By the `id` of the inner optimizer, the steps that are being built."""


def applying(inner: Any) -> Optional[_Step]:
    """Returns the step that `inner` is being called to apply, or None.

    It is that of this thread. A strategy calls `inner` in the threads of its replicas.
    """
    steps = list(_applying.get(id(inner), ()))
    mine = [each for each in steps if each.thread is threading.current_thread()]
    found = mine or steps
    return found[-1] if found else None


class Tap:
    """Records the steps of one optimizer.

    Args:
      file: the record.
      kind: the class of the optimizer.
      optimizer: the optimizer.
      with_norm: whether to look at the gradients, for their norm and the first bad variable.
      rings: reads the steps that XLA compiles.
      graphs: the graphs with recorded steps, to which those of this optimizer are added.
    """

    def __init__(
        self,
        file: RecordFile,
        kind: Recorded,
        optimizer: Any,
        with_norm: bool,
        rings: Rings,
        graphs: MutableSet[Any],
    ) -> None:
        self._file = file
        self._rings = rings
        self._graphs = graphs
        self._kind = kind
        self._optimizer = weakref.ref(optimizer)
        self._with_norm = with_norm
        self._losses: _Weak[_Weak[List[_Loss]]] = weakref.WeakKeyDictionary()
        """By graph, then by replica; this object stands for eager mode, and for one replica."""
        self._steps: Optional[Steps] = None
        self._lock = threading.Lock()

    def belongs_to(self, optimizer: Any) -> bool:
        """Returns whether this records the steps of `optimizer`."""
        return self._optimizer() is optimizer

    def note_loss(self, loss: Any) -> None:
        """Remembers the loss of the next step that is made, or built in the same graph."""
        losses = self._losses_here()
        losses.append((loss, loss_factor(self._kind)))
        del losses[2:]  # with two it is not certain which one belongs to the step

    def _losses_here(self) -> List[_Loss]:
        graph, replica = here()
        losses = self._losses.setdefault(graph or self, weakref.WeakKeyDictionary())
        return losses.setdefault(replica or self, [])

    @contextlib.contextmanager
    def step(
        self,
        inner_is_tapped: bool,
        gradients: Sequence[Any],
        variables: Sequence[Any],
        are_sums: bool,
        sums_are_known: bool,
    ) -> Iterator[None]:
        """Records the step that is built or made within the block.

        Args:
          inner_is_tapped: whether the inner optimizer calls `applying`.
          gradients: the gradients of the step, and None.
          variables: their variables.
          are_sums: whether the caller has already combined the gradients of all replicas.
          sums_are_known: whether it is known that they were added up.
        """
        optimizer = self._optimizer()
        if all(each is None for each in gradients):
            yield  # the optimizer raises an error, or does nothing
            return
        refuse_unsupported(self._kind)
        if is_outside_replicas():
            yield  # the optimizer raises an error
            refuse_outside_replicas()
            return
        inner = inner_optimizer(self._kind, optimizer)
        loss, factor = self._take_loss(gradients)
        is_sum = sums_replicas(self._kind, inner)
        loss_is_sum = replica_count() == 1 or (sums_are_known if are_sums else is_sum)
        sums = Gradients if self._with_norm else None

        def begin(replicas: Sequence[Contribution]) -> Any:
            # Here, because the replicas take turns: between two operations of this one, those of
            # others may be created.
            with without_changing_seeds(), tf1.name_scope(_SCOPE):
                known = None if sums is None else sums.of(replicas, are_sums, is_sum)
                known_loss = _sum(replicas, factor) if loss_is_sum else None
                return self._begin(optimizer, known_loss, known, variables)

        number = together(begin, Contribution(loss, gradients))
        assert self._steps is not None
        if not inner_is_tapped:
            self._steps.application_is_known = False
        if skips_after_all(optimizer, inner):
            self._steps.may_skip_later = True
        step = _Step(self._steps, number, in_xla_context())
        _applying.setdefault(id(inner), []).append(step)
        waits = [] if tf.executing_eagerly() else [number]
        try:
            with tf1.control_dependencies(waits):
                yield
        except BaseException:
            if tf.executing_eagerly():
                self._steps.withdraw(number)
            raise
        finally:
            _applying[id(inner)].remove(step)

    def _begin(
        self,
        optimizer: Any,
        loss: Optional[Any],
        gradients: Optional[Gradients],
        variables: Sequence[Any],
    ) -> Any:
        loss_scale = loss_scale_of(self._kind, optimizer)
        with self._lock:
            if self._steps is None:
                self._steps = steps_of(optimizer)
            if self._steps is None:
                self._steps = Steps(self._file, optimizer, loss_scale, Variables(variables))
                self._steps.replicas = replica_count()
        steps = self._steps
        steps.note_weights()
        values = measured(loss, loss_scale, gradients, self._kind.gradients_are_scaled)
        if tf.executing_eagerly():
            return steps.begin(values.numpy())
        if in_xla_context():
            ring, is_new = steps.ring()
            if is_new:
                self._rings.add(ring)
            return ring.begin(values)

        with tf.init_scope():
            if not tf.executing_eagerly():
                self._graphs.add(tf1.get_default_graph())

        def begin(numbers: Any) -> Any:
            return steps.begin(numbers)

        return host_call(begin, [values], "step")

    def _take_loss(self, gradients: Sequence[Any]) -> _Loss:
        """Returns the loss of this step, or None if it is not certain which one that is."""
        here = self._losses_here()
        losses, here[:] = list(here), []
        if len(losses) != 1:
            return None, 1.0
        loss, factor = losses[0]
        return (loss, factor) if is_usable(loss, gradients) else (None, 1.0)

    def close(self) -> None:
        """Adds the steps that are still open to the record."""
        if self._steps is not None:
            self._steps.close()


def _sum(replicas: Sequence[Contribution], factor: float) -> Optional[Any]:
    """Returns the loss of a step, of which the gradients of all replicas are parts."""
    losses = [each.loss for each in replicas]
    if any(each is None for each in losses):
        return None
    if len(losses) == 1:
        return losses[0]
    return factor * tf.add_n([tf.cast(each, tf.float64) for each in losses])
