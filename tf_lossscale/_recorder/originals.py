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
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from tf_lossscale._core.replicas import merge, replica_count
from tf_lossscale._core.steps import unnoticed
from tf_lossscale._recorder.measuring import Gradients, Row
from tf_lossscale._recorder.optimizers import inner_optimizer
from tf_lossscale._recorder.recorder import (
    SCOPE,
    Recorder,
    is_outside_replicas,
    refuse_outside_replicas,
    refuse_unsupported,
    sums_replicas,
)
from tf_lossscale._recorder.steps import Steps
from tf_lossscale._recorder.transport import Ring
from tf_lossscale._versions.base import do_not_convert, tf, tf1
from tf_lossscale._versions.graphs import in_xla_context
from tf_lossscale._versions.keras_optimizers import build_as_apply_does
from tf_lossscale._versions.originals import RECORDED_CLASSES, Recorded
from tf_lossscale._versions.watching import add_control_input, runs_stateful_operations

__all__ = ["Originals"]


class Originals:
    """The replaced methods of one recording."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._replaced: List[Tuple[type, str, Any, Any]] = []
        self._kinds: Dict[type, Recorded] = {}
        self._calls = _OutermostCalls()
        self._lock = threading.RLock()

    def patch_module(self, name: str, module: Any) -> None:
        """Replaces the methods of the classes that a module defines."""
        for kind in RECORDED_CLASSES[name]:
            cls = getattr(module, kind.name, None)
            if cls is None:
                continue
            self._kinds[cls] = kind
            for method in kind.loss_methods:
                self._replace(cls, method, self._with_loss)
            self._replace(cls, kind.step_method, self._with_step)

    def undo(self) -> None:
        """Restores all methods."""
        for cls, name, original, ours in reversed(self._replaced):
            _exchange(cls, name, ours, original)
        self._replaced.clear()

    def _replace(self, cls: type, name: str, wrap: Callable[[Any], Any]) -> bool:
        """Replaces a method where `cls` inherits it from; returns whether it is replaced."""
        owner = next((each for each in cls.__mro__ if name in vars(each)), None)
        method = None if owner is None else vars(owner)[name]
        if owner is None or not isinstance(method, types.FunctionType):
            return False
        with self._lock:
            if any((owner, name) == (each[0], each[1]) for each in self._replaced):
                return True
            ours = do_not_convert(functools.wraps(method)(wrap(method)))
            self._replaced.append((owner, name, method, ours))
            _exchange(owner, name, method, ours)
        return True

    def _kind(self, optimizer: Any) -> Optional[Recorded]:
        # Not known when a method is replaced: two classes may inherit it. Ours derive from some of
        # the originals, but define all methods themselves.
        kinds = (self._kinds.get(cls) for cls in type(optimizer).__mro__)
        return next((kind for kind in kinds if kind is not None), None)

    def _with_loss(self, original: Any) -> Any:
        def scale(optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            with self._calls.of(optimizer, "loss") as is_outermost:
                kind = self._kind(optimizer)
                if not is_outermost or kind is None or not (args or "loss" in kwargs):
                    return original(optimizer, *args, **kwargs)
                loss = args[0] if args else kwargs.pop("loss")
                if callable(loss):
                    loss = self._noting(optimizer, loss)
                else:
                    self._recorder.loss(optimizer, loss)
                return original(optimizer, loss, *args[1:], **kwargs)

        return scale

    def _noting(self, optimizer: Any, loss: Callable[[], Any]) -> Callable[[], Any]:
        @do_not_convert
        def noted() -> Any:
            value = loss()
            self._recorder.loss(optimizer, value)
            return value

        return noted

    def _with_step(self, original: Any) -> Any:
        def step(optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            with self._calls.of(optimizer, "step") as is_outermost:
                kind = self._kind(optimizer)
                if not is_outermost or kind is None:
                    return original(optimizer, *args, **kwargs)
                given = _Arguments(kind, original, optimizer, args, kwargs)
                if all(each is None for each in given.gradients):
                    # The optimizer raises an error, or does nothing.
                    return original(optimizer, *given.args, **given.kwargs)
                with self._recorder.noting_refusals(), self._recorded(kind, optimizer, given):
                    return original(optimizer, *given.args, **given.kwargs)

        return step

    @contextlib.contextmanager
    def _recorded(self, kind: Recorded, optimizer: Any, given: "_Arguments") -> Iterator[None]:
        """Records the step that is built or made within the block."""
        refuse_unsupported(kind.family == "keras3")
        if is_outside_replicas():
            yield  # the optimizer raises an error
            refuse_outside_replicas()
            return
        inner = inner_optimizer(optimizer)
        reports = self._reports(inner, kind.inner_method)

        def begin(strategy: Any, all_given: Any) -> _OpenStep:
            replicas = strategy.experimental_local_results(all_given)
            with contextlib.ExitStack() as stack:
                if replica_count() > 1:
                    stack.enter_context(tf1.device(strategy.extended.worker_devices[0]))
                # Here, because the replicas take turns: between two operations of this one, those
                # of others may be created.
                stack.enter_context(unnoticed(SCOPE))
                return self._begin(kind, optimizer, inner, replicas, reports)

        open_step = merge(begin, given)
        mine = _Applying(open_step, threading.current_thread())
        _applying.setdefault(id(inner), []).append(mine)
        try:
            with tf1.control_dependencies(open_step.before):
                yield
        except BaseException:
            open_step.steps.note_error()
            raise
        else:
            open_step.finish()
        finally:
            _applying[id(inner)].remove(mine)

    def _begin(
        self,
        kind: Recorded,
        optimizer: Any,
        inner: Any,
        replicas: Sequence["_Arguments"],
        reports: bool,
    ) -> "_OpenStep":
        is_sum = sums_replicas(optimizer, inner)
        given = [each for replica in replicas for each in replica.gradients]
        are_sums = replicas[0].are_sums
        loss = self._recorder.losses(optimizer).take(given, is_sum, are_sums)
        gradients = _gradients_of(replicas, are_sums, is_sum, kind.gradients_are_scaled)
        steps = self._recorder.steps(optimizer, replicas[0].variables)
        steps.application_is_known = steps.application_is_known and reports
        values = self._recorder.values(optimizer, loss, gradients)
        if tf.executing_eagerly():
            return _EagerStep(steps, values)
        is_compiled = in_xla_context()
        return _StepInGraph(steps, steps.ring(is_compiled), values, is_compiled)

    def _reports(self, inner: Any, method: str) -> bool:
        """Lets the inner optimizer report when it is called; returns whether it does."""
        if method in getattr(inner, "__dict__", {}):
            return False
        return self._replace(type(inner), method, self._with_applying)

    def _with_applying(self, original: Any) -> Any:
        def apply(inner: Any, *args: Any, **kwargs: Any) -> Any:
            step = _step_of(inner)
            if step is None:
                return original(inner, *args, **kwargs)
            with self._calls.of(inner, "apply") as is_outermost:
                result = original(inner, *args, **kwargs)
                if is_outermost:
                    step.mark(result)
                return result

        return apply


def _exchange(cls: type, name: str, old: Any, new: Any) -> None:
    """Replaces a method in a class, and in its subclasses that have a copy, as some of ours do."""
    if vars(cls).get(name) is old:
        setattr(cls, name, new)
    subclasses: List[type] = type.__subclasses__(cls)
    for each in subclasses:
        _exchange(each, name, old, new)


class _OpenStep:
    """A step that is being built or made.

    Attributes:
      steps: the steps of its optimizer.
      before: what it waits for, in a graph.
    """

    before: Sequence[Any] = ()

    def __init__(self, steps: Steps) -> None:
        self.steps = steps

    def mark(self, result: Any) -> None:
        """Notes that the inner optimizer applies the step, when `result` is run."""
        raise NotImplementedError("a subclass defines what to do")

    def finish(self) -> None:
        """Adds the step; called by each replica, after it was built or made."""


class _EagerStep(_OpenStep):
    def __init__(self, steps: Steps, row: Row) -> None:
        super().__init__(steps)
        self._row: Optional[Row] = row
        self._applied = False

    def mark(self, result: Any) -> None:
        self._applied = True

    def finish(self) -> None:
        row, self._row = self._row, None
        if row is not None:
            self.steps.add(row, self._applied)


class _StepInGraph(_OpenStep):
    def __init__(self, steps: Steps, ring: Ring, values: Any, is_compiled: bool) -> None:
        super().__init__(steps)
        self._ring = ring
        self._number = ring.begin(values)
        self._is_compiled = is_compiled
        self.before = [self._number]

    def mark(self, result: Any) -> None:
        with unnoticed(SCOPE):
            marked = self._ring.mark_applied(self._number)
        if self._is_compiled:
            return
        operation = None if result is None else getattr(result, "op", result)
        if isinstance(operation, tf.Operation) and operation.graph is marked.graph:
            add_control_input(operation, marked)
        elif not runs_stateful_operations(marked.graph):
            self.steps.application_is_known = False


class _Applying(NamedTuple):
    step: _OpenStep
    thread: threading.Thread


_applying: Dict[int, List[_Applying]] = {}
"""By the `id` of the inner optimizer, the steps that are being built."""


def _step_of(inner: Any) -> Optional[_OpenStep]:
    """Returns the step that `inner` is being called to apply, or None.

    It is that of this thread. A strategy calls `inner` in the threads of its replicas.
    """
    steps = list(_applying.get(id(inner), ()))
    mine = [each for each in steps if each.thread is threading.current_thread()]
    found = mine or steps
    return found[-1].step if found else None


class _Arguments:
    """The arguments of a step, whose pairs may be an iterator that can be read once.

    It is not a tuple: a strategy passes it on without looking into it.

    Attributes:
      gradients: the gradients; none if the arguments are not as expected.
      variables: their variables; likewise.
      are_sums: whether the caller has already combined the gradients of all replicas.
      args: the arguments to pass on.
      kwargs: likewise.
    """

    def __init__(
        self,
        kind: Recorded,
        method: Any,
        optimizer: Any,
        args: Sequence[Any],
        kwargs: Dict[str, Any],
    ) -> None:
        self.args, self.kwargs = list(args), dict(kwargs)
        self.gradients: List[Any] = []
        self.variables: List[Any] = []
        self.are_sums = False
        try:
            given = inspect.signature(method).bind(optimizer, *args, **kwargs).arguments
            options = {**given, **given.get("kwargs", {})}
            self.are_sums = bool(
                not options.get("experimental_aggregate_gradients", True)
                or options.get("skip_gradients_aggregation", False)
            )
            if kind.takes_pairs:
                self._read_pairs()
            else:
                self._read_lists(optimizer)
        except (TypeError, ValueError):
            self.gradients = []  # the optimizer raises an error

    def _read_pairs(self) -> None:
        pairs = list(self.args[0] if self.args else self.kwargs["grads_and_vars"])
        if self.args:
            self.args[0] = pairs
        else:
            self.kwargs["grads_and_vars"] = pairs
        self.gradients = [gradient for gradient, _ in pairs]
        self.variables = [variable for _, variable in pairs]

    def _read_lists(self, optimizer: Any) -> None:
        values = dict(zip(("grads", "trainable_variables"), self.args))
        values.update(self.kwargs)
        variables = values.get("trainable_variables")
        if variables is None:
            variables = optimizer._trainable_variables
        gradients, variables = list(values["grads"]), list(variables)
        build_as_apply_does(optimizer, variables)
        if len(gradients) == len(variables):
            self.gradients, self.variables = gradients, variables


def _gradients_of(
    replicas: Sequence[_Arguments], are_sums: bool, are_summed: bool, are_scaled: bool
) -> Gradients:
    """Returns the gradients of a step.

    Args:
      replicas: those of each replica.
      are_sums: whether each replica has the sums over all of them already.
      are_summed: otherwise, whether the step applies their plain sum.
      are_scaled: whether they are those of the scaled loss.
    """
    columns = [
        [each for each in column if each is not None]
        for column in zip(*[replica.gradients for replica in replicas])
    ]
    if len(replicas) == 1 or are_sums or not are_summed:
        known = len(replicas) == 1 or are_sums
        return Gradients(columns, known, are_scaled)
    return Gradients([[_sum(each)] if each else [] for each in columns], True, are_scaled)


def _sum(gradients: Sequence[Any]) -> Any:
    if not isinstance(gradients[0], tf.IndexedSlices):
        return tf.add_n([tf.convert_to_tensor(each) for each in gradients])
    return tf.IndexedSlices(
        tf.concat([each.values for each in gradients], 0),
        tf.concat([each.indices for each in gradients], 0),
        dense_shape=gradients[0].dense_shape,
    )


class _OutermostCalls:
    """Which optimizers are within a call, in each thread."""

    def __init__(self) -> None:
        self._local = threading.local()

    @contextlib.contextmanager
    def of(self, optimizer: Any, what: str) -> Iterator[bool]:
        """Yields whether this is not within another such call of the same optimizer."""
        inside: Set[Tuple[int, str]] = self._local.__dict__.setdefault("inside", set())
        key = (id(optimizer), what)
        if key in inside:
            yield False
            return
        inside.add(key)
        try:
            yield True
        finally:
            inside.discard(key)
