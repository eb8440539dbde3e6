"""Reports the losses and the steps of our loss-scale optimizers to those who watch them.

The monitor watches single optimizers, a recording watches all of them. The optimizers know only
this module. Without a watcher, a step gets no operation and no call.
"""

import contextlib
import functools
import weakref
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Union

from tf_lossscale._core.conditional import gate
from tf_lossscale._core.unscaled import UnscaledGradients
from tf_lossscale._replicas.agreement import merge
from tf_lossscale._types import (
    Gradient,
    Gradients,
    Graph,
    Loss,
    Operation,
    Optimizer,
    PerReplica,
    Strategy,
    Tensor,
    ToOperation,
    Variables,
)
from tf_lossscale._versions.base import do_not_convert, tf, tf1
from tf_lossscale._versions.graphs import outermost_graph
from tf_lossscale._versions.replicas import supports_merge_call
from tf_lossscale._versions.unnoticed import unnoticed
from tf_lossscale._versions.variables import RawVariable


class Step(NamedTuple):
    """A step that is about to be built or, in eager mode, made: of all replicas together."""

    optimizer: Optimizer
    variables: Variables  # those that have a gradient
    # For each of them the unscaled gradients, tensors and `IndexedSlices`: one for each replica of
    # this process.
    tested: Sequence[Sequence[Gradient]]
    # Whether each replica applies what is tested of it, if all replicas apply equal gradients.
    # Otherwise, the inner optimizer sums the gradients of the replicas in its own way.
    are_applied: bool
    summed_by_caller: bool = False  # whether the gradients were summed over the replicas before
    is_unconditional: bool = False  # whether it is applied in any case: the loss scale is fixed
    # Whether the gradients are of the scaled loss; not in a step of our classes.
    are_scaled: bool = False
    # For each variable the gradients where they were unscaled, before the program has changed them,
    # for each replica; None if that is not certain. Those that it has not changed are the same
    # objects as in `tested`.
    unscaled: Optional[Sequence[Sequence[Gradient]]] = None
    # Whether the step itself has unscaled them, so that the program may have changed them before.
    unscales: bool = False


class WatchedStep:
    """What a watcher adds to one step."""

    before: Sequence[Tensor] = ()  # the tensors that the step waits for, in a graph
    # What runs in a skipped step, if anything does. It returns an operation, None in eager mode.
    skipped: Optional[ToOperation] = None

    def finished(self, operation: Optional[Operation], applied: Tensor) -> Optional[Operation]:
        """Runs after every step that did not fail: after `operation`, None in eager mode.

        `applied` is whether the step was applied, a bool tensor of shape `[]` or a bool. Returns an
        operation to run with the step, or None. That of an unconditional step is not run.
        """

    def failed(self) -> None:
        """Runs after a step that ended with an error in Python."""


class Watcher:
    """Watches losses and steps. It must not refer to an optimizer that it watches."""

    def loss(self, optimizer: Optimizer, loss: Loss) -> None:
        """Is called with each unscaled loss, a tensor or number, before it is scaled."""

    def begin(self, step: Step) -> Optional[WatchedStep]:
        """Is called before each step, outside its replicas; returns what to add to it, or None."""


class Watch:
    """The watchers of one step, which are called as if they were one."""

    def __init__(self, steps: Sequence[WatchedStep] = ()) -> None:
        self._steps = steps

    @property
    def skipped(self) -> Optional[ToOperation]:
        """What a skipped step runs; only the watcher of the one optimizer adds something to it."""
        return next((step.skipped for step in self._steps if step.skipped is not None), None)

    @contextlib.contextmanager
    def around(self) -> Iterator[None]:
        before = [tensor for step in self._steps for tensor in step.before]
        try:
            with tf1.control_dependencies(before):
                yield
        except BaseException:
            for step in self._steps:
                step.failed()
            raise

    def finished(self, operation: Optional[Operation], applied: Tensor) -> List[Operation]:
        """Returns the operations to run with the step, none in eager mode."""
        done = [step.finished(operation, applied) for step in self._steps]
        return [result for result in done if result is not None]


# Not an attribute of the optimizer, which would be saved with it.
_of_one: "weakref.WeakKeyDictionary[Any, Watcher]" = weakref.WeakKeyDictionary()
_of_all: List[Watcher] = []
_unscaled: "weakref.WeakKeyDictionary[Any, UnscaledGradients]" = weakref.WeakKeyDictionary()
_unwatched: "weakref.WeakKeyDictionary[Any, str]" = weakref.WeakKeyDictionary()


def watch(optimizer: Optimizer, watcher: Watcher) -> None:
    """Sets the watcher of the steps of one optimizer that are built from now on."""
    _of_one[optimizer] = watcher


def watcher_of(optimizer: Optimizer) -> Optional[Watcher]:
    return _of_one.get(optimizer) if _of_one else None


def watch_all(watcher: Watcher) -> Callable[[], None]:
    """Sets a watcher of the steps of all our optimizers; returns what ends this."""
    _of_all.append(watcher)
    return functools.partial(_of_all.remove, watcher)


def is_watched(optimizer: Optimizer) -> bool:
    return bool(_of_all) or watcher_of(optimizer) is not None


def _watchers(optimizer: Optimizer) -> List[Watcher]:
    own = watcher_of(optimizer)
    return [*_of_all] if own is None else [*_of_all, own]


def built_unwatched() -> Dict[Union[Graph, Optimizer], str]:
    """Returns names of classes with steps built before `watch_all`, by graph or by optimizer."""
    return dict(_unwatched)


@do_not_convert
def report_loss(optimizer: Optimizer, loss: Loss) -> Loss:
    """Reports a loss that is going to be scaled; returns the loss to scale in its place."""
    watchers = _watchers(optimizer)
    if not watchers:
        return loss
    if callable(loss):

        @do_not_convert
        def reported() -> Tensor:
            return report_loss(optimizer, loss())

        return reported
    for watcher in watchers:
        watcher.loss(optimizer, loss)
    return loss


@do_not_convert
def report_unscaled(
    optimizer: Optimizer,
    gradients: Gradients,
    variables: Optional[Variables] = None,
    in_step: bool = False,
) -> None:
    """Reports gradients that were just unscaled, None among them, and their variables if known.

    `in_step` is whether the method that makes the step unscales them.
    """
    if is_watched(optimizer):
        noted = _unscaled.setdefault(optimizer, UnscaledGradients())
        noted.note(gradients, variables)
        noted.in_step = in_step


def with_unscaled(step: Step) -> Step:
    """Returns a step with its gradients where they were unscaled, if they were reported."""
    noted = _unscaled.get(step.optimizer)
    if noted is None:
        return step
    return step._replace(unscaled=noted.take(step.variables, step.tested), unscales=noted.in_step)


def watch_step(step: Step) -> Watch:
    """Begins a step, where `Watcher.begin` is called."""
    if not _of_all:
        _note_unwatched(step.optimizer)
    watchers = _watchers(step.optimizer)
    if not watchers:
        return Watch()
    step = with_unscaled(step)
    begun = [watcher.begin(step) for watcher in watchers]
    return Watch([watched for watched in begun if watched is not None])


@do_not_convert
def watch_unconditional(
    optimizer: Optimizer,
    gradients: Gradients,
    describe: Callable[[Strategy, Sequence[PerReplica]], Step],
) -> Watch:
    """Begins a step that is applied in any case; `describe` gets the gradients of all replicas."""
    if not _of_all:
        _note_unwatched(optimizer)
        return Watch()
    if tf.distribute.has_strategy() and not supports_merge_call():
        return Watch()

    def begin(strategy: Strategy, gradients: Sequence[PerReplica]) -> Watch:
        with unnoticed("tf_lossscale_watch/"):
            step = describe(strategy, gradients)
        return watch_step(step._replace(is_unconditional=True))

    return merge(begin, list(gradients))


def initialized(*variables: RawVariable) -> List[Tensor]:
    """Returns what the operations of a step that use a watcher's variables depend on.

    In a Session, that is the operation that initializes them before the first step: nothing else
    does, because they are in no collection.
    """
    for variable in variables:
        variable.capture()
    if variables[0].eager:
        return []

    def initialize() -> Operation:
        return tf.group(*[variable.initialize() for variable in variables])

    return [gate(variables[0].is_initialized(), initialize)]


def _note_unwatched(optimizer: Optimizer) -> None:
    if not tf.executing_eagerly():
        _unwatched[outermost_graph() or optimizer] = type(optimizer).__name__
