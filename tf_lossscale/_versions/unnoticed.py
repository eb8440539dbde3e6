"""Operations of the shim that change neither names nor random numbers of the program."""

import contextlib
from typing import Iterator

from tf_lossscale._types import Graph, Operation
from tf_lossscale._versions.base import has, tf, tf1
from tf_lossscale._versions.graphs import graphs_around
from tf_lossscale._versions.interventions import exclude_from_seeds
from tf_lossscale._versions.releases import Since

_UNCOUNTED = "_tfls_uncounted_operations"


@contextlib.contextmanager
def unnoticed(scope: str) -> Iterator[None]:
    """Keeps the operations within the block from changing names and random numbers of others.

    Their scope has a slash at its end, which makes it an absolute name.
    """
    if tf.executing_eagerly():
        yield
        return
    graphs = [] if has(Since.SEEDS_COUNT_RANDOM_OPERATIONS) else list(graphs_around())
    for graph in graphs:
        exclude_from_seeds(tf1.Graph, graph, _counted)
    before = [_counted(graph) for graph in graphs]
    try:
        with tf1.name_scope(scope):
            yield
    finally:
        for graph, count in zip(graphs, before):
            added = _counted(graph) - count  # less what a nested block has excluded already
            setattr(graph, _UNCOUNTED, getattr(graph, _UNCOUNTED, 0) + added)


def _counted(graph: Graph) -> int:
    return int(graph._next_id_counter - getattr(graph, _UNCOUNTED, 0))


def add_control_input(operation: Operation, before: Operation) -> None:
    """Makes an operation of a graph wait for another one, even one that was created later."""
    operation._add_control_input(before)


def runs_stateful_operations(graph: Graph) -> bool:
    """Returns whether a graph runs stateful operations in any case, as a function's graph does."""
    return bool(getattr(graph, "_add_control_dependencies", False))
