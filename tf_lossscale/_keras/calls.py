"""Determines from earlier calls whether Keras 3's `apply_gradients` receives scaled gradients.

A Keras 2 training loop passes unscaled gradients to `apply_gradients`; the `fit` of Keras 3 passes
scaled ones. The tensors look alike. The difference is which method was called, or traced, before:
after `scale_loss` alone the gradients are scaled, after `get_unscaled_gradients` they are not.

Calls are recorded by *place*. Each thread's eager mode is a place, the replicas of a strategy share
one, and each outermost `tf.function` being traced is one. Calls in the place where the gradients
are applied take precedence. If there are none there (each part of a step may be a function of its
own), the calls in the other places decide. If those disagree, an error is raised.
"""

import threading
import weakref
from typing import Any, List, MutableMapping, Optional, Set

from tf_lossscale._versions.base import tf
from tf_lossscale._versions.graphs import graphs_around

LIKE_KERAS_2, LIKE_KERAS_3, UNSCALED = "get_scaled_loss", "scale_loss", "get_unscaled_gradients"
_SCALED_AFTER = {LIKE_KERAS_3: True, UNSCALED: False}

_ADVICE = (
    " Write a Keras 2 step, get_scaled_loss() -> get_unscaled_gradients() -> apply_gradients(); or "
    "a Keras 3 step, scale_loss() -> apply(gradients, variables)."
)

_EAGER_ADVICE = (
    " A step that runs eagerly does not tell which functions it called: run it as a tf.function, "
    "such as fit() without run_eagerly=True, or delete the function that unscales if it is done."
)


class _Place:
    def __init__(self) -> None:
        # The methods called since gradients were last unscaled, which is included, or applied here.
        self.pending: Set[str] = set()
        self.scaled: Optional[bool] = None  # whether the gradients last applied here were scaled


class ScalingCalls:
    """The scaling methods that were called on one optimizer, by place."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # By the thread, or by the outermost graph of a function being traced.
        self._places: MutableMapping[Any, _Place] = weakref.WeakKeyDictionary()
        self._replicas = _Place()  # their threads end with each eager step

    def note(self, method: str) -> None:
        pending = self._here().pending
        if method == UNSCALED:
            pending.clear()
        pending.add(method)

    def applies_scaled(self) -> bool:
        """Returns whether `apply_gradients` gets scaled gradients; or raises a RuntimeError."""
        here = self._here()
        scaled = here.scaled = self._are_scaled(here)
        here.pending.clear()
        return scaled

    def check_apply(self) -> None:
        """Raises a RuntimeError if the gradients passed to `apply` may be unscaled already."""
        here = self._here()
        if UNSCALED in (here.pending or self._elsewhere(here)):
            raise RuntimeError(
                "apply() divides gradients by the loss scale, but get_unscaled_gradients() has "
                "done so already. Call apply_gradients(zip(gradients, variables))." + _ADVICE
            )
        self._refuse_other_scaling(here)
        here.pending.clear()
        here.scaled = True

    def _are_scaled(self, here: _Place) -> bool:
        pending, elsewhere = here.pending, self._elsewhere(here)
        if LIKE_KERAS_3 in pending:
            if UNSCALED in pending:
                raise RuntimeError(
                    "apply_gradients() cannot tell whether its gradients are scaled: "
                    "scale_loss() was called after get_unscaled_gradients()." + _ADVICE
                )
            self._refuse_other_scaling(here)
            return True
        if pending:
            answers: Set[Optional[bool]] = {False} if UNSCALED in pending | elsewhere else set()
        else:
            answers = {here.scaled, *(_SCALED_AFTER.get(method) for method in elsewhere)} - {None}
            answers = answers or {place.scaled for place in self._others(here)} - {None}
        if len(answers) == 1:
            return bool(answers.pop())
        if answers:
            raise RuntimeError(
                "apply_gradients() cannot tell whether its gradients are scaled: elsewhere, both "
                "scale_loss() and get_unscaled_gradients() were called on this optimizer. Call one "
                "of them in the tf.function that calls apply_gradients(), or apply() for scaled "
                "gradients." + _ADVICE
            )
        if LIKE_KERAS_2 in pending | elsewhere:
            raise RuntimeError(
                "The loss was scaled by get_scaled_loss(), but the gradients were not unscaled: "
                "get_unscaled_gradients() must be called before apply_gradients()." + _ADVICE
            )
        raise RuntimeError(
            "apply_gradients() cannot tell whether its gradients are scaled: no loss and no "
            "gradients have been scaled or unscaled by this optimizer." + _ADVICE
        )

    def _refuse_other_scaling(self, here: _Place) -> None:
        """Raises a RuntimeError after two scalings, or if a function may have unscaled."""
        if here.pending >= {LIKE_KERAS_2, LIKE_KERAS_3}:
            raise RuntimeError(
                "The loss was scaled twice, by get_scaled_loss() and by scale_loss()." + _ADVICE
            )
        graphs = _graphs()
        with self._lock:
            places = list(self._places.items())
        for graph, place in places:
            unscales = place is not here and UNSCALED in place.pending
            if unscales and isinstance(graph, tf.Graph) and (not graphs or _calls(graphs, graph)):
                raise RuntimeError(
                    "The loss was scaled by scale_loss(), but the gradients may have been unscaled "
                    f"in the tf.function {graph.name!r}, which calls get_unscaled_gradients()."
                    + ("" if graphs else _EAGER_ADVICE)
                    + _ADVICE
                )

    def _here(self) -> _Place:
        graphs = _graphs()
        is_replica = tf.distribute.has_strategy() and not tf.distribute.in_cross_replica_context()
        if is_replica and not graphs:
            return self._replicas
        with self._lock:
            owner = graphs[-1] if graphs else threading.current_thread()
            return self._places.setdefault(owner, _Place())

    def _others(self, here: _Place) -> List[_Place]:
        with self._lock:
            return [each for each in (self._replicas, *self._places.values()) if each is not here]

    def _elsewhere(self, here: _Place) -> Set[str]:
        return {method for place in self._others(here) for method in place.pending}


def _graphs() -> List[Any]:
    """Returns the graphs of the functions being traced, innermost first; none in eager mode."""
    return [graph for graph in graphs_around() if graph.building_function]


def _calls(graphs: List[Any], function: Any) -> bool:
    """Returns whether one of `graphs`, which may be unfinished, calls `function`."""
    return any(
        function.name in each.signature.name
        for graph in graphs
        for each in graph.as_graph_def().library.function
    )
