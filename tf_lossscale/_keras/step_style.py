"""Decides whether `apply_gradients` on Keras 3 divides its gradients by the loss scale.

That of Keras 2 applies the gradients that it gets, whether the program scaled and unscaled them or
not. That of Keras 3 divides them, because `fit` passes it gradients of a loss that `scale_loss`
has multiplied. The gradients look alike. So a step is Keras 2's, unless it uses a name that only
Keras 3 has: `scale_loss`, `apply` or `dynamic_scale`.

A step is what was called on the optimizer in one *place* since gradients were last applied there.
Each thread's eager mode is a place, the replicas of a strategy share one, and each outermost
`tf.function` that is being traced is one. Within a place, each replica makes its own step: at each
collective, one replica waits for the next. Earlier steps do not count: a program may call `fit`,
and then apply gradients that it has never scaled. But `apply_gradients` may also be called twice
for one loss, with other variables: the operations of a function tell, and eagerly it is logged.

A step may also consist of parts, each a function of its own. A part that only applies gradients is
Keras 2's, too, unless `scale_loss` was called in a part that applies nothing. The calls of a part
are seen only while it is traced, so what was called before the last step may be left over, and some
programs of several parts and both styles cannot be explained. They get an error. What an inner
function calls counts again in each trace around it. A function that is traced again, with nothing
called this time, divides if it did so before.
"""

import enum
import functools
import itertools
import threading
import types
import weakref
from typing import (
    Any,
    Callable,
    Dict,
    List,
    MutableMapping,
    NamedTuple,
    Optional,
    Set,
    Tuple,
)

from tf_lossscale._keras.origins import (
    depend_on_operations,
    depend_on_products,
    depend_on_variable,
)
from tf_lossscale._keras.traced_calls import TracedCall, TracedCalls
from tf_lossscale._types import Class, Function, Gradients, Graph, Loss, Method, Tensor, Variables
from tf_lossscale._versions.base import tf, tf1
from tf_lossscale._versions.callers import function_traced_to
from tf_lossscale._versions.graphs import graphs_around, is_branch
from tf_lossscale._versions.interventions import set_method
from tf_lossscale._versions.replicas import replica_id


class Call(enum.Enum):
    """What a step may call on an optimizer, or read."""

    SCALE_LOSS = "scale_loss()"  # of Keras 3
    READ_DYNAMIC_SCALE = "dynamic_scale"  # of Keras 3
    GET_SCALED_LOSS = "get_scaled_loss()"
    UNSCALE = "get_unscaled_gradients()"
    COMPUTE = "compute_gradients()"


_OF_KERAS_2 = (Call.GET_SCALED_LOSS, Call.UNSCALE, Call.COMPUTE)
_UNSCALING = (Call.UNSCALE, Call.COMPUTE)

_ADVICE = (
    " Write either a step of Keras 2, get_scaled_loss(), get_unscaled_gradients() and "
    "apply_gradients(); or a step of Keras 3, scale_loss() and apply(gradients, variables)."
)

_clock = itertools.count(1)


class _EndedStep(NamedTuple):
    """A step of which the program itself scaled the loss with `scale_loss`."""

    losses: int  # how many it scaled
    variables: Set[int]  # the identities of those whose gradients it applied

    def may_go_on(self, variables: Variables) -> bool:
        """Returns whether gradients of `variables` may be others of the same losses.

        A program that applies the gradients of one loss in two parts has other variables in the
        second one. So has a program that trains two models with one optimizer, in both styles.
        """
        is_disjoint = self.variables.isdisjoint(id(variable) for variable in variables)
        return self.losses > 1 or is_disjoint


class _CallsOfStep:
    """The calls of one replica on one optimizer in one place since it applied gradients there."""

    def __init__(self, began: int) -> None:
        self.began = began
        # When each was called first and last in this step.
        self.first: Dict[Call, int] = {}
        self.last: Dict[Call, int] = {}
        # When a program last scaled a loss with `scale_loss` here, maybe for an earlier step.
        self.last_scaled = 0
        # The operations of this function that multiply a loss, by the call: by name, so that the
        # optimizer does not keep the graph alive; None for one in a branch or an inner function.
        self.products: Dict[Call, List[Optional[str]]] = {}
        # Whether this function unscales gradients of a loss that `scale_loss` may have scaled.
        self.unscales_for_keras_3 = False
        # How many losses the program itself scaled with `scale_loss` in this step.
        self.losses = 0
        self.ended: Optional[_EndedStep] = None  # the last one, until something is called again
        # How many steps each function has ended, and the one that has called something last: by
        # identity, None outside of functions.
        self.ended_in: MutableMapping[Graph, int] = weakref.WeakKeyDictionary()
        self.called_in: Optional[int] = None

    def note(self, call: Call) -> None:
        now = next(_clock)
        self.first.setdefault(call, now)
        self.last[call] = now
        self.ended = None

    def forget(self) -> None:
        self.first.clear()
        self.last.clear()
        self.losses = 0
        self.called_in = None

    def leave(self, variables: Variables) -> None:
        """Forgets the calls of a step that has applied gradients of `variables`."""
        if self.losses:
            self.ended = _EndedStep(self.losses, {id(variable) for variable in variables})
        self.forget()

    def end(self, variables: Variables) -> None:
        """Ends a step that applied gradients of `variables` here."""
        self.leave(variables)
        self.unscales_for_keras_3 = False
        self.began = next(_clock)

    def has(self, *calls: Call) -> bool:
        return any(call in self.last for call in calls)

    def has_after(self, moment: int, *calls: Call) -> bool:
        return any(self.last.get(call, 0) > moment for call in calls)

    def has_before(self, moment: int, *calls: Call) -> bool:
        return any(self.first.get(call, moment) < moment for call in calls)


_all: "weakref.WeakSet[StepCalls]" = weakref.WeakSet()


class StepCalls:
    """The calls on one optimizer in the steps that have not applied their gradients yet.

    `dynamic_scale` is the variable of TensorFlow that holds its scale.
    """

    def __init__(self, dynamic_scale: Optional[Tensor] = None) -> None:
        self._dynamic_scale = dynamic_scale
        self._lock = threading.Lock()
        self._created = next(_clock)
        # By the thread, or by the outermost graph of a function that is being traced; and in each
        # by the replica, 0 outside of replicas.
        self._steps: MutableMapping[Graph, Dict[int, _CallsOfStep]] = weakref.WeakKeyDictionary()
        self._of_replicas: Dict[int, _CallsOfStep] = {}  # their threads end with each eager step
        # Whether a step called `apply` with gradients of a loss that was scaled elsewhere; and the
        # functions and threads in which `apply_gradients` divided such gradients.
        self._applied_apart = False
        self._divided_apart: weakref.WeakSet[Graph] = weakref.WeakSet()
        # The steps of functions that divide again if the function is traced again.
        self._divides_again: Set[Any] = set()
        self._traced = TracedCalls()
        # Whether a function only applies gradients, so that calls elsewhere were parts of a step.
        self._ends_in_function = False
        # A function that applies gradients of other places, by whether it divides them.
        self._applying: Dict[bool, str] = {}
        self._warnings: Set[str] = set()  # that were logged
        self._scaled_eagerly: Callable[[], Optional[Tensor]] = _nothing  # a weak reference
        _all.add(self)

    def note(self, call: Call, by_keras: bool = False) -> None:
        """Notes a call in the current place; `by_keras`: in the step of `fit`."""
        here = self._here()
        if not by_keras:
            self._warn_of_functions_of_the_other_style(call)
        if by_keras:
            self.begin()  # what was called before, such as by a validation, is no part of `fit`
        self._traced.note(_traced_functions(), TracedCall(call, by_keras))
        here.note(call)
        here.called_in = id(_function())
        if call is Call.SCALE_LOSS and not by_keras:
            here.last_scaled = here.last[call]
            here.losses += 1
        if call is Call.UNSCALE and isinstance(self._place(), tf.Graph):
            is_of_keras_2 = here.has(Call.GET_SCALED_LOSS)
            here.unscales_for_keras_3 = not is_of_keras_2 and self._is_scaled_elsewhere(here)

    def _warn_of_functions_of_the_other_style(self, call: Call) -> None:
        """Logs that a function which was traced in a step of one Keras is kept for the other.

        TensorFlow does not trace it again, so it is not seen where it is called.
        """
        is_of_keras_2 = call in _OF_KERAS_2
        if call is Call.READ_DYNAMIC_SCALE or is_of_keras_2 not in self._applying:
            return
        keras, does = "Keras 3", "applies its gradients as they are"
        if is_of_keras_2:
            keras, does = "Keras 2", "divides its gradients by the loss scale"
        self._warn_once(
            f"The tf.function {self._applying[is_of_keras_2]!r}, which was traced before, {does}. "
            f"Do not pass it gradients of this step, which calls methods of {keras}."
        )

    def note_scaled(self, call: Call, scaled: Tensor) -> None:
        """Notes the scaled loss, a tensor, that a call of this step returned."""
        place = self._place()
        if isinstance(place, tf.Graph):
            is_followed = getattr(scaled, "graph", None) is place
            products = self._here().products.setdefault(call, [])
            products.append(scaled.op.name if is_followed else None)
        elif call is Call.GET_SCALED_LOSS and tf.executing_eagerly():
            self._scaled_eagerly = weakref.ref(scaled)

    def refuse_scaled(self, loss: Loss) -> None:
        """Raises a RuntimeError if `get_scaled_loss` has scaled a loss already."""
        here, place = self._here(), self._place()
        if not here.has(Call.GET_SCALED_LOSS):
            return
        is_scaled = loss is self._scaled_eagerly()
        if isinstance(place, tf.Graph):
            products = here.products.get(Call.GET_SCALED_LOSS, [])
            is_scaled = bool(depend_on_products([loss], place, products))
        if is_scaled:
            here.forget()
            raise RuntimeError(
                "The loss was scaled twice, by get_scaled_loss() and by scale_loss()." + _ADVICE
            )

    def pass_on(self) -> None:
        """Notes that `apply` gets the gradients of the step that `apply_gradients` has ended."""
        here = self._here()
        ended = here.ended
        here.note(Call.SCALE_LOSS)
        here.ended = ended

    def begin(self) -> None:
        """Begins a step: what was called before in this place belongs to no step."""
        self._traced.end(_traced_functions())
        self._here().forget()

    def divides(self, gradients: Gradients, variables: Variables) -> bool:
        """Ends a step with `apply_gradients`; returns whether it has to divide the gradients.

        Args:
          gradients: what it applies; None among them.
          variables: their variables.

        Raises:
          RuntimeError: neither Keras explains the step. Nothing may be applied then.
        """
        here = self._here_with_traced_calls()
        # Whether another trace of the function calls again what this one has called.
        is_called_again = here.called_in == id(_function())
        step = self._step_of_function(here, variables)
        is_apart = step is not None and not here.last and here.ended is None
        try:
            divides = self._divides(here, gradients, variables, step)
        finally:
            self._end(here, variables)
        if divides and step is not None and not is_called_again:
            self._divides_again.add(step)
        if is_apart:
            self._applying[divides] = _traced_functions()[0].name
        return divides

    def _step_of_function(self, here: _CallsOfStep, variables: Variables) -> Any:
        """Returns what the steps of two traces of the same function have in common.

        TensorFlow traces a function twice if it creates variables, and for each kind of arguments.
        What was called eagerly before it is not called again then.
        """
        graph = _function()
        if graph is None:
            return None
        function = function_traced_to(graph)
        key = graph.name if function is None else weakref.ref(function)
        applied = frozenset(id(variable) for variable in variables)
        return key, here.ended_in.get(graph, 0), applied

    def check_apply(self, variables: Variables) -> None:
        """Ends a step with Keras 3's `apply`.

        Args:
          variables: those whose gradients it applies.

        Raises:
          RuntimeError: the gradients may be unscaled already. Nothing may be applied then.
        """
        here = self._here_with_traced_calls()
        try:
            self._check_apply(here)
        finally:
            self._end(here, variables)

    def _end(self, here: _CallsOfStep, variables: Variables) -> None:
        place = self._place()
        if isinstance(place, tf.Graph) and not here.last:
            self._ends_in_function = True
            for eager in self._steps_in(_thread()):
                eager.leave(variables)  # its calls were parts of this step
        here.end(variables)
        self._traced.end(_traced_functions())
        function = _function()
        if function is not None:
            here.ended_in[function] = here.ended_in.get(function, 0) + 1

    def _divides(
        self, here: _CallsOfStep, gradients: Gradients, variables: Variables, step: Any
    ) -> bool:
        """Decides by what was called here, then by earlier steps, then by other places.

        `step` is what this step has in common with other traces of its function.
        """
        if here.has(Call.SCALE_LOSS):
            self._refuse_both_styles(here)
            return True
        if here.has(*_OF_KERAS_2):
            self._refuse_left_over(here)
            return False
        if here.has(Call.READ_DYNAMIC_SCALE):
            return self._is_scaled_by_hand(gradients)
        goes_on: Optional[bool] = False
        if here.ended is not None:
            goes_on = self._goes_on(here, here.ended, gradients, variables)
        if goes_on:
            return True
        here.ended = None
        if step in self._divides_again and not self._is_of_keras_2_eagerly():
            self._divide_again(here)
            return True
        if goes_on is None:
            _refuse_unknown_scaling()
        self._refuse_loss_of_another(here, gradients)
        if not self._is_scaled_elsewhere(here):
            for eager in self._steps_in(_thread()):
                self._warn_of_other_gradients(eager.ended, variables)
            return False
        self._refuse_unknown_parts(here)
        self._use_loss_of_another_place(here)
        return True

    def _divide_again(self, here: _CallsOfStep) -> None:
        """Logs that a function divides because another trace of it did; or raises an error."""
        if self._is_unscaled_elsewhere(here):
            _refuse_unknown_scaling()
        self._warn_once(
            "apply_gradients() divides its gradients by the loss scale in the tf.function "
            f"{_traced_functions()[0].name!r}, because an earlier trace of it divided them. To "
            "apply gradients that are not scaled, use another function."
        )

    def _is_scaled_by_hand(self, gradients: Gradients) -> bool:
        """Returns whether the gradients of a step that only reads `dynamic_scale` are scaled.

        The operations of a function may show that they are not. Nothing shows it in eager mode.
        """
        place, scale = self._place(), self._dynamic_scale
        can_be_followed = isinstance(place, tf.Graph) and scale is not None
        if can_be_followed and depend_on_variable(gradients, place, scale) is False:
            return False
        self._warn_once(
            "apply_gradients() divides its gradients by the loss scale, because the step reads "
            "dynamic_scale and calls nothing else of the optimizer. If the loss is not multiplied "
            "by dynamic_scale, read loss_scale instead."
        )
        return True

    def _goes_on(
        self, here: _CallsOfStep, ended: _EndedStep, gradients: Gradients, variables: Variables
    ) -> Optional[bool]:
        """Returns whether gradients are others of the losses that the ended step scaled.

        None if that cannot be seen: they are arguments of an inner function, or a branch scaled the
        loss. In eager mode, they count for the next step; a warning is given once if they may
        belong to another step.
        """
        place = self._place()
        products = here.products.get(Call.SCALE_LOSS, [])
        if isinstance(place, tf.Graph):
            if None not in products:
                return depend_on_products(gradients, place, products)
            calls = self._traced.operations(place, Call.SCALE_LOSS)
            if depend_on_operations(gradients, place, calls):
                return True
            return None if ended.may_go_on(variables) else False
        self._warn_of_other_gradients(ended, variables)
        return False

    def _warn_of_other_gradients(self, ended: Optional[_EndedStep], variables: Variables) -> None:
        if ended is not None and ended.may_go_on(variables):
            self._warn_once(
                "apply_gradients() applies its gradients as they are, because scale_loss() was not "
                "called since gradients were last applied. If these are other gradients of the "
                "loss that was scaled before, pass them to apply(gradients, variables) instead."
            )

    def _warn_once(self, message: str) -> None:
        if message not in self._warnings:
            self._warnings.add(message)
            tf1.logging.warning(message)

    def _check_apply(self, here: _CallsOfStep) -> None:
        """Raises the error of `check_apply`; notes that a loss of another place was used here."""
        if here.has(Call.SCALE_LOSS):
            self._refuse_both_styles(here)
            return
        if here.last:
            is_unscaled = here.has(*_UNSCALING)
        else:
            is_unscaled = self._is_unscaled_elsewhere(here) and not self._is_scaled_elsewhere(here)
        if is_unscaled:
            raise RuntimeError(
                "apply() divides gradients by the loss scale, but get_unscaled_gradients() has "
                "done so already. Call apply_gradients(zip(gradients, variables))." + _ADVICE
            )
        if not here.last:
            self._applied_apart = True
            self._use_loss_of_another_place(here)

    def _use_loss_of_another_place(self, here: _CallsOfStep) -> None:
        here.last_scaled = next(_clock)
        part = self._part()
        if part is not None:
            self._divided_apart.add(part)

    def _part(self) -> Optional[Any]:
        """Returns what applies gradients here: a `tf.function` or a thread; None for replicas."""
        place = self._place()
        if not isinstance(place, tf.Graph):
            return place
        function = function_traced_to(place)
        return place if function is None else function

    def _refuse_both_styles(self, here: _CallsOfStep) -> None:
        """Raises an error where a loss that `scale_loss` scaled may have met a name of Keras 2."""
        scaled_at = here.first[Call.SCALE_LOSS]
        is_mixed = here.has_after(scaled_at, *_OF_KERAS_2)
        # Gradients that were unscaled before belong to a step that ended in a function.
        is_mixed |= here.has_before(scaled_at, *_UNSCALING) and not self._ends_in_function
        if is_mixed:
            raise RuntimeError(
                "One step called both scale_loss(), of Keras 3, and get_scaled_loss() or "
                "get_unscaled_gradients(), of Keras 2, so it is not known whether its gradients "
                "are scaled." + _ADVICE
            )
        graphs = _functions()
        for owner, step in self._functions_elsewhere(here):
            if step.unscales_for_keras_3 and (not graphs or _calls(graphs, owner)):
                raise RuntimeError(
                    "The loss was scaled by scale_loss(), but its gradients may have been unscaled "
                    f"in the tf.function {owner.name!r}, which calls get_unscaled_gradients()."
                    + _ADVICE
                )

    def _refuse_left_over(self, here: _CallsOfStep) -> None:
        """Raises an error for a step that may only read `dynamic_scale`.

        Its other calls may belong to an earlier step, which ended in a function.
        """
        last = max(here.last, key=lambda call: here.last[call])
        if last is Call.READ_DYNAMIC_SCALE and self._ends_in_function and not _functions():
            raise RuntimeError(
                "apply_gradients() cannot tell whether its gradients are scaled: dynamic_scale was "
                "read after get_scaled_loss() or get_unscaled_gradients(), which may have been "
                "called for an earlier step. Read loss_scale instead of dynamic_scale." + _ADVICE
            )

    def _refuse_unknown_parts(self, here: _CallsOfStep) -> None:
        """Raises an error if it is unknown which steps apply gradients that another part scaled."""
        part = self._part()
        is_known = not (
            self._applied_apart
            or any(other is not part for other in self._divided_apart)
            or self._is_unscaled_elsewhere(here)
            or self._is_scaled_in_another_thread()
        )
        if not is_known:
            _refuse_unknown_scaling()

    def _refuse_loss_of_another(self, here: _CallsOfStep, gradients: Gradients) -> None:
        """Raises an error if another optimizer's `scale_loss` may have scaled the gradients."""
        place = self._place()
        for other in list(_all):
            if other is not self and other._may_have_scaled(gradients, place, here):
                raise RuntimeError(
                    "apply_gradients() cannot tell whether its gradients are scaled: the loss was "
                    "scaled by scale_loss() of another optimizer. Scale it with get_scaled_loss() "
                    "of one optimizer, unscale all gradients with get_unscaled_gradients() of the "
                    "same one, and pass them to apply_gradients() of each." + _ADVICE
                )

    def _may_have_scaled(self, gradients: Gradients, place: Graph, step: _CallsOfStep) -> bool:
        """Whether `scale_loss` of this optimizer may have scaled gradients of another one's step.

        Args:
          gradients: what the other one applies.
          place: where it applies them; None for the replicas.
          step: its step.
        """
        mine = self._steps_in(place)
        for part in mine:
            if part.last_scaled > step.began:
                products = part.products.get(Call.SCALE_LOSS, [])
                may_depend = True
                if isinstance(place, tf.Graph):
                    may_depend = depend_on_products(gradients, place, products) is not False
                if may_depend:
                    return True
        graphs = _functions()
        return any(
            part.has(Call.SCALE_LOSS)
            and part.last_scaled > step.began
            and (not graphs or _calls(graphs, owner))
            for owner, part in self._snapshot()
            if isinstance(owner, tf.Graph) and part not in mine
        )

    def _is_scaled_elsewhere(self, here: _CallsOfStep) -> bool:
        return any(step.has(Call.SCALE_LOSS) for step in self._elsewhere(here))

    def _is_unscaled_elsewhere(self, here: _CallsOfStep) -> bool:
        return any(step.has(*_UNSCALING) for step in self._elsewhere(here))

    def _is_of_keras_2_eagerly(self) -> bool:
        return any(step.has(*_OF_KERAS_2) for step in self._steps_in(_thread()))

    def _is_scaled_in_another_thread(self) -> bool:
        if self._place() is None:
            return False  # a strategy runs the replicas of an eager step in threads of its own
        return any(
            step.has(Call.SCALE_LOSS)
            for owner, step in self._snapshot()
            if isinstance(owner, threading.Thread) and owner is not _thread()
        )

    def _elsewhere(self, here: _CallsOfStep) -> List[_CallsOfStep]:
        steps = [step for _, step in self._snapshot()]
        return [step for step in (*self._steps_in(None), *steps) if step is not here]

    def _functions_elsewhere(self, here: _CallsOfStep) -> List[Tuple[tf.Graph, _CallsOfStep]]:
        return [
            (owner, step)
            for owner, step in self._snapshot()
            if isinstance(owner, tf.Graph) and step is not here
        ]

    def _snapshot(self) -> List[Tuple[Graph, _CallsOfStep]]:
        """Returns the steps in threads and in functions, each with its place."""
        with self._lock:
            return [
                (owner, step) for owner, steps in self._steps.items() for step in steps.values()
            ]

    def _steps_in(self, place: Optional[Graph]) -> List[_CallsOfStep]:
        with self._lock:
            steps = self._of_replicas if place is None else self._steps.get(place, {})
            return list(steps.values())

    def _place(self) -> Optional[Graph]:
        """Returns the thread or the graph that is the current place; None for the replicas."""
        graphs = _functions()
        if graphs:
            return graphs[-1]
        return None if _is_in_replica() else _thread()

    def _here_with_traced_calls(self) -> _CallsOfStep:
        """Returns the current step; if nothing was called in it, with what inner functions call."""
        here = self._here()
        if not here.last:
            for traced in self._traced.pending(reversed(_traced_functions())):
                self.note(traced.call, traced.by_keras)
                here.products.setdefault(traced.call, []).append(None)
        return here

    def _here(self) -> _CallsOfStep:
        place = self._place()
        replica = replica_id() if _is_in_replica() else 0
        # All that happened in a graph belongs to it; a thread may be older than the optimizer.
        began = 0 if isinstance(place, tf.Graph) else self._created
        with self._lock:
            steps = self._of_replicas if place is None else self._steps.setdefault(place, {})
            return steps.setdefault(replica, _CallsOfStep(began))


def _refuse_unknown_scaling() -> None:
    raise RuntimeError(
        "apply_gradients() cannot tell whether its gradients are scaled: scale_loss() was "
        "called in another function or thread, and not all steps apply such gradients "
        "here. Call apply(gradients, variables) for scaled gradients, or call "
        "get_scaled_loss() instead of scale_loss()." + _ADVICE
    )


def _nothing() -> None:
    """Stands for a weak reference whose object is gone."""


def _is_in_replica() -> bool:
    return tf.distribute.has_strategy() and not tf.distribute.in_cross_replica_context()


def _thread() -> threading.Thread:
    return threading.current_thread()


def _functions() -> List[Function]:
    """Returns the graphs of the functions being traced, innermost first; none in eager mode."""
    return [graph for graph in graphs_around() if graph.building_function]


def _traced_functions() -> List[Graph]:
    """Returns the graph of each `tf.function` being traced, but no graph of a branch."""
    return [graph for graph in _functions() if not is_branch(graph)]


def _function() -> Optional[Function]:
    """Returns the graph of the innermost `tf.function` being traced; None in eager mode."""
    return next(iter(_traced_functions()), None)


def _calls(graphs: List[Graph], function: Function) -> bool:
    """Returns whether one of `graphs`, which may be unfinished, calls `function`."""
    return any(
        function.name in definition.signature.name
        for graph in graphs
        for definition in graph.as_graph_def().library.function
    )


# A program may replace these methods without `super` (the maintainers of Keras recommended it for
# scales below 1: tensorflow/tensorflow#38357). What a step calls counts, not what runs then.
_NOTED = {
    "scale_loss": Call.SCALE_LOSS,
    "get_scaled_loss": Call.GET_SCALED_LOSS,
    "get_unscaled_gradients": Call.UNSCALE,
}


def note_overrides(cls: Class) -> None:
    """Makes a user's class note the calls of its own versions of the scaling methods."""
    for name, call in _NOTED.items():
        owner = next((base for base in cls.__mro__ if name in vars(base)), None)
        method = None if owner is None else vars(owner)[name]
        is_noted = hasattr(method, "_notes_calls") or _is_our(owner)
        if is_noted or not isinstance(method, types.FunctionType):
            continue
        # The class of a mixin must not be changed.
        inherited = None if owner is cls else cls
        set_method(cls, name, _noting(name, method, call, inherited))


def _is_our(owner: Optional[type]) -> bool:
    return owner is None or owner.__module__.startswith("tf_lossscale.")


def _noting(name: str, method: Method, call: Call, inherited: Optional[Class]) -> Method:
    """Returns `method`, which also notes the call.

    AutoGraph may convert the result: otherwise, it would no longer convert the method.
    """

    @functools.wraps(method)
    def noting(self: Any, *args: object, **kwargs: object) -> Any:
        self._note(call)
        if inherited is None:
            return method(self, *args, **kwargs)
        return getattr(super(inherited, self), name)(*args, **kwargs)

    noting._notes_calls = True  # type: ignore[attr-defined]
    return noting
