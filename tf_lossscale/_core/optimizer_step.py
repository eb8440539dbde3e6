"""One step of a wrapped optimizer, which is applied on all replicas or on none."""

from typing import Any, Callable, List, Optional, Sequence, Tuple

from tf_lossscale._core.conditional import branch
from tf_lossscale._versions.base import tf
from tf_lossscale._versions.replicas import already_summed

__all__ = ["apply_if", "as_pairs", "require_replica_context"]

Pairs = List[Tuple[Any, Any]]


def _as_text(variables: Sequence[Any]) -> Any:
    return [str(variable) for variable in variables]


def as_pairs(
    grads_and_vars: Any, who: str, names_of: Callable[[Sequence[Any]], Any] = _as_text
) -> Pairs:
    """Returns the pairs as a list; an iterator can be consumed only once.

    Args:
      grads_and_vars: an iterable of pairs of a gradient, or None, and its variable.
      who: name of the class that was called, for the message.
      names_of: returns what the message shows of the variables.

    Raises:
      ValueError: there are no pairs, or no pair has a gradient.
    """
    pairs = list(grads_and_vars)
    if not pairs:
        raise ValueError(
            f"No variables provided. {who}.apply_gradients() was given no pair of a gradient and a "
            "variable; was an iterator of pairs read before?"
        )
    if all(gradient is None for gradient, _ in pairs):
        names = names_of([variable for _, variable in pairs])
        raise ValueError(
            f"No gradients provided for any variable: {names}. Every gradient that "
            f"{who}.apply_gradients() was given is None; check that the loss depends on these "
            "variables."
        )
    return pairs


def apply_if(
    condition: Any,
    apply_gradients: Callable[..., Any],
    pairs: Pairs,
    global_step: Optional[Any],
    name: Optional[str],
    already_summed_for: Sequence[Any] = (),
    skipped: Optional[Callable[[], Any]] = None,
) -> Any:
    """Applies the gradients on all replicas if `condition` is true, in a cross-replica context.

    Args:
      condition: bool tensor of shape `[]`, or a Python bool, for which no conditional is created.
      apply_gradients: that of the inner optimizer.
      pairs: gradients and variables; under a strategy, the values of all replicas.
      global_step: variable that an applied step increments by one, or None.
      name: name for the operations, or None.
      already_summed_for: optimizers that must not sum the gradients over the replicas again.
      skipped: runs in a skipped step; returns an operation, None in eager mode.

    Returns:
      An operation or tensor to run; None in eager mode.
    """

    def step() -> Any:
        if not tf.distribute.has_strategy():
            return _one_operation(apply_gradients(pairs, global_step, name))
        strategy = tf.distribute.get_strategy()
        with already_summed(already_summed_for):
            results = strategy.extended.call_for_each_replica(
                apply_gradients, args=(pairs, global_step, name)
            )
        return _one_operation(*strategy.experimental_local_results(results))

    if isinstance(condition, bool):
        if condition:
            return step()
        done = None if skipped is None else skipped()
        return tf.no_op() if done is None else done
    applied = branch(condition, step, skipped)
    return None if tf.executing_eagerly() else applied


def require_replica_context(method: str = "apply_gradients") -> None:
    """Raises a ValueError where `method` is called outside the replicas of a strategy."""
    if tf.distribute.has_strategy() and tf.distribute.in_cross_replica_context():
        raise ValueError(
            f"{method}() must be called in a replica context. Call it in the function that "
            "`strategy.run` (`strategy.experimental_run_v2` in TensorFlow 1.15) runs."
        )


def _one_operation(*results: Any) -> Any:
    """Groups what the replicas returned; None in eager mode, where it has run already."""
    return tf.group(*[each for each in tf.nest.flatten(list(results)) if each is not None])
