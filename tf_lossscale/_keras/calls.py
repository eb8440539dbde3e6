"""Whether gradients on Keras 3 are still scaled when they are applied, told by what was called.

In Keras 2 `apply_gradients` is given unscaled gradients, in Keras 3, where `fit` calls it, scaled
ones. The gradients look alike; what differs is the method that was called, or traced, before:
`scale_loss` alone leaves them scaled, `get_unscaled_gradients` does not.

Calls are remembered by *place*: the eager mode of each thread is one (the replicas of a strategy
share another), and so is each outermost `tf.function` that is traced. What was called in the place
where gradients are applied tells most; where nothing was (the pieces of a step are functions of
their own), the calls in other places do. Where they tell two different stories, nothing is guessed.
"""

import threading
import weakref
from typing import Any, Iterator, List, MutableMapping, Optional, Set, Tuple

from tf_lossscale._versions.base import tf, tf1

__all__ = ["ScalingCalls"]

LIKE_KERAS_2, LIKE_KERAS_3, UNSCALED = "get_scaled_loss", "scale_loss", "get_unscaled_gradients"

_ADVICE = (
    " Write a Keras 2 step, get_scaled_loss() -> get_unscaled_gradients() -> apply_gradients(); or "
    "a Keras 3 step, scale_loss() -> apply(gradients, variables)."
)

_EAGER_ADVICE = (
    " A step that runs eagerly does not tell which functions it called: run it as a tf.function, "
    "such as fit() without run_eagerly=True, or delete the function that unscales if it is done."
)


class _Place:
    """What was called in one place.

    Attributes:
      pending: the methods called since gradients were last unscaled or applied here, and
        `get_unscaled_gradients` itself.
      scaled: whether the gradients that were last applied here were scaled; None if none were.
    """

    def __init__(self) -> None:
        self.pending: Set[str] = set()
        self.scaled: Optional[bool] = None


class ScalingCalls:
    """What was called on one optimizer, and where."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._threads: MutableMapping[Any, _Place] = weakref.WeakKeyDictionary()
        self._replicas = _Place()  # their threads end with each eager step
        self._traced: MutableMapping[Any, _Place] = weakref.WeakKeyDictionary()

    def note(self, method: str) -> None:
        """Remembers that `method` was called or traced.

        Args:
          method: `get_scaled_loss`, `scale_loss` or `get_unscaled_gradients`.
        """
        pending = self._here().pending
        if method == UNSCALED:
            pending.clear()
        pending.add(method)

    def applies_scaled(self) -> bool:
        """Returns whether the gradients that `apply_gradients` is given now are scaled.

        Raises:
          RuntimeError: this cannot be told, or they would be left scaled, or unscaled twice.
        """
        here = self._here()
        scaled = self._told_here(here) if here.pending else self._told_elsewhere(here)
        here.pending.clear()
        here.scaled = scaled
        return scaled

    def check_apply(self) -> None:
        """Makes sure that the gradients that `apply` is given now were not unscaled before.

        Raises:
          RuntimeError: they were, or this cannot be told.
        """
        here = self._here()
        if UNSCALED in here.pending or (UNSCALED in self._elsewhere(here) and not here.pending):
            raise RuntimeError(
                "apply() divides gradients by the loss scale, but get_unscaled_gradients() has "
                "done so already. Call apply_gradients(zip(gradients, variables))." + _ADVICE
            )
        _refuse_two_scalings(here)
        self._refuse_unscaling_elsewhere(here)
        here.pending.clear()
        here.scaled = True

    def _told_here(self, here: _Place) -> bool:
        pending = here.pending
        if UNSCALED in pending:
            if LIKE_KERAS_3 in pending:
                raise RuntimeError(
                    "apply_gradients() cannot tell whether its gradients are scaled: "
                    "scale_loss() was called after get_unscaled_gradients()." + _ADVICE
                )
            return False
        if LIKE_KERAS_3 not in pending:
            if UNSCALED not in self._elsewhere(here):
                raise RuntimeError(_LEFT_SCALED + _ADVICE)
            return False
        _refuse_two_scalings(here)
        self._refuse_unscaling_elsewhere(here)
        return True

    def _told_elsewhere(self, here: _Place) -> bool:
        methods = self._elsewhere(here)
        stories = {here.scaled} - {None}
        stories |= {scaled for scaled, method in _TELLING if method in methods}
        if not stories:
            stories = {place.scaled for place in self._others(here)} - {None}
        if len(stories) == 1:
            return bool(stories.pop())
        if stories:
            raise RuntimeError(
                "apply_gradients() cannot tell whether its gradients are scaled: elsewhere, both "
                "scale_loss() and get_unscaled_gradients() were called on this optimizer. Call one "
                "of them in the tf.function that calls apply_gradients(), or apply() for scaled "
                "gradients." + _ADVICE
            )
        if LIKE_KERAS_2 in methods:
            raise RuntimeError(_LEFT_SCALED + _ADVICE)
        raise RuntimeError(
            "apply_gradients() cannot tell whether its gradients are scaled: no loss and no "
            "gradients have been scaled or unscaled by this optimizer." + _ADVICE
        )

    def _refuse_unscaling_elsewhere(self, here: _Place) -> None:
        """Refuses scaled gradients that a function traced before may have unscaled."""
        graphs = list(_graphs())
        with self._lock:
            traced = list(self._traced.items())
        for graph, place in traced:
            if place is here or UNSCALED not in place.pending:
                continue
            if not graphs or _calls(graphs, graph):
                raise RuntimeError(
                    "The loss was scaled by scale_loss(), but the gradients may have been unscaled "
                    f"in the tf.function {graph.name!r}, which calls get_unscaled_gradients()."
                    + ("" if graphs else _EAGER_ADVICE)
                    + _ADVICE
                )

    def _here(self) -> _Place:
        graphs = list(_graphs())
        with self._lock:
            if graphs:
                return self._traced.setdefault(graphs[-1], _Place())
            if tf.distribute.has_strategy() and not tf.distribute.in_cross_replica_context():
                return self._replicas
            return self._threads.setdefault(threading.current_thread(), _Place())

    def _others(self, here: _Place) -> List[_Place]:
        with self._lock:
            places = [self._replicas, *self._threads.values(), *self._traced.values()]
        return [each for each in places if each is not here]

    def _elsewhere(self, here: _Place) -> Set[str]:
        return {method for place in self._others(here) for method in place.pending}


_TELLING: Tuple[Tuple[bool, str], ...] = ((False, UNSCALED), (True, LIKE_KERAS_3))

_LEFT_SCALED = (
    "The loss was scaled by get_scaled_loss(), but the gradients were not unscaled: "
    "get_unscaled_gradients() must be called before apply_gradients()."
)


def _refuse_two_scalings(place: _Place) -> None:
    if place.pending >= {LIKE_KERAS_2, LIKE_KERAS_3}:
        raise RuntimeError(
            "The loss was scaled twice, by get_scaled_loss() and by scale_loss()." + _ADVICE
        )


def _graphs() -> Iterator[Any]:
    """The graphs of the functions that are being traced, innermost first; none in eager mode."""
    if tf.executing_eagerly():
        return
    graph = tf1.get_default_graph()
    while graph is not None and graph.building_function:
        yield graph
        graph = getattr(graph, "outer_graph", None)


def _calls(graphs: List[Any], function: Any) -> bool:
    """Whether one of `graphs`, unfinished as they are, calls a function that was traced before."""
    return any(
        function.name in each.signature.name
        for graph in graphs
        for each in graph.as_graph_def().library.function
    )
