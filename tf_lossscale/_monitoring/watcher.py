"""Counts the steps of one optimizer where they are built, and the skipped ones in their branch."""

import contextlib
import weakref
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

from tf_lossscale._core.first_bad import first_bad
from tf_lossscale._core.step_watchers import StepWatcher, WatchedStep
from tf_lossscale._monitoring.counters import Counters, own_scope
from tf_lossscale._monitoring.optimizers import current_scale
from tf_lossscale._versions.base import tf, tf1, where
from tf_lossscale._versions.graphs import in_xla_context
from tf_lossscale._versions.watching import without_changing_seeds

__all__ = ["Watcher", "unnoticed", "variable_name"]


def variable_name(variable: Any) -> str:
    """Returns the name of a variable, in Keras 3 with the names of its layers."""
    # The attributes of a distributed variable that its class lacks are looked up in one copy of it,
    # which creates operations.
    name = variable.path if hasattr(type(variable), "path") else variable.name
    return str(name).split(":")[0]


class Watcher(StepWatcher):
    """Has counters for eager mode, and for each graph of a Session.

    Args:
      optimizer: the loss-scale optimizer.
    """

    def __init__(self, optimizer: Any) -> None:
        self._optimizer = weakref.ref(optimizer)
        self._counters: Dict[Any, Counters] = {}
        self._names: List[str] = []
        self._first: Dict[Tuple[str, ...], int] = {}

    def begin(
        self, variables: Sequence[Any], gradients: Sequence[Sequence[Any]]
    ) -> Optional[WatchedStep]:
        """Begins a step: `StepWatcher`."""
        counters = self._counters.get(_outermost_graph())
        with unnoticed():
            if counters is None:
                counters = self._counters[_outermost_graph()] = Counters(self._scale)
            if not counters.eager and in_xla_context():
                raise NotImplementedError(
                    "tf_lossscale.monitoring.Monitor cannot count the steps that XLA compiles in a "
                    "Session. Remove the Monitor, or compile a tf.function in eager mode."
                )
            ready = counters.prepare()
        return _Step(self, counters, variables, gradients, ready)

    def number_of(self, variables: Sequence[Any]) -> int:
        """Returns the number of the first of `variables`; those of the others follow."""
        names = tuple(variable_name(each) for each in variables)
        if names not in self._first:
            self._first[names] = len(self._names)
            self._names.extend(names)
        return self._first[names]

    def name(self, number: int) -> str:
        """Returns the name of a variable by its number."""
        return self._names[number]

    def counters(self, graph: Any) -> Optional[Counters]:
        """Returns the counters of a graph (None: of eager mode), or None before its first step."""
        return self._counters.get(graph)

    def graphs(self) -> List[Any]:
        """Returns the graphs with steps; None stands for eager mode."""
        return list(self._counters)

    def _scale(self) -> Any:
        return current_scale(self._optimizer())


class _Step(WatchedStep):
    def __init__(
        self,
        watcher: Watcher,
        counters: Counters,
        variables: Sequence[Any],
        gradients: Sequence[Sequence[Any]],
        ready: Sequence[Any],
    ) -> None:
        self._watcher = watcher
        self._counters = counters
        self._variables = variables
        self._gradients = gradients
        self._ready = ready

    def skipped(self) -> Any:
        first = self._watcher.number_of(self._variables)
        with unnoticed(), tf1.control_dependencies(self._ready):
            count = len(self._gradients)
            position = first_bad(self._gradients)
            is_bad = tf.less(position, tf.constant(count, tf.int64))
            none = tf.constant(-1, tf.int64)
            return self._counters.count_skip(where(is_bad, position + first, none))

    def finished(self, applied: Any) -> Any:
        in_graph = applied is not None and not tf.executing_eagerly()
        after = [applied] if in_graph else []
        with unnoticed(), tf1.control_dependencies([*self._ready, *after]):
            return self._counters.count_step()


@contextlib.contextmanager
def unnoticed() -> Iterator[None]:
    """Keeps the operations within the block from changing names and random numbers of others."""
    if tf.executing_eagerly():
        yield
        return
    with without_changing_seeds(), own_scope():
        yield


def _outermost_graph() -> Any:
    with tf.init_scope():
        return None if tf.executing_eagerly() else tf1.get_default_graph()
