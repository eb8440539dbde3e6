"""The steps of a loss-scale optimizer of TensorFlow, Keras or the shim, and its record.

The classes are recognized by their attributes, which our classes have in common with TensorFlow's.
"""

import contextlib
import dataclasses
import platform
import secrets
import sys
import weakref
from typing import (
    Any,
    Callable,
    ClassVar,
    Iterable,
    List,
    MutableMapping,
    NamedTuple,
    Optional,
    Sequence,
    Set,
    Tuple,
)

from tf_lossscale._core.minimum import minimum_of
from tf_lossscale._core.watching import Step
from tf_lossscale._install.install import changes
from tf_lossscale._recorder.beginning import computed_in, hash_of, read_eagerly, state_of_slots
from tf_lossscale._recorder.measuring import Measured, Row, width
from tf_lossscale._recorder.transport import Reader, Ring
from tf_lossscale._records.format import OptimizerRecord, RunHeader, ScaleParameters
from tf_lossscale._records.writing import RecordFile
from tf_lossscale._replicas.agreement import replica_count
from tf_lossscale._types import Array, Class, Graph, Optimizer, Tensor, Variable
from tf_lossscale._versions.base import tf
from tf_lossscale._versions.graphs import outermost_graph
from tf_lossscale._versions.settings import settings_of, slots_of
from tf_lossscale._versions.variables import variable_name


class LossScale(NamedTuple):
    """The loss scale of an optimizer."""

    parameters: ScaleParameters  # without what the first step shows
    # The current scale, a tensor, variable or number, and the variables that count finite and
    # non-finite steps, or None.
    state: Tuple[Any, Any, Any]
    tests_gradients: bool  # whether exactly the steps with finite gradients are applied


def inner_optimizer(optimizer: Optimizer) -> Optimizer:
    if hasattr(optimizer, "_loss_scale_manager"):
        return optimizer._opt
    if hasattr(type(optimizer), "inner_optimizer") or hasattr(optimizer, "step_counter"):
        return optimizer.inner_optimizer
    return optimizer._optimizer


def loss_scale_of(optimizer: Optimizer) -> LossScale:
    if hasattr(optimizer, "_loss_scale_manager"):
        return _of_manager(optimizer._loss_scale_manager)
    if hasattr(type(optimizer), "dynamic_counter"):
        return _of_keras_2(optimizer)
    if hasattr(optimizer, "step_counter"):
        rule = ScaleParameters("keras3", None, int(optimizer.dynamic_growth_steps))
        state = optimizer.dynamic_scale.value, optimizer.step_counter.value, None
        return LossScale(rule, state, True)
    return _of_v1(optimizer._loss_scale)  # or the Keras class up to TensorFlow 2.3


_SCALES = (
    ("_loss_scale_manager", "_loss_scale"),
    ("_loss_scale", "current_loss_scale"),
    ("_loss_scale", "_current_loss_scale"),
    ("dynamic_scale",),
)
"""Where the classes have the variable of the loss scale."""


def scale_variable_of(optimizer: Optimizer) -> Optional[Variable]:
    """Returns the variable of the loss scale; None if it is fixed, or not there yet."""
    for path in _SCALES:
        value = optimizer
        for name in path:
            value = getattr(value, name, None)
        if hasattr(value, "assign") and hasattr(value, "dtype"):
            return value
    return None


def is_unbuilt_keras_3(optimizer: Optimizer) -> bool:
    """Returns whether this is Keras 3's own class, which has no variables yet."""
    is_keras_2 = hasattr(type(optimizer), "dynamic_counter")
    return hasattr(optimizer, "scale_loss") and not is_keras_2 and not optimizer.built


def _of_manager(manager: Any) -> LossScale:
    """Describes the loss scale of `tf.contrib`; the rule of a user's own manager is unknown."""
    name = _name_of_class(manager)
    rule = ScaleParameters("fixed" if name == "FixedLossScaleManager" else "unknown")
    good = bad = None
    if name == "ExponentialUpdateLossScaleManager":
        good, bad = manager._num_good_steps, manager._num_bad_steps
        every, factor = manager._incr_every_n_steps, manager._incr_ratio
        bad_every, bad_factor = manager._decr_every_n_nan_or_inf, manager._decr_ratio
        with contextlib.suppress(TypeError, ValueError):  # one is a tensor of a graph
            numbers = int(every), float(factor), int(bad_every), float(bad_factor)
            minimum = minimum_of(manager)
            rule = ScaleParameters("exponential", None, *numbers, minimum_scale=minimum)
    return LossScale(rule, (manager.get_loss_scale(), good, bad), tests_gradients=True)


def _of_v1(loss_scale: Class) -> LossScale:
    name = _name_of_class(loss_scale)
    if name == "DynamicLossScale":
        rule = _dynamic(loss_scale, loss_scale.increment_period)
        return LossScale(rule, (loss_scale(), loss_scale._num_good_steps, None), True)
    rule = ScaleParameters("fixed" if name == "FixedLossScale" else "unknown")
    return LossScale(rule, (loss_scale(), None, None), False)


def _of_keras_2(optimizer: Optimizer) -> LossScale:
    scale, counter = tf.convert_to_tensor(optimizer.loss_scale), optimizer.dynamic_counter
    if counter is None:  # it is fixed, or of a user's own class
        rule = ScaleParameters("unknown" if optimizer.dynamic else "fixed")
        return LossScale(rule, (scale, None, None), False)
    rule = _dynamic(optimizer._loss_scale, optimizer.dynamic_growth_steps)
    return LossScale(rule, (scale, counter, None), True)


def _dynamic(loss_scale: Class, growth_steps: float) -> ScaleParameters:
    factor, minimum = float(loss_scale.multiplier), minimum_of(loss_scale)
    numbers = int(growth_steps), factor, 1, 1 / factor
    return ScaleParameters("dynamic", None, *numbers, minimum_scale=minimum)


def _name_of_class(loss_scale: Class) -> Optional[str]:
    """Returns None for a user's own class, which may update the scale in another way."""
    package = type(loss_scale).__module__.split(".")[0]
    is_known = package in ("tensorflow", "tensorflow_core", "tf_lossscale")
    return type(loss_scale).__name__ if is_known else None


def _run_header(replicas: int, xla: Optional[bool]) -> RunHeader:
    """Returns what a record shows of its run: versions, devices, and what the command replaced."""
    devices = {device.device_type for device in tf.config.experimental.list_physical_devices()}
    keras = sys.modules.get("tf_keras") or sys.modules.get("keras") or getattr(tf, "keras", None)
    version = getattr(keras, "__version__", None)
    changed = changes()
    return RunHeader(
        tensorflow=tf.__version__,
        keras=None if version is None else str(version),
        python=platform.python_version(),
        devices=sorted(kind for kind in devices if not kind.startswith("XLA_")),
        replicas=replicas,
        xla=xla,
        id=secrets.token_hex(8),
        supplied=changed.supplied or None,
        replaced=changed.replaced or None,
    )


class Steps:
    """Counts the steps of one optimizer, recorded or not, and adds them to the record in order."""

    known: "ClassVar[weakref.WeakSet[Steps]]" = weakref.WeakSet()
    """Those of all recordings. The ring of a graph keeps them as long as the graph exists."""

    def __init__(
        self, file: RecordFile, reader: Reader, optimizer: Optimizer, variables: Iterable[Variable]
    ) -> None:
        loss_scale = loss_scale_of(optimizer)
        self.application_is_known = True  # whether the inner optimizer reports each step
        self._replicas = replica_count()
        self._tests_gradients = loss_scale.tests_gradients
        shapes = [tf.TensorShape(variable.shape).as_list() for variable in variables]
        self._description = OptimizerRecord(
            cls=type(optimizer).__name__,
            scale=loss_scale.parameters,
            names=[variable_name(variable) for variable in variables],
            shapes=[[-1 if size is None else int(size) for size in shape] for shape in shapes],
        )
        # Not kept alive: the program may delete its model, and go on with another one.
        self._variables = [weakref.ref(variable) for variable in variables]
        self._optimizer = weakref.ref(optimizer)
        self._xla: Optional[bool] = None
        self._eager_ring: Optional[Ring] = None
        # By the graph of a Session, which keeps its ring: a ring refers to its graph, so that here
        # it would keep the graph as long as the program keeps the optimizer.
        self._rings_of_graphs: MutableMapping[Graph, weakref.ref[Ring]]
        self._rings_of_graphs = weakref.WeakKeyDictionary()
        self._begin_record(file, reader)
        # Now, because steps of graphs are read later: a skipped step after another optimizer's.
        self._reserved: Optional[int] = file.reserve()
        self.known.add(self)
        STEPS[optimizer] = self

    def _begin_record(self, file: RecordFile, reader: Reader) -> None:
        self._file = file
        self._reader = reader
        described = self._description
        described.initial_weights, described.settings, described.slots = None, {}, None
        self._number: Optional[int] = None
        self.count = 0
        self._last: Tuple[int, Optional[Row], bool] = (-1, None, False)
        self._after_errors: Set[int] = set()
        self._is_broken = False

    def record_to(self, file: RecordFile, reader: Reader) -> None:
        """Begins another record, of steps that were built for an earlier one, too."""
        with file.guard:
            self._begin_record(file, reader)
            self._reserved = None
            for ring in self._rings():
                ring.restart()
                reader.add(ring)

    def note_beginning(
        self, optimizer: Optimizer, step: Step, scale: Tensor, with_norm: bool
    ) -> None:
        """Remembers what is so before the first step: the weights, the optimizer's settings."""
        if self._number is not None or self.count != 0:
            return
        described, inner = self._description, inner_optimizer(optimizer)
        described.initial_weights = hash_of(step.variables, read_eagerly)
        described.settings = settings_of(inner)
        described.slots = state_of_slots(slots_of(inner, step.variables), read_eagerly)
        described.computed = computed_in(step, scale) if with_norm else None
        if step.unscaled is not None:
            described.unscaled_by = "step" if step.unscales else "program"

    def _begin(self, read: Callable[[Sequence[Tensor]], Sequence[Array]]) -> None:
        """Remembers the weights and slots of a graph, before a Session makes its first step."""
        if self._number is not None or self.count != 0:
            return
        variables = [reference() for reference in self._variables]
        if any(variable is None for variable in variables):
            return
        self._description.initial_weights = hash_of(variables, read)
        optimizer = self._optimizer()
        # It may be gone: the graph does not need it any more, as where a function has built it.
        slots = None if optimizer is None else slots_of(inner_optimizer(optimizer), variables)
        self._description.slots = state_of_slots(slots, read)

    def ring(self, is_compiled: bool) -> Ring:
        """Returns the ring of the current graph, or of eager mode, for the numbers of steps."""
        if is_compiled:
            self._xla = True
        graph = outermost_graph()
        ring = self._ring_of(graph)
        if ring is not None:
            return ring
        size = width(self._replicas)
        count = len(self._variables)
        ring = Ring(self._receive, self._leave_out, self._begin, count, size)
        if graph is None:
            self._eager_ring = ring
        else:
            self._rings_of_graphs[graph] = weakref.ref(ring)
        self._reader.add(ring)
        return ring

    def _ring_of(self, graph: Optional[Graph]) -> Optional[Ring]:
        if graph is None:
            return self._eager_ring
        reference = self._rings_of_graphs.get(graph)
        return None if reference is None else reference()

    def _rings(self) -> List[Ring]:
        of_graphs = [reference() for reference in self._rings_of_graphs.values()]
        return [ring for ring in (self._eager_ring, *of_graphs) if ring is not None]

    def add(self, numbers: Measured, applied: bool) -> None:
        with self._file.guard:
            if self._eager_ring is not None:
                self._eager_ring.flush(None, is_last=True)  # its steps come before this one
            self._receive(numbers.row, applied, numbers.norms)

    def note_error(self) -> None:
        """Notes that a step ended with an error; it may have updated the scale."""
        self._after_errors.add(self.count)

    def note_unscaled_loss(self, file: RecordFile) -> None:
        """Notes that no loss was scaled through the optimizer, if its steps are in this file."""
        if self._number is not None and self._file is file:
            file.summaries[self._number].scales_no_loss = True

    def _leave_out(self, count: int) -> None:
        self.count += count  # the next step shows that some are missing

    def _receive(self, row: Row, applied: bool, norms: Optional[Tensor]) -> None:
        """Adds a step to the record: the next one of this optimizer, as the host reads it.

        What is not certain is None. That a step was applied shows that its gradients were finite
        only if the class tests them, on one replica.
        """
        if self._file.is_closed:
            return
        step = self.count
        self.count += 1
        if self._number is None:
            self._number = self._describe(row, step)
            if step == 0:
                self._add_norms(self._number, norms)
        is_certain = self.application_is_known and self._tests_gradients
        if is_certain:
            self._look_for_break(step, row, applied)
        finite = applied if is_certain else row.finite
        # Keras 3's own class applies what is finite in its first replica only.
        is_finite = is_certain and applied and self._replicas == 1
        self._file.add_step(
            self._number,
            step,
            loss=row.loss,
            scales=row.scale,
            finite=finite,
            applied=applied if self.application_is_known else None,
            norm=row.norm if finite is not False else None,
            bad=None if is_finite else row.bad,
            bad_count=None if is_finite else row.bad_count,
            unscaled_norm=row.unscaled_norm,
            rate=row.rate,
            replica_norms=row.replica_norms,
        )

    def _add_norms(self, number: int, norms: Optional[Tensor]) -> None:
        if norms is not None and max(norms, default=-1.0) >= 0:
            known = [float(norm) if norm >= 0 else None for norm in norms]
            self._file.add_norms(number, known)

    def _describe(self, first: Row, step: int) -> int:
        found = self._description
        if step == 0:
            good, bad = first.good_steps or 0, first.bad_steps or 0
            scale = dataclasses.replace(
                found.scale, initial_scale=first.scale, good_steps=good, bad_steps=bad
            )
            found = dataclasses.replace(found, scale=scale)
        header = _run_header(self._replicas, self._xla)
        return self._file.add_optimizer(header, found, self._reserved)

    def _look_for_break(self, step: int, row: Row, applied: bool) -> None:
        """Complains, once, if the scale changed between two steps as no step changes it.

        Not across a gap, or where a step ended with an error.
        """
        (number, last, was_applied), self._last = self._last, (step, row, applied)
        if self._is_broken or last is None or number != step - 1 or step in self._after_errors:
            return
        if not last.may_precede(row, was_applied, self._description.scale.growth_steps):
            self._is_broken = True
            self._file.complaints.append(
                f"The loss scale of {self._description.cls} or its counter changed between the "
                f"recorded steps {number} and {step} as no single step changes it. Either a step "
                "was made by a graph or function that was built before recording began, and is "
                "missing, or another optimizer has the same loss scale, or the program set or "
                "restored it, or trained in several threads at once."
            )


STEPS: "MutableMapping[Any, Steps]" = weakref.WeakKeyDictionary()
"""By their optimizers, those that were recorded before, too."""
