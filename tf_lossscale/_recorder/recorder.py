"""Records the steps that are reported to it, by our classes and by `originals`.

The operations that a step gets are in a scope of their own, have no random seeds, and use variables
that nothing else knows, so that the run remains the same. What cannot be recorded is refused with a
`RecordingError`, and not recorded wrongly.
"""

import dataclasses
import weakref
from typing import List, MutableMapping, MutableSet, NoReturn, Optional, Tuple

import numpy as np

from tf_lossscale._core.watching import Step, WatchedStep, Watcher, built_unwatched, watch_all
from tf_lossscale._recorder.disturbing import Disturber
from tf_lossscale._recorder.measuring import Losses, Measured, measured, row_of
from tf_lossscale._recorder.optimizers import STEPS, Steps, inner_optimizer, loss_scale_of
from tf_lossscale._recorder.transport import Reader, Ring
from tf_lossscale._records.destination import RecordingError
from tf_lossscale._records.writing import RecordFile
from tf_lossscale._replicas.agreement import replica_count
from tf_lossscale._replicas.shards import has_several_workers
from tf_lossscale._types import Graph, Loss, Operation, Optimizer, Session, Strategy, Tensor
from tf_lossscale._v1.step_gradients import leaves_sum_to_tensorflow
from tf_lossscale._versions import keras_optimizers
from tf_lossscale._versions.base import tf, tf1
from tf_lossscale._versions.graphs import in_xla_context, outermost_graph
from tf_lossscale._versions.keras import KerasKind, keras_family
from tf_lossscale._versions.optimizer_v2 import has_own_aggregation
from tf_lossscale._versions.replicas import in_tpu_replication
from tf_lossscale._versions.settings import rate_of
from tf_lossscale._versions.unnoticed import unnoticed

# By the class of `strategy.extended`, whose name is the same for the API of both versions.
_RECORDED_STRATEGIES = ("OneDeviceExtended", "MirroredExtended", "CollectiveAllReduceExtended")

SCOPE = "tf_lossscale_recording/"


class Recorder(Watcher):
    """Records the steps of all our optimizers, until `close`.

    Attributes:
      saw_steps: whether a loss-scale optimizer has made or built a step.
    """

    saw_steps = False

    def __init__(self, file: RecordFile, with_norm: bool) -> None:
        self._file = file
        self.disturber = None if file.disturbed is None else Disturber(file.disturbed)
        self._with_norm = with_norm
        self._losses: MutableMapping[Optimizer, Losses] = weakref.WeakKeyDictionary()
        self._scaling: MutableSet[Optimizer] = weakref.WeakSet()  # through which a loss was scaled
        disturb = None if self.disturber is None else self.disturber.before_run
        self.reader = Reader(file, self._before_run, disturb)
        for steps in list(Steps.known):
            steps.record_to(file, self.reader)
        self._earlier = weakref.WeakKeyDictionary(
            {owner: (cls, _state_of(owner)) for owner, cls in built_unwatched().items()}
        )
        self._graphs: MutableSet[Graph] = weakref.WeakSet()
        self._unwatch = watch_all(self)

    def loss(self, optimizer: Optimizer, loss: Loss) -> None:
        self._scaling.add(optimizer)
        if self.disturber is not None:
            self.disturber.before_loss(optimizer)
        self._losses.setdefault(optimizer, Losses()).note(optimizer, loss)

    def begin(self, step: Step) -> Optional[WatchedStep]:
        if not step.variables:
            return None
        self.refuse_unsupported()
        with unnoticed(SCOPE):
            steps, numbers = self.numbers(step)
            if tf.executing_eagerly():
                return EagerStep(steps, numbers, self.disturber)
            ring = steps.ring(in_xla_context())
            return _StepInGraph(ring, numbers, step.is_unconditional)

    def numbers(self, step: Step) -> Tuple[Steps, Measured]:
        """Returns the steps that one belongs to, and its numbers."""
        self.saw_steps = True
        optimizer = step.optimizer
        if self.disturber is not None:
            self.disturber.begin_step(optimizer, step.variables)
        losses = self._losses.setdefault(optimizer, Losses())
        loss = losses.take(step, sums_replicas(optimizer))
        state = loss_scale_of(optimizer).state
        with self._file.guard:
            steps = STEPS.get(optimizer)
            if steps is None:
                steps = Steps(self._file, self.reader, optimizer, step.variables)
            steps.note_beginning(optimizer, step, state[0], self._with_norm)
        function = row_of if tf.executing_eagerly() else measured
        rate = rate_of(inner_optimizer(optimizer))
        return steps, function(loss, state, rate, step if self._with_norm else None)

    def _before_run(self, session: Session, has_steps: bool) -> None:
        target = tf.compat.as_text(session.sess_str or "") if has_steps else ""
        if target:
            what = f"The steps of a Session on {target}"
            reason = ", because the record is written by this process"
            self.refuse(what, "in a Session without a target", reason)
        if session.graph in self._earlier:
            self._graphs.add(session.graph)

    def refuse_unsupported(self, is_keras_3: bool = False) -> None:
        """Raises RecordingError for a step that would be recorded wrongly, or not at all."""
        if is_keras_3 and keras_optimizers.keras_3_backend() != "tensorflow":
            self.refuse("Keras 3 can be recorded with the TensorFlow backend only.")
        if in_tpu_replication():
            self.refuse("A step on a TPU", "on a CPU or GPU")
        if in_xla_context() and outermost_graph() is not None:
            advice = "with jit_compile=False, or without tf.xla.experimental.compile"
            self.refuse("A step that XLA compiles in the graph of a Session", advice)
        if in_xla_context() and replica_count() > 1:
            advice = "with jit_compile=False"
            self.refuse("A step on several replicas that XLA compiles", advice)
        if tf.distribute.has_strategy():
            self._refuse_strategy(tf.distribute.get_strategy())
        if not tf.executing_eagerly() and tf1.get_default_graph().finalized:
            self.refuse(
                "The graph is finalized: recording must begin before the optimizer makes its step."
            )

    def _refuse_strategy(self, strategy: Strategy) -> None:
        classes = {base.__name__ for base in type(strategy.extended).__mro__}
        advice = "on one machine, without a strategy or under a MirroredStrategy"
        if classes.isdisjoint(_RECORDED_STRATEGIES):
            self.refuse(f"A step under {type(strategy).__name__}", advice)
        if has_several_workers(strategy):
            reason = ", because a process only has the losses of its own replicas"
            self.refuse("A step on several workers", advice, reason)

    def refuse(self, what: str, advice: str = "", reason: str = "") -> NoReturn:
        """Raises the error; without `advice`, `what` is the whole message."""
        self._file.may_be_empty = True
        verb, option = self._file.verb, self._file.option
        how = f"Run the program without {option}, or {verb} it {advice}."
        raise RecordingError(f"{what} cannot be {verb}ed{reason}. {how}" if advice else what)

    def close(self) -> None:
        """Adds the last steps to the record, and what is missing in it to its complaints."""
        if self.disturber is not None:
            self.disturber.close()
        self._unwatch()
        self.reader.close()
        self._losses.clear()  # a loss has a graph
        for optimizer, recorded in list(STEPS.items()):
            if optimizer not in self._scaling:
                recorded.note_unscaled_loss(self._file)
        for owner, (cls, before) in list(self._earlier.items()):
            steps = STEPS.get(owner)
            if steps is not None and steps.count:
                continue
            now = _state_of(owner)
            if owner in self._graphs or (before is not None and now not in (before, None)):
                self._file.complaints.append(
                    f"A {cls} was created before recording began, and its steps, if it made any, "
                    "are not in the record: the graph or function that makes them was built "
                    "before. Start to record before the steps are built."
                )


@dataclasses.dataclass
class EagerStep(WatchedStep):
    """A step in eager mode, whose numbers are known before it and recorded after it."""

    _steps: Steps
    _numbers: Optional[Measured]
    _disturber: Optional[Disturber]

    def finished(self, operation: Optional[Operation], applied: Tensor) -> None:
        numbers, self._numbers = self._numbers, None  # some steps end in each replica
        if numbers is not None:
            self._steps.add(numbers, bool(applied))
        self._end()

    def failed(self) -> None:
        self._steps.note_error()
        self._end()

    def _end(self) -> None:
        if self._disturber is not None:
            self._disturber.end_step()


class _StepInGraph(WatchedStep):
    """A step of our classes in a graph or function, whose ring is written after it."""

    def __init__(self, ring: Ring, numbers: Measured, is_unconditional: bool) -> None:
        self._ring = ring
        self._numbers = numbers
        self._is_written = is_unconditional  # what `finished` returns would not run
        self.before = [ring.add(numbers, True) if is_unconditional else numbers.row]

    def finished(self, operation: Optional[Operation], applied: Tensor) -> Optional[Operation]:
        if self._is_written:
            return None
        after = [] if operation is None else [operation]
        with unnoticed(SCOPE), tf1.control_dependencies(after):
            return self._ring.add(self._numbers, applied)


def sums_replicas(optimizer: Optimizer) -> bool:
    """Returns whether a step applies the plain sum of the gradients of all replicas."""
    inner = inner_optimizer(optimizer)
    if isinstance(optimizer, tf1.train.Optimizer):
        return leaves_sum_to_tensorflow(inner)
    family = keras_family(inner)
    if family is None:
        return False
    if family.kind is KerasKind.LEGACY:
        return not has_own_aggregation(family, inner)
    methods = ("aggregate_gradients", "_all_reduce_sum_gradients")
    return not keras_optimizers.overrides(family, inner, *methods)


def _state_of(optimizer: Optimizer) -> Optional[List[float]]:
    """Returns numbers of which each step in eager mode changes at least one; None if unknown."""
    with tf.init_scope():
        if isinstance(optimizer, tf.Graph) or not tf.executing_eagerly():
            return None
        try:
            iterations = getattr(inner_optimizer(optimizer), "__dict__", {}).get("_iterations")
            values = [*loss_scale_of(optimizer).state, iterations]
            return [float(np.asarray(value.numpy())) for value in values if hasattr(value, "numpy")]
        except Exception:  # a variable that is not initialized, or of a graph
            return None
