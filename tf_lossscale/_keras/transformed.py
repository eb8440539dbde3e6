"""The finite check of what an inner `OptimizerV2` makes of gradients while it applies them.

A `gradient_transformers` argument, an override of `_transform_gradients`, and up to TensorFlow 2.4
one of `_aggregate_gradients`, run within `apply_gradients` of the inner optimizer, and can make an
infinity or a NaN of finite gradients. They have run when it calls its `_distributed_apply`. So that
method is replaced for the time of the step, by one that tests what it is given first.
"""

import contextlib
from typing import Any, Callable, Iterator, List

from tf_lossscale._branch import branch
from tf_lossscale._finite import all_finite
from tf_lossscale._overriding import overridden
from tf_lossscale._versions import tf

__all__ = ["check_transformed"]


@contextlib.contextmanager
def check_transformed(optimizer: Any) -> Iterator[Callable[[], Any]]:
    """Keeps an `OptimizerV2` from applying gradients that are not finite, within the block.

    Args:
      optimizer: the inner optimizer.

    Yields:
      A function that returns a bool tensor of shape `[]`: whether the gradients were finite. It is
      called in the graph in which they were applied.
    """
    flags: List[Any] = []

    def if_finite(distribution: Any, grads_and_vars: Any, *args: Any, **kwargs: Any) -> Any:
        pairs = list(grads_and_vars)
        values = [
            value
            for gradient, _ in pairs
            for value in distribution.experimental_local_results(gradient)
        ]
        flags.append(all_finite(values))

        def run() -> Any:
            method = type(optimizer)._distributed_apply
            done = method(optimizer, distribution, pairs, *args, **kwargs)
            if tf.executing_eagerly():
                return None
            return tf.group(*[each for each in tf.nest.flatten([done]) if each is not None])

        return branch(flags[-1], run)

    with overridden([optimizer], "_distributed_apply", lambda _: if_finite):
        yield lambda: flags[-1] if flags else tf.constant(True)
