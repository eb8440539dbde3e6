"""Operations that do not change the random seeds of others.

In a graph with a seed, TensorFlow 1.15 derives the seed of a random operation from the number of
operations before it. An operation that only watches a program would change its random numbers.
"""

import contextlib
from typing import Any, Iterator, List

from tf_lossscale._versions.base import TF_VERSION, tf, tf1

__all__ = ["without_changing_seeds"]

_SEEDS_COUNT_OPERATIONS = TF_VERSION < (2, 3)
_UNCOUNTED = "_tfls_uncounted_operations"


@contextlib.contextmanager
def without_changing_seeds() -> Iterator[None]:
    """Keeps the operations created within the block from changing the seeds of later ones."""
    if not _SEEDS_COUNT_OPERATIONS or tf.executing_eagerly():
        yield
        return
    _exclude_uncounted()
    graphs = _graphs()
    before = [_counted(graph) for graph in graphs]
    try:
        yield
    finally:
        for graph, count in zip(graphs, before):
            added = _counted(graph) - count  # less what a nested block has excluded already
            setattr(graph, _UNCOUNTED, getattr(graph, _UNCOUNTED, 0) + added)


def _counted(graph: Any) -> int:
    return int(graph._next_id_counter - getattr(graph, _UNCOUNTED, 0))


def _graphs() -> List[Any]:
    """Returns the current graph and those around it."""
    graphs, graph = [], tf1.get_default_graph()
    while graph is not None:
        graphs.append(graph)
        graph = getattr(graph, "outer_graph", None)
    return graphs


def _exclude_uncounted() -> None:
    # The seeds of a graph are taken from this private property, which nothing else reads.
    if isinstance(tf1.Graph._last_id, property) and tf1.Graph._last_id.fget is not _counted:
        tf1.Graph._last_id = property(_counted)
