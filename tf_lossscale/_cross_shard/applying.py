"""How an inner optimizer gets gradients that are summed over replicas already.

A `tf.compat.v1.train.Optimizer` under a strategy adds the gradients of the replicas up itself, at
the start of its step; those that do the whole step in their own `apply_gradients`, by assigning to
the variables as the optimizer of BERT does, know nothing of replicas.
"""

from typing import Any, List, Optional, Sequence, Tuple

from tf_lossscale._versions import already_summed, not_converted, sum_is_off, tf, tf1

__all__ = ["adds_replicas_up", "apply_summed"]

_Base = tf1.train.Optimizer


def adds_replicas_up(optimizer: Any) -> bool:
    """Returns whether all that the step goes through leaves the gradients to TensorFlow's sum.

    True for TensorFlow's own optimizers, and our loss-scale optimizers around them. Not for a class
    that has an `apply_gradients` of its own: it is to see the sums.
    """
    return not sum_is_off(optimizer) and all(
        type(each).apply_gradients is _Base.apply_gradients
        or type(each).__module__.startswith(("tf_lossscale._contrib.", "tf_lossscale._v1."))
        for each in _chain(optimizer)
    )


@not_converted
def apply_summed(
    optimizer: Any,
    pairs: Sequence[Tuple[Any, Any]],
    global_step: Optional[Any],
    name: Optional[str],
) -> Any:
    """Applies gradients that are sums, in a replica context.

    Each replica applies its own sum to its own copy of the variables, so with subgroups the copies
    of different groups go different ways, as they do on a TPU. An optimizer that assigns takes one
    step for all, with the sum of the first replica of each process.

    Args:
      optimizer: the inner optimizer.
      pairs: sums, or None, and variables.
      global_step: variable that the step advances by one, or None.
      name: name for the operation, or None.

    Returns:
      What the optimizer's `apply_gradients` returns.
    """
    if not _assigns(optimizer):
        with already_summed(_chain(optimizer)):
            return optimizer.apply_gradients(pairs, global_step, name)

    def once(strategy: Any, gradients: Any, variables: Any) -> Any:
        first = [
            None if each is None else strategy.experimental_local_results(each)[0]
            for each in gradients
        ]
        return optimizer.apply_gradients(list(zip(first, variables)), global_step, name)

    gradients, variables = zip(*pairs)
    context = tf.distribute.get_replica_context()
    return context.merge_call(once, args=(list(gradients), list(variables)))


def _assigns(optimizer: Any) -> bool:
    """Whether an optimizer has no rule for a single gradient, and so none that TensorFlow uses."""
    cls = type(optimizer)
    return (
        cls.apply_gradients is not _Base.apply_gradients
        and cls._resource_apply_dense is _Base._resource_apply_dense
        and not cls.__module__.startswith("tf_lossscale.")
    )


def _chain(optimizer: Any) -> List[Any]:
    """Lists an optimizer and all that it holds, and they hold."""
    found: List[Any] = []
    waiting = [optimizer]
    while waiting:
        each = waiting.pop()
        if isinstance(each, _Base) and not any(each is other for other in found):
            found.append(each)
            waiting.extend(vars(each).values())
    return found
