"""Passes gradients that are already summed over the replicas to an inner optimizer.

Under a strategy, a `tf.compat.v1.train.Optimizer` sums the gradients of the replicas itself at the
start of its step. Optimizers with an `apply_gradients` of their own that assigns to the variables,
such as BERT's, know nothing of replicas.
"""

import contextlib
import functools
from typing import Any, Iterator, Optional, Sequence, Tuple

from tf_lossscale._core.gradient_sums import chain_of
from tf_lossscale._core.shards import Shards, group_of
from tf_lossscale._versions.base import do_not_convert, tf, tf1
from tf_lossscale._versions.overridden_methods import overridden
from tf_lossscale._versions.replicas import already_summed, replicas_of_workers_before

__all__ = ["apply_summed"]

_Base = tf1.train.Optimizer


@do_not_convert
def apply_summed(
    optimizer: Any,
    pairs: Sequence[Tuple[Any, Any]],
    shards: Shards,
    groups: Sequence[Sequence[int]],
    global_step: Optional[Any],
    name: Optional[str],
) -> Any:
    """Applies summed gradients, in a replica context.

    Each replica applies its own sum to its own copy of the variables. With subgroups, the copies of
    different groups therefore diverge, as on a TPU. An optimizer that assigns takes one step for
    all replicas of a process, so these must be in the same group.

    Args:
      optimizer: the inner optimizer.
      pairs: sums, or None, and variables.
      shards: the replicas of a strategy.
      groups: numbers of the replicas whose gradients each sum contains.
      global_step: variable that the step advances by one, or None.
      name: name for the operation, or None.

    Raises:
      NotImplementedError: the optimizer assigns, and the replicas of this process have different
        sums.
    """
    chain = chain_of(optimizer)
    assigning = [inner for inner in chain if _assigns(inner)]
    if assigning:
        _check_one_sum(assigning[0], shards, groups)
    with already_summed(chain), _once_for_all(assigning):
        return optimizer.apply_gradients(pairs, global_step, name)


@contextlib.contextmanager
def _once_for_all(optimizers: Sequence[Any]) -> Iterator[None]:
    """Within the block, takes a step once that each replica of the process calls."""
    with overridden(
        optimizers, "apply_gradients", lambda optimizer: functools.partial(_apply_once, optimizer)
    ):
        yield


def _apply_once(
    optimizer: Any, pairs: Any, global_step: Optional[Any] = None, name: Optional[str] = None
) -> Any:
    def once(strategy: Any, gradients: Any, variables: Any) -> Any:
        # Depend on all sums, not only on the first: the replicas wait for each other in them, and a
        # Session runs only the operations that are needed.
        copies = [strategy.experimental_local_results(gradient) for gradient in gradients]
        sums = [x for values in copies for x in values if x is not None]
        # Operations, because in TensorFlow 2.4 a branch does not wait for tensors from outside.
        with tf.control_dependencies(sums if tf.executing_eagerly() else [x.op for x in sums]):
            first = [None if values[0] is None else tf.identity(values[0]) for values in copies]
        step = type(optimizer).apply_gradients
        return step(optimizer, list(zip(first, variables)), global_step, name)

    gradients, variables = zip(*pairs)
    context = tf.distribute.get_replica_context()
    return context.merge_call(once, args=(list(gradients), list(variables)))


def _check_one_sum(optimizer: Any, shards: Shards, groups: Sequence[Sequence[int]]) -> None:
    first = replicas_of_workers_before(shards.strategy)
    local = range(first, first + len(shards.strategy.extended.worker_devices))
    if len({group_of(replica, groups) for replica in local}) > 1:
        raise NotImplementedError(
            f"group_assignment={[list(group) for group in groups]} gives the replicas "
            f"{local[0]} to {local[-1]} of this process different sums, but "
            f"{type(optimizer).__name__}.apply_gradients assigns to the variables of all of them "
            "at once, and has no update of one variable that each replica could make. Give it a "
            "_resource_apply_dense(grad, handle) in place of apply_gradients (see "
            "examples/bert_style.py), put all replicas of a process into one group, or leave "
            "group_assignment out."
        )


def _assigns(optimizer: Any) -> bool:
    """Returns whether an optimizer replaces the step and has no update for a single gradient."""
    cls = type(optimizer)
    return (
        cls.apply_gradients is not _Base.apply_gradients
        and cls._resource_apply_dense is _Base._resource_apply_dense
        and not cls.__module__.startswith("tf_lossscale.")
    )
