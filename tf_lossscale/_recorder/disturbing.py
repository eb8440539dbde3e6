"""Disturbs a run as little as another kernel's rounding would, and changes nothing else.

Each trained weight is multiplied once by 1 and a small random number, and again after the program
has restored it. In eager mode and in functions, that is where the weight is made, or before the
next tape or call after it was set; in a Session, before the first run that makes a step. The loss
scale is multiplied by a factor in the same way.
"""

import threading
import weakref
from typing import Any, Callable, Dict, List, Sequence, Set, Tuple, Union

import numpy as np

from tf_lossscale._core.unscaled import ancestors
from tf_lossscale._recorder.optimizers import is_unbuilt_keras_3, scale_variable_of
from tf_lossscale._records.format import Disturbance
from tf_lossscale._types import Operation, Optimizer, Session, Variable
from tf_lossscale._versions.base import tf, tf1
from tf_lossscale._versions.hooks import around_variables, before_assignments, before_each_call
from tf_lossscale._versions.variables import all_copies, plain_variable

_MOST = 8
"""A variable that the program itself sets more often than this is not disturbed again."""
_Change = Callable[[np.ndarray], np.ndarray]
"""Changes the value of a variable."""


class Disturber:
    """Disturbs the weights and loss scales of a run, wherever they are."""

    def __init__(self, disturbance: Disturbance) -> None:
        self._disturbance = disturbance
        self._eager = _InEagerMode()
        self._in_graphs = _InGraphs()
        self._unbuilt: weakref.WeakSet[Any] = weakref.WeakSet()
        self._undo = around_variables(self._add_made, self._eager.apply_due)

    def close(self) -> None:
        """Ends the disturbance."""
        self._undo()
        self._eager.close()

    def before_loss(self, optimizer: Optimizer) -> None:
        """Disturbs the loss scale before a loss is multiplied by it."""
        factor, scale = self._disturbance.scale, scale_variable_of(optimizer)
        if factor == 1.0 or optimizer in self._unbuilt:
            return
        if scale is not None:
            self._place().add(plain_variable(scale), lambda _: lambda value: value * factor)
        elif is_unbuilt_keras_3(optimizer):
            self._unbuilt.add(optimizer)
            optimizer.initial_scale *= factor  # the loss is multiplied by this number

    def begin_step(self, optimizer: Optimizer, weights: Sequence[Variable]) -> None:
        """Is called before a step is built, or made in eager mode, where it sets variables."""
        self.before_loss(optimizer)
        self._eager.apply_due()
        for weight in (*weights, *([] if _is_eager() else tf1.trainable_variables())):
            self._add_weight(weight)
        self._eager.in_step(tf.executing_eagerly())

    def end_step(self) -> None:
        """Is called after a step in eager mode."""
        self._eager.in_step(False)

    def _add_made(self, variable: Variable) -> None:
        if variable.trainable and _is_eager():
            self._add_weight(variable)

    def _add_weight(self, variable: Variable) -> None:
        size, plain = self._disturbance.weights, plain_variable(variable)
        if size and plain.dtype.is_floating:
            self._place().add(plain, self._noise)

    def _noise(self, count: int) -> _Change:
        """Returns what disturbs the weight that comes after `count` others."""
        size, seed = self._disturbance.weights, [self._disturbance.number, count]

        def change(value: np.ndarray) -> np.ndarray:
            noise = np.random.RandomState(seed).standard_normal(value.shape)
            return np.asarray(value * (1.0 + size * noise)).astype(value.dtype)

        return change

    def _place(self) -> "Union[_InEagerMode, _InGraphs]":
        return self._eager if _is_eager() else self._in_graphs

    def before_run(
        self, session: Session, operations: Sequence[Operation], makes_step: bool
    ) -> None:
        """Is called before each run of a Session."""
        self._in_graphs.before_run(session, operations, makes_step)


def _is_eager() -> bool:
    with tf.init_scope():
        return bool(tf.executing_eagerly())


def _of_all_replicas(variable: Variable) -> Any:
    """Returns the variable of which this one is the copy of a replica."""
    for name in ("_distributed_container", "_mirrored_container"):
        container = vars(variable).get(name)
        if container is not None and container() is not None:
            return container()
    return variable


class _Entry:
    """A variable in eager mode that is disturbed, and whether it is due."""

    def __init__(self, variable: Variable, change: _Change) -> None:
        self.variable = weakref.ref(variable)
        self.change = change
        self.count = 0
        self.is_due = True


class _InEagerMode:
    """The variables of eager mode and functions, disturbed before they are read again.

    A weight that is made in a function cannot be disturbed there; it becomes due, and is disturbed
    before the next call.
    """

    def __init__(self) -> None:
        self._entries: Dict[int, _Entry] = {}  # by the `id` of the handle of each copy
        self._made = 0
        self._is_due = False
        self._thread = threading.local()
        self._undo = [before_assignments(self._assigned), before_each_call(self.apply_due)]

    def close(self) -> None:
        for undo in self._undo:
            undo()

    def in_step(self, is_made: bool) -> None:
        self._thread.in_step = is_made

    def add(self, variable: Variable, make: Callable[[int], _Change]) -> None:
        """Disturbs a variable, if it was not disturbed since it was initialized or restored."""
        if getattr(self._thread, "is_working", False):
            return
        variable = _of_all_replicas(variable)
        handles = [id(copy.handle) for copy in all_copies(variable)]
        entry = self._entries.get(handles[0])
        if entry is None or entry.variable() is None:
            self._made += 1
            entry = _Entry(variable, make(self._made))
            self._entries.update(dict.fromkeys(handles, entry))
        self._apply(entry)

    def _apply(self, entry: _Entry) -> None:
        """Disturbs a variable that is due, all copies alike; one without a value remains due."""
        variable = entry.variable()
        if variable is None or not entry.is_due:
            return
        self._thread.is_working = True
        try:
            with tf.init_scope():
                copies = all_copies(variable)
                if all(bool(tf.raw_ops.VarIsInitializedOp(resource=c.handle)) for c in copies):
                    value = entry.change(copies[0].numpy())
                    for copy in copies:
                        copy.assign(value)
                    entry.is_due = False
                else:
                    self._is_due = True  # it is made within a function, and initialized later
        finally:
            self._thread.is_working = False

    def _assigned(self, handle: Any) -> None:
        """Notes that the program sets a variable, as where it restores a checkpoint."""
        entry = self._entries.get(id(handle))
        is_ours = getattr(self._thread, "is_working", False)
        in_step = getattr(self._thread, "in_step", False)
        if entry is None or is_ours or in_step or entry.is_due or entry.count >= _MOST:
            return
        entry.is_due = self._is_due = True
        entry.count += 1

    def apply_due(self) -> None:
        """Disturbs what was set since it was disturbed, before it may be read."""
        if self._is_due and not getattr(self._thread, "is_working", False):
            self._is_due = False
            for entry in list({id(entry): entry for entry in self._entries.values()}.values()):
                self._apply(entry)


class _InGraphs:
    """The variables of graphs, which are set by their own initializers: no operation is added."""

    def __init__(self) -> None:
        # By graph, and by the name of a variable's operation: a reference to it, and its change.
        self._changes: weakref.WeakKeyDictionary[Any, Dict[str, Tuple[Any, _Change]]]
        self._changes = weakref.WeakKeyDictionary()
        # By Session: the names of those that were disturbed since they were set.
        self._done: weakref.WeakKeyDictionary[Any, Set[str]] = weakref.WeakKeyDictionary()
        self._is_working = False

    def add(self, variable: Variable, make: Callable[[int], _Change]) -> None:
        copies = all_copies(_of_all_replicas(variable))
        changes = self._changes.setdefault(copies[0].graph, {})
        if copies[0].op.name not in changes:
            change = make(len(changes))
            for copy in copies:
                changes[copy.op.name] = (weakref.ref(copy), change)

    def before_run(
        self, session: Session, operations: Sequence[Operation], makes_step: bool
    ) -> None:
        """Disturbs the variables of a graph before a step, if the program has set them since.

        A run that makes no step is looked at for what it assigns, such as an initializer or a
        restore.
        """
        changes = self._changes.get(session.graph)
        if not changes or self._is_working:
            return
        done = self._done.setdefault(session, set())
        if not makes_step:
            done -= set(_written_by(operations))
            return
        self._is_working = True
        try:
            for name, (reference, change) in changes.items():
                variable = reference()
                if name not in done and variable is not None:
                    value = change(session.run(variable))
                    session.run(variable.initializer, {variable.initializer.inputs[1]: value})
                    done.add(name)
        finally:
            self._is_working = False


def _written_by(operations: Sequence[Operation]) -> List[str]:
    """Returns the names of the variables' operations that some operations assign to."""
    return [
        operation.inputs[0].op.name
        for operation in ancestors(operations)
        if operation.type in ("Assign", "AssignVariableOp")
    ]
