"""Puts together what the replicas of a strategy contribute to one step."""

import threading
from typing import Any, Callable, List, NamedTuple, Optional, Sequence, Tuple

from tf_lossscale._core.gradient_sums import leaves_sum_to_tensorflow
from tf_lossscale._core.replicas import replica_count
from tf_lossscale._versions.base import do_not_convert, tf, tf1
from tf_lossscale._versions.graphs import in_xla_context
from tf_lossscale._versions.keras import keras_family
from tf_lossscale._versions.keras_optimizers import has_own_aggregation, overrides
from tf_lossscale._versions.recorded_classes import Recorded
from tf_lossscale._versions.replicas import estimator_scales_loss

__all__ = ["Contribution", "Gradients", "here", "loss_factor", "sums_replicas", "together"]


class Contribution:
    """The part of one replica in a step.

    It is not a tuple: a strategy passes it on without looking into it.

    Attributes:
      loss: the unscaled loss of this replica, or None if it is not known.
      gradients: its gradients, and None.
    """

    def __init__(self, loss: Optional[Any], gradients: Sequence[Any]) -> None:
        self.loss = loss
        self.gradients = gradients


class Gradients(NamedTuple):
    """The gradients of a step.

    Attributes:
      tested: for each variable, the tensors that must be finite.
      applied: gradients whose common norm is that of the applied gradients. There are several lists
        if that is only so if their norms are equal, and none if the norm cannot be known.
    """

    tested: List[List[Any]]
    applied: List[List[Any]]

    @classmethod
    def of(cls, replicas: Sequence[Contribution], are_sums: bool, are_summed: bool) -> "Gradients":
        """Returns those of a step.

        Args:
          replicas: what each replica contributes.
          are_sums: whether the gradients of each replica are sums over all replicas already.
          are_summed: otherwise, whether the step applies their plain sum.
        """
        values = [[_values(each) for each in replica.gradients] for replica in replicas]
        columns = [[each for each in column if each is not None] for column in zip(*values)]
        rows = [[each for each in replica.gradients if each is not None] for replica in replicas]
        is_sparse = any(isinstance(each, tf.IndexedSlices) for row in rows for each in row)
        if is_sparse and in_xla_context():
            return cls(columns, [])  # the rows of a sparse gradient cannot be found
        if len(replicas) == 1 or are_sums:
            return cls(columns, rows)
        if not are_summed:
            return cls(columns, [])
        given = zip(*[replica.gradients for replica in replicas])
        sums = [_sum([each for each in same if each is not None]) for same in given]
        applied = [each for each in sums if each is not None]
        return cls([[] if each is None else [_values(each)] for each in sums], [applied])


def _sum(gradients: Sequence[Any]) -> Optional[Any]:
    """Returns the sum of gradients of one variable; None without any."""
    if not gradients:
        return None
    if not isinstance(gradients[0], tf.IndexedSlices):
        return tf.add_n([tf.convert_to_tensor(each) for each in gradients])
    return tf.IndexedSlices(
        tf.concat([each.values for each in gradients], 0),
        tf.concat([each.indices for each in gradients], 0),
        dense_shape=gradients[0].dense_shape,
    )


def _values(gradient: Any) -> Any:
    if isinstance(gradient, tf.IndexedSlices):
        gradient = gradient.values
    return None if gradient is None else tf.convert_to_tensor(gradient)


def here() -> Tuple[Any, Any]:
    """Returns the graph (None in eager mode) and the replica that operations are created for.

    A replica is the thread that it runs in: its number is a tensor, which would be one more
    operation in the graph. In eager mode, other threads of the program may train, too.
    """
    graph = None if tf.executing_eagerly() else tf1.get_default_graph()
    several = graph is None or replica_count() > 1
    return graph, (threading.current_thread() if several else None)


def loss_factor(kind: Recorded) -> float:
    """Returns what the sum of the losses of all replicas is multiplied with.

    The gradients of the replicas are added up, so they belong to the sum of the losses. Within an
    Estimator, v1 optimizers divide a mean loss by the number of replicas.
    """
    divides = kind.family in ("contrib", "v1") and estimator_scales_loss()
    return 1 / replica_count() if divides else 1.0


def sums_replicas(kind: Recorded, inner: Any) -> bool:
    """Returns whether a step applies the plain sum of the gradients of all replicas.

    Args:
      kind: the class of the loss-scale optimizer.
      inner: the optimizer that it wraps.
    """
    if kind.family in ("contrib", "v1"):
        return leaves_sum_to_tensorflow(inner)
    family = keras_family(inner)
    if family is None:
        return False
    if family.kind == "legacy":
        return not has_own_aggregation(family, inner)
    return not overrides(family, inner, "aggregate_gradients", "_all_reduce_sum_gradients")


@do_not_convert
def together(function: Callable[[Sequence[Contribution]], Any], mine: Contribution) -> Any:
    """Calls `function` once for all replicas.

    Args:
      function: takes what each replica contributes.
      mine: what this replica contributes.

    Returns:
      What `function` returned.
    """
    if replica_count() == 1:
        return function([mine])

    @do_not_convert
    def in_cross_replica(strategy: Any, given: Any) -> Any:
        with tf1.device(strategy.extended.worker_devices[0]):
            return function(strategy.experimental_local_results(given))

    return tf.distribute.get_replica_context().merge_call(in_cross_replica, args=(mine,))
