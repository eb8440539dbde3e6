"""Replaces the methods of loss-scale optimizers by ones that record, while a recording goes on.

Methods are replaced in the classes that define them, so it does not matter how a program refers to
a class. Only the outermost call of an optimizer records.
"""

import contextlib
import functools
import inspect
import threading
import types
import weakref
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Set, Tuple

from tf_lossscale._recorder.earlier_optimizers import EarlierOptimizers
from tf_lossscale._recorder.errors import RecordingError
from tf_lossscale._recorder.optimizers import inner_optimizer
from tf_lossscale._recorder.record_file import RecordFile
from tf_lossscale._recorder.refusals import refuse_remote_session
from tf_lossscale._recorder.rings import Rings
from tf_lossscale._recorder.steps import known_steps
from tf_lossscale._recorder.taps import Tap, applying
from tf_lossscale._versions.base import do_not_convert
from tf_lossscale._versions.keras_optimizers import build_as_apply_does, called_from_minimize_of_fit
from tf_lossscale._versions.recorded_classes import RECORDED_CLASSES, Recorded
from tf_lossscale._versions.watching import before_each_run

__all__ = ["Patches"]


class Patches:
    """The replaced methods of one recording.

    Args:
      file: the record.
      with_norm: whether to record the norm of the gradients.
    """

    def __init__(self, file: RecordFile, with_norm: bool) -> None:
        self._file = file
        self._with_norm = with_norm
        self._replaced: List[Tuple[type, str, Any, Any]] = []
        self._kinds: Dict[type, Recorded] = {}
        self._taps: Dict[int, Tap] = {}
        self._ended: List[Tap] = []
        self._calls = _OutermostCalls()
        self._rings = Rings()
        self._graphs: weakref.WeakSet[Any] = weakref.WeakSet()
        self._earlier: Optional[EarlierOptimizers] = None
        self.has_refused = False
        """Whether a step was refused with an error."""
        self._leave_sessions = before_each_run(self._before_run)
        for each in known_steps():
            ring = each.record_to(file)
            if ring is not None:
                self._rings.add(ring)
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

    def look_for_earlier_optimizers(self) -> None:
        """Watches the optimizers that exist already, whose steps may be built already."""
        self._earlier = EarlierOptimizers(self._kinds)

    def _before_run(self, session: Any) -> None:
        with self._noting_refusals():
            refuse_remote_session(session, self._graphs)
        if self._earlier is not None:
            self._earlier.note_run(session)

    @contextlib.contextmanager
    def _noting_refusals(self) -> Iterator[None]:
        try:
            yield
        except RecordingError:
            self.has_refused = True
            raise

    def complaints(self) -> List[str]:
        """Returns what is missing in the record, a sentence each."""
        mine = [each for each in known_steps() if each.count]
        found = []
        for each in mine:
            if each.break_before is not None:
                found.append(
                    f"The loss scale of {each.cls} or its counter changed between the recorded "
                    f"steps {each.break_before - 1} and {each.break_before} as no single step "
                    "changes it. Either a step was made by a graph or function that was built "
                    "before recording began, and is missing, or the program set or restored the "
                    "scale, or trained in several threads at once."
                )
        if self._earlier is not None:
            for cls in self._earlier.unrecorded([id(each.optimizer) for each in mine]):
                found.append(
                    f"A {cls} was created before recording began, and its steps, if it made any, "
                    "are not in the record: the graph or function that makes them was built "
                    "before. Start to record before the steps are built."
                )
        return found

    def undo(self) -> None:
        """Restores all methods, and adds the last steps to the record."""
        for cls, name, original, ours in reversed(self._replaced):
            _exchange(cls, name, ours, original)
        self._replaced.clear()
        self._rings.close()
        self._leave_sessions()
        self.close_steps()

    def close_steps(self) -> None:
        """Adds the steps that are still open to the record."""
        with self._lock:
            taps = [*self._ended, *self._taps.values()]
        for tap in taps:
            tap.close()
        for steps in known_steps():
            steps.close()

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
        # Not known when a method is replaced: two classes may inherit it.
        kinds = (self._kinds.get(cls) for cls in type(optimizer).__mro__)
        return next((kind for kind in kinds if kind is not None), None)

    def _tap(self, kind: Recorded, optimizer: Any) -> Tap:
        with self._lock:
            known = self._taps.get(id(optimizer))
            if known is not None and known.belongs_to(optimizer):
                return known
            if known is not None:
                self._ended.append(known)
            tap = Tap(self._file, kind, optimizer, self._with_norm, self._rings, self._graphs)
            self._taps[id(optimizer)] = tap
            return tap

    def _with_loss(self, original: Any) -> Any:
        def scale(optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            with self._calls.of(optimizer, "loss") as is_outermost:
                kind = self._kind(optimizer)
                if not is_outermost or kind is None or not (args or "loss" in kwargs):
                    return original(optimizer, *args, **kwargs)
                tap = self._tap(kind, optimizer)
                loss = args[0] if args else kwargs.pop("loss")
                if callable(loss):
                    loss = _noting(tap, loss)
                else:
                    tap.note_loss(loss)
                return original(optimizer, loss, *args[1:], **kwargs)

        return scale

    def _with_step(self, original: Any) -> Any:
        def step(optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            with self._calls.of(optimizer, "step") as is_outermost:
                kind = self._kind(optimizer)
                if not is_outermost or kind is None:
                    return original(optimizer, *args, **kwargs)
                given = _Arguments(kind, original, optimizer, args, kwargs)
                if given.gradients is None or given.variables is None:
                    return original(optimizer, *given.args, **given.kwargs)
                inner = inner_optimizer(kind, optimizer)
                tapped = self._tap_inner(inner, kind.inner_method)
                tap = self._tap(kind, optimizer)
                with self._noting_refusals(), tap.step(
                    tapped,
                    given.gradients,
                    given.variables,
                    given.are_sums,
                    given.sums_are_known,
                ):
                    return original(optimizer, *given.args, **given.kwargs)

        return step

    def _tap_inner(self, inner: Any, method: str) -> bool:
        """Lets the inner optimizer tell when it is called; returns whether it does."""
        if method in getattr(inner, "__dict__", {}):
            return False
        return self._replace(type(inner), method, self._with_applying)

    def _with_applying(self, original: Any) -> Any:
        def apply(inner: Any, *args: Any, **kwargs: Any) -> Any:
            step = applying(inner)
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


class _Arguments:
    """The arguments of a step, whose pairs may be an iterator that can be read once.

    Attributes:
      gradients: the gradients; None if the arguments are not as expected.
      variables: their variables; likewise.
      are_sums: whether the caller has already combined the gradients of all replicas.
      sums_are_known: whether it is Keras, which adds them up.
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
        self.gradients: Optional[List[Any]] = None
        self.variables: Optional[List[Any]] = None
        self.are_sums = False
        self.sums_are_known = called_from_minimize_of_fit()
        try:
            given = inspect.signature(method).bind(optimizer, *args, **kwargs).arguments
            options = {**given, **given.get("kwargs", {})}
            self.are_sums = bool(
                not options.get("experimental_aggregate_gradients", True)
                or options.get("skip_gradients_aggregation", False)
                or options.get("summed_by_caller", False)
            )
            if kind.takes_pairs:
                self._read_pairs()
            else:
                self._read_lists(optimizer)
        except (TypeError, ValueError):
            self.gradients = None  # the optimizer raises an error

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


def _noting(tap: Tap, loss: Callable[[], Any]) -> Callable[[], Any]:
    @do_not_convert
    def noted() -> Any:
        value = loss()
        tap.note_loss(value)
        return value

    return noted


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
