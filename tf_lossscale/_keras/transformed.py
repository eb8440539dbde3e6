"""The finite check of what an inner optimizer makes of gradients while it applies them.

A `gradient_transformers` argument, an option such as `global_clipnorm`, and overrides of methods
such as `_transform_gradients` or `_clip_gradients` run within a step of the inner optimizer, and
can make an infinity or a NaN of finite gradients. They have run when it calls the method that
updates the variables. So that method is replaced for the time of the step, by one that tests what
it is given first. What `update_step` and the like do with one gradient after another, while the
variables change, is not tested.
"""

import contextlib
from typing import Any, Callable, Iterator, List, Optional

from tf_lossscale._core.conditional import branch
from tf_lossscale._core.finite import all_finite
from tf_lossscale._versions.base import tf, tf1
from tf_lossscale._versions.keras import KerasFamily
from tf_lossscale._versions.keras_updates import UpdateMethods, update_methods
from tf_lossscale._versions.overridden_methods import overridden

__all__ = ["LateCheck", "late_check"]


def late_check(family: KerasFamily, optimizer: Any) -> "Optional[LateCheck]":
    """Returns the check for an inner optimizer; None if it applies gradients as they are given.

    Args:
      family: the optimizer's.
      optimizer: the inner optimizer.
    """
    methods = update_methods(family, optimizer)
    return None if methods is None else LateCheck(optimizer, methods)


class LateCheck:
    """Keeps an optimizer from applying gradients that are not finite.

    Attributes:
      always_counts: whether a step that is stopped here has advanced `iterations`.
    """

    def __init__(self, optimizer: Any, methods: UpdateMethods) -> None:
        self._optimizer = optimizer
        self._methods = methods
        self.always_counts = methods.always_counts

    @contextlib.contextmanager
    def checking(self) -> Iterator[Callable[[], Any]]:
        """Tests the gradients of the step that is taken within the block.

        Yields:
          A function that returns a bool tensor of shape `[]`: whether the gradients were finite. It
          is called in the graph in which the step was taken, and returns True where they were
          tested within a function or branch of the optimizer's own.
        """
        flags: List[Any] = []
        decays: List[Any] = []
        optimizer, methods = self._optimizer, self._methods

        def if_finite(distribution: Any, grads_and_vars: Any, *args: Any, **kwargs: Any) -> Any:
            pairs = list(grads_and_vars)
            values = [
                value
                for gradient, _ in pairs
                if gradient is not None
                for value in distribution.experimental_local_results(gradient)
            ]
            flags.append(all_finite(values))

            def run() -> Any:
                for variables in decays[:1]:  # each replica has asked for the same
                    _in_replicas(distribution, _method(optimizer, methods.decay), variables)
                update = _method(optimizer, methods.update)
                done = update(distribution, pairs, *args, **kwargs)
                if tf.executing_eagerly():
                    return None
                return tf.group(*[each for each in tf.nest.flatten([done]) if each is not None])

            return branch(flags[-1], run)

        with contextlib.ExitStack() as overrides:
            overrides.enter_context(overridden([optimizer], methods.update, lambda _: if_finite))
            if methods.decay and getattr(optimizer, "weight_decay", None) is not None:
                # Weights decay before the update, but in a step that is taken only.
                overrides.enter_context(
                    overridden([optimizer], methods.decay, lambda _: decays.append)
                )
            yield lambda: _here(flags)


def _method(optimizer: Any, name: Optional[str]) -> Callable[..., Any]:
    """The method of the class, as that of the object is replaced."""
    return getattr(type(optimizer), str(name)).__get__(optimizer)


def _in_replicas(distribution: Any, method: Callable[..., Any], argument: Any) -> None:
    if tf.distribute.has_strategy() and tf.distribute.in_cross_replica_context():
        distribution.extended.call_for_each_replica(method, args=(argument,))
    else:
        method(argument)


def _here(flags: List[Any]) -> Any:
    if not flags:
        return tf.constant(True)
    if tf.executing_eagerly() or flags[-1].graph is tf1.get_default_graph():
        return flags[-1]
    return tf.constant(True)
