"""Records TensorFlow's and Keras's own loss-scale classes, which report nothing themselves.

While a recording goes on, their methods are replaced in the classes that define them, so it does
not matter how a program refers to a class. Only the outermost call of an optimizer records. That a
step is applied is known because the inner optimizer is called, or its operation runs.
"""

import contextlib
import functools
import inspect
import threading
import types
from types import ModuleType
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Set, Tuple

from tf_lossscale._core.watching import (
    Step,
    Watch,
    WatchedStep,
    report_loss,
    report_unscaled,
    with_unscaled,
)
from tf_lossscale._recorder import recorder
from tf_lossscale._recorder.measuring import Measured
from tf_lossscale._recorder.optimizers import Steps, inner_optimizer
from tf_lossscale._replicas.agreement import merge, replica_count
from tf_lossscale._types import (
    Gradient,
    Gradients,
    Loss,
    Method,
    Operation,
    Optimizer,
    Strategy,
    Tensor,
    Variables,
)
from tf_lossscale._versions.base import do_not_convert, tf, tf1
from tf_lossscale._versions.graphs import in_xla_context
from tf_lossscale._versions.interventions import RECORDED_STEPS, Replacements
from tf_lossscale._versions.keras_optimizers import build_as_apply_does
from tf_lossscale._versions.originals import RECORDED_CLASSES, Recorded
from tf_lossscale._versions.unnoticed import add_control_input, runs_stateful_operations, unnoticed


class Originals:
    """The replaced methods of one recording.

    Attributes:
      saw_other_steps: whether an optimizer made a step that none of TensorFlow's and Keras's
        loss-scale optimizers passed on to it.
    """

    saw_other_steps = False

    def __init__(self, recorder: recorder.Recorder) -> None:
        self._recorder = recorder
        self._replacements = Replacements(RECORDED_STEPS)
        self._kinds: Dict[type, Recorded] = {}
        self._calls = threading.local()
        # Of each step that is being made: `id` of its inner optimizer, its thread, and the step.
        self._applying: List[Tuple[int, threading.Thread, Any]] = []
        self._lock = threading.RLock()

    def patch_module(self, name: str, module: ModuleType) -> None:
        for kind in RECORDED_CLASSES[name]:
            cls = getattr(module, kind.name, None)
            if cls is None:
                continue
            self._kinds[cls] = kind
            self._replace(cls, kind.loss_method, self._with_loss)
            if kind.unscales:
                self._replace(cls, "get_unscaled_gradients", self._with_unscaled)
            self._replace(cls, kind.step_method, self._with_step)
            self._replace_inherited(cls, kind.step_method)

    def undo(self) -> None:
        self._replacements.undo()

    def _replace(self, cls: type, name: str, wrap: Callable[[Method], Method]) -> bool:
        """Replaces a method where `cls` inherits it from; returns whether it is replaced."""
        owner = next((base for base in cls.__mro__ if name in vars(base)), cls)
        method = vars(owner).get(name)
        if not isinstance(method, types.FunctionType):
            return False
        with self._lock:
            if not self._replacements.has(owner, name):
                ours = do_not_convert(functools.wraps(method)(wrap(method)))
                self._replacements.replace(owner, name, ours)
        return True

    def _replace_inherited(self, cls: type, name: str) -> None:
        """Replaces the method that `cls` overrides, which the optimizers without a scale have."""
        owners = [base for base in cls.__mro__ if name in vars(base)]
        for base in owners[1:2]:
            self._replace(base, name, self._with_applying)

    def _kind(self, optimizer: Optimizer) -> Optional[Recorded]:
        # Not known when a method is replaced: two classes may inherit it. Ours derive from some of
        # the originals, but define all methods themselves.
        classes = type(optimizer).__mro__
        return next((self._kinds[cls] for cls in classes if cls in self._kinds), None)

    @contextlib.contextmanager
    def _outermost(self, optimizer: Optimizer, what: str) -> Iterator[bool]:
        """Yields whether this is not within another such call of the optimizer, in this thread."""
        inside: Set[Tuple[int, str]] = self._calls.__dict__.setdefault("inside", set())
        key = (id(optimizer), what)
        is_outermost = key not in inside
        inside.add(key)
        try:
            yield is_outermost
        finally:
            if is_outermost:
                inside.discard(key)

    def _with_loss(self, original: Method) -> Method:
        """Returns a method that reports the loss, and then has TensorFlow's class scale it."""

        def scale(optimizer: Optimizer, *args: object, **kwargs: object) -> Loss:
            with self._outermost(optimizer, "loss") as is_outermost:
                if not (is_outermost and self._kind(optimizer) and (args or "loss" in kwargs)):
                    return original(optimizer, *args, **kwargs)
                loss = report_loss(optimizer, args[0] if args else kwargs.pop("loss"))
                result = original(optimizer, loss, *args[1:], **kwargs)
                if original.__name__ == "compute_gradients":
                    gradients = [gradient for gradient, _ in result]
                    report_unscaled(optimizer, gradients, [variable for _, variable in result])
                return result

        return scale

    def _with_unscaled(self, original: Method) -> Method:
        def unscale(optimizer: Optimizer, *args: object, **kwargs: object) -> Gradients:
            with self._outermost(optimizer, "unscale") as is_outermost:
                gradients = original(optimizer, *args, **kwargs)
                if is_outermost and self._kind(optimizer):
                    report_unscaled(optimizer, gradients)
                return gradients

        return unscale

    def _with_step(self, original: Method) -> Method:
        def step(optimizer: Optimizer, *args: object, **kwargs: object) -> Optional[Operation]:
            with self._outermost(optimizer, "step") as is_outermost:
                kind = self._kind(optimizer)
                if not is_outermost or kind is None:
                    return original(optimizer, *args, **kwargs)
                given = _Arguments(kind, original, optimizer, args, kwargs)
                with self._recorded(kind, optimizer, given):
                    return original(optimizer, *given.args, **given.kwargs)

        return step

    @contextlib.contextmanager
    def _recorded(
        self, kind: Recorded, optimizer: Optimizer, given: "_Arguments"
    ) -> Iterator[None]:
        """Records the step that is built or made within the block."""
        if all(gradient is None for gradient in given.gradients):
            yield  # the optimizer raises an error, or does nothing
            return
        self._recorder.refuse_unsupported(kind.is_keras_3)
        is_outside = tf.distribute.has_strategy() and tf.distribute.in_cross_replica_context()
        if is_outside and replica_count() > 1:
            yield  # the optimizer raises an error
            self._refuse_outside()
        inner = inner_optimizer(optimizer)
        # An attribute of the object itself cannot be replaced in its class.
        is_own = kind.step_method in getattr(inner, "__dict__", {})
        reports = not is_own and self._replace(type(inner), kind.step_method, self._with_applying)

        def begin(strategy: Strategy, all_given: Any) -> WatchedStep:
            replicas = strategy.experimental_local_results(all_given)
            device: Any = contextlib.nullcontext()
            if replica_count() > 1:
                device = tf1.device(strategy.extended.worker_devices[0])
            # Here, because the replicas take turns: between two operations of this replica, others
            # may create operations.
            with device, unnoticed(recorder.SCOPE):
                described = _step_of(kind, optimizer, replicas)
                steps, numbers = self._recorder.numbers(described)
                steps.application_is_known = steps.application_is_known and reports
                if tf.executing_eagerly():
                    return _MarkedEagerStep(steps, numbers, self._recorder.disturber)
                return _MarkedStepInGraph(steps, numbers)

        step = merge(begin, given)
        mine = (id(inner), threading.current_thread(), step)
        self._applying.append(mine)
        try:
            with Watch([step]).around():
                yield
        finally:
            self._applying.remove(mine)
        step.finished(None, None)

    def _refuse_outside(self) -> None:
        self._recorder.refuse(
            "A step was made within `strategy.scope()`, but outside the function that "
            "`strategy.run` runs, where it",
            "with the step in that function",
        )

    def _with_applying(self, original: Method) -> Method:
        """Returns a method of an optimizer that marks the step for which it is called."""

        def apply(inner: Optimizer, *args: object, **kwargs: object) -> Optional[Operation]:
            steps = [(thread, step) for key, thread, step in self._applying if key == id(inner)]
            mine = [step for thread, step in steps if thread is threading.current_thread()]
            self.saw_other_steps = self.saw_other_steps or not steps
            with self._outermost(inner, "apply") as is_outermost:
                result = original(inner, *args, **kwargs)
                if is_outermost and steps:
                    # A strategy calls `inner` in the threads of its replicas.
                    (mine or [step for _, step in steps])[-1].mark(result)
                return result

        return apply


class _MarkedEagerStep(recorder.EagerStep):
    _applied = False

    def mark(self, result: Optional[Operation]) -> None:
        self._applied = True

    def finished(self, operation: Optional[Operation], applied: Tensor) -> None:
        super().finished(operation, self._applied)


class _MarkedStepInGraph(WatchedStep):
    """A step of TensorFlow's class in a graph or function, where a conditional decides.

    It is written before the decision. The inner optimizer is built within the branch, and what
    marks the step as applied with it.
    """

    def __init__(self, steps: Steps, numbers: Measured) -> None:
        self._steps = steps
        self._is_compiled = in_xla_context()
        self._ring = steps.ring(self._is_compiled)
        self._number = self._ring.begin(numbers)
        self.before = [self._number]

    def mark(self, result: Optional[Operation]) -> None:
        """Notes that the inner optimizer applies the step, when `result` is run."""
        with unnoticed(recorder.SCOPE):
            marked = self._ring.mark_applied(self._number)
        if self._is_compiled:
            return
        operation = None if result is None else getattr(result, "op", result)
        if isinstance(operation, tf.Operation) and operation.graph is marked.graph:
            add_control_input(operation, marked)
        elif not runs_stateful_operations(marked.graph):
            self._steps.application_is_known = False

    def failed(self) -> None:
        self._steps.note_error()


class _Arguments:
    """The arguments of a step, whose pairs may be an iterator that can be read once.

    It is not a tuple: a strategy passes it on without looking into it.

    Attributes:
      args: the positional arguments to pass on, without the optimizer; an iterator that was read is
        a new one.
      kwargs: the keyword arguments to pass on.
      gradients: the gradients; empty if the arguments are not as expected.
      variables: their variables; likewise.
      are_sums: whether the caller has already combined the gradients of all replicas.
    """

    gradients: Gradients = ()
    variables: Variables = ()
    are_sums = False

    def __init__(
        self,
        kind: Recorded,
        method: Method,
        optimizer: Optimizer,
        args: Sequence[Any],
        kwargs: Dict[str, Any],
    ) -> None:
        """Reads the arguments.

        Args:
          kind: what the class is whose step is recorded.
          method: the method that is called.
          optimizer: its optimizer, which is built if it is one of Keras 3.
          args: the positional arguments, without the optimizer.
          kwargs: the keyword arguments.
        """
        self.args, self.kwargs = args, kwargs
        with contextlib.suppress(TypeError, ValueError):  # the optimizer raises an error
            bound = inspect.signature(method).bind(optimizer, *args, **kwargs)
            given = bound.arguments
            options = {**given, **given.get("kwargs", {})}
            self.are_sums = bool(
                not options.get("experimental_aggregate_gradients", True)
                or options.get("skip_gradients_aggregation", False)
            )
            if kind.is_keras_3:
                gradients, variables = _lists_of_keras_3(optimizer, given)
            else:
                pairs = _pairs_of(given)  # changes `bound`, of which `given` is a part
                self.args, self.kwargs = bound.args[1:], bound.kwargs
                gradients = [gradient for gradient, _ in pairs]
                variables = [variable for _, variable in pairs]
            if len(gradients) == len(variables):
                self.gradients, self.variables = gradients, variables


def _pairs_of(given: Dict[str, Any]) -> List[Tuple[Any, Any]]:
    """Returns the pairs in arguments, where a new iterator replaces one that this has read."""
    passed = given["grads_and_vars"]
    pairs = list(passed)
    is_iterator = iter(passed) is passed
    if is_iterator:  # and so it is empty now
        given["grads_and_vars"] = iter(pairs)
    return pairs


def _lists_of_keras_3(optimizer: Optimizer, given: Dict[str, Any]) -> Tuple[List[Any], List[Any]]:
    """Returns the gradients and variables in arguments; builds the optimizer for the variables."""
    passed = given.get("trainable_variables")
    variables = list(optimizer._trainable_variables if passed is None else passed)
    gradients = list(given["grads"])
    build_as_apply_does(optimizer, variables)
    return gradients, variables


def _step_of(kind: Recorded, optimizer: Optimizer, replicas: Sequence[_Arguments]) -> Step:
    """Returns the step of TensorFlow's class that applies these arguments, one for each replica."""
    first = replicas[0]
    columns = [
        [value for value in column if value is not None]
        for column in zip(*[replica.gradients for replica in replicas])
    ]
    own, are_applied = columns, len(replicas) == 1 or first.are_sums
    if not are_applied and recorder.sums_replicas(optimizer):
        columns = [[_sum(column)] if column else [] for column in columns]
        are_applied = True
    step = Step(
        optimizer,
        first.variables,
        columns,
        are_applied,
        summed_by_caller=first.are_sums,
        are_scaled=kind.is_keras_3,
    )
    if kind.is_keras_3:
        return step._replace(
            unscaled=own, unscales=True
        )  # it unscales them itself, and nothing comes between
    return with_unscaled(step)


def _sum(gradients: Sequence[Gradient]) -> Gradient:
    if not isinstance(gradients[0], tf.IndexedSlices):
        return tf.add_n([tf.convert_to_tensor(gradient) for gradient in gradients])
    return tf.IndexedSlices(
        tf.concat([gradient.values for gradient in gradients], 0),
        tf.concat([gradient.indices for gradient in gradients], 0),
        dense_shape=gradients[0].dense_shape,
    )
