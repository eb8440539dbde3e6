"""What was called on an optimizer in functions that TensorFlow traces once and then only calls.

The second call of a `tf.function` is one operation, and nothing of its Python code runs. If another
function is traced with that operation, for example because its arguments are of another kind, the
step in it has made the same calls as before, but they are not noted. Here they are looked up.
"""

import weakref
from typing import Iterable, Iterator, List, MutableMapping, NamedTuple

from tf_lossscale._types import Function, Graph, Operation
from tf_lossscale._versions.graphs import calls_of_functions


class TracedCall(NamedTuple):
    """A call on the optimizer; or, with None, the end of a step."""

    call: Operation
    by_keras: bool = False  # in the step of `fit`


_END = TracedCall(None)


class TracedCalls:
    """The calls of the functions of one optimizer: those after the last step that each ended."""

    def __init__(self) -> None:
        self._calls: MutableMapping[Function, List[TracedCall]] = weakref.WeakKeyDictionary()
        # How many operations a graph had when a step ended in it.
        self._ended_after: MutableMapping[Function, int] = weakref.WeakKeyDictionary()

    def note(self, functions: Iterable[Function], call: TracedCall) -> None:
        """Notes a call in the graphs of `functions`, which are being traced around each other."""
        for function in functions:
            self._calls.setdefault(function, []).append(call)

    def end(self, functions: Iterable[Function]) -> None:
        """Notes that a step has ended in the graphs of `functions`, or that one begins."""
        for function in functions:
            self._calls[function] = [_END]
            self._ended_after[function] = len(function.get_operations())

    def pending(self, functions: Iterable[Function]) -> List[TracedCall]:
        """Returns the calls since the last step, made by operations that call finished functions.

        Args:
          functions: the graphs that are being traced around each other, outermost first.
        """
        calls: List[TracedCall] = []
        for function in functions:
            calls.extend(self._made_by(function, self._ended_after.get(function, 0)))
        return _after_last_step(calls)

    def _made_by(self, graph: Graph, start: int = 0) -> List[TracedCall]:
        calls: List[TracedCall] = []
        for _, function in calls_of_functions(graph, start):
            calls.extend(self._made_in(function))
        return calls

    def _made_in(self, function: Function) -> List[TracedCall]:
        own = self._calls.get(function)
        return self._made_by(function) if own is None else own

    def operations(self, graph: Graph, call: Operation) -> Iterator[Operation]:
        """Yields the operations of `graph` that call a function in which `call` was called."""
        for operation, function in calls_of_functions(graph):
            if any(made.call is call for made in self._made_in(function)):
                yield operation


def _after_last_step(calls: List[TracedCall]) -> List[TracedCall]:
    if _END not in calls:
        return calls
    ends = [position for position, call in enumerate(calls) if call == _END]
    return calls[ends[-1] + 1 :]
