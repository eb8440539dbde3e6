"""The finite check of what an inner optimizer makes of gradients while it applies them.

A `gradient_transformers` argument, an option such as `global_clipnorm`, and overrides of methods
such as `_transform_gradients` or `_clip_gradients` run within a step of the inner optimizer, and
can make an infinity or a NaN of finite gradients. They have run when it calls the method that
updates the variables. So that method is replaced for the time of the step, by one that tests what
it is given first. What `update_step` and the like do with one gradient after another, while the
variables change, is not tested.
"""

import contextlib
import weakref
from typing import Any, Callable, Iterator, List, MutableMapping, Optional, Sequence

from tf_lossscale._core.conditional import branch
from tf_lossscale._core.finite import all_finite
from tf_lossscale._core.replicas import all_replicas_agree, replica_count
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
          is called in the graph in which the step was taken.
        """
        decays: List[Any] = []
        optimizer, methods = self._optimizer, self._methods
        verdict = _Verdict(optimizer)

        def if_finite(distribution: Any, grads_and_vars: Any, *args: Any, **kwargs: Any) -> Any:
            pairs = list(grads_and_vars)
            values = [
                value
                for gradient, _ in pairs
                if gradient is not None
                for value in distribution.experimental_local_results(gradient)
            ]
            verdict.give(all_finite(values))

            def run() -> Any:
                for variables in decays[:1]:  # each replica has asked for the same
                    _in_replicas(distribution, _method(optimizer, methods.decay), variables)
                update = _method(optimizer, methods.update)
                done = update(distribution, pairs, *args, **kwargs)
                if tf.executing_eagerly():
                    return None
                return tf.group(*[each for each in tf.nest.flatten([done]) if each is not None])

            return branch(verdict.so_far(), run)

        def accumulate_if_finite(gradients: Sequence[Any], accumulators: Any) -> None:
            verdict.give(all_replicas_agree(all_finite(gradients)))
            accumulate = _method(optimizer, methods.accumulate)
            branch(verdict.so_far(), lambda: accumulate(gradients, accumulators))

        def average_if_finite(name: str) -> Callable[[Any], None]:
            def run(variables: Any) -> None:
                branch(verdict.so_far(), lambda: _method(optimizer, name)(variables))

            return run

        with contextlib.ExitStack() as overrides:
            overrides.enter_context(overridden([optimizer], methods.update, lambda _: if_finite))
            if methods.decay and getattr(optimizer, "weight_decay", None) is not None:
                # Weights decay before the update, but in a step that is taken only.
                overrides.enter_context(
                    overridden([optimizer], methods.decay, lambda _: decays.append)
                )
            if methods.accumulate and _accumulates(optimizer):
                overrides.enter_context(
                    overridden([optimizer], methods.accumulate, lambda _: accumulate_if_finite)
                )
            if getattr(optimizer, "use_ema", False):
                for name in methods.average:
                    instead = average_if_finite(name)
                    overrides.enter_context(
                        overridden([optimizer], name, lambda _, instead=instead: instead)  # type: ignore[misc]
                    )
            yield verdict.after_step


class _Verdict:
    """Whether the gradients of one step were finite, wherever within the step they were tested.

    An optimizer that accumulates gradients tests them in a branch of its own, and one may call a
    function of its own. Only a variable takes the answer out of there.
    """

    # Functions do not keep variables alive, and optimizers save those that they hold.
    _variables: "MutableMapping[Any, Any]" = weakref.WeakKeyDictionary()

    def __init__(self, optimizer: Any) -> None:
        self._optimizer = optimizer
        self._tensor: Optional[Any] = None
        self._graph = None if tf.executing_eagerly() else tf1.get_default_graph()

    def give(self, finite: Any) -> None:
        """Takes note of an answer.

        Args:
          finite: bool tensor of shape `[]`.
        """
        self._tensor = finite
        if not _is_seen_from(self._graph, finite):
            variable = self._variable()
            if variable is not None:
                variable.assign(finite)

    def so_far(self) -> Any:
        """Returns the last answer, a bool tensor of shape `[]`, within the step."""
        here = None if tf.executing_eagerly() else tf1.get_default_graph()
        if self._tensor is not None and _is_seen_from(here, self._tensor):
            return self._tensor
        variable = self._variables.get(self._optimizer)
        return tf.constant(True) if variable is None else variable.read_value()

    def after_step(self) -> Any:
        """Returns the last answer, and forgets it for the next step."""
        finite = self.so_far()
        variable = self._variables.get(self._optimizer)
        if variable is not None:
            with tf1.control_dependencies([finite] if self._graph is not None else []):
                variable.assign(True)
        return finite

    def _variable(self) -> Optional[Any]:
        with tf.init_scope():
            # In a Session nothing would initialize it, and replicas would have one each.
            if tf.executing_eagerly() and replica_count() == 1:
                if self._optimizer not in self._variables:
                    variable = tf.compat.v2.Variable(True, trainable=False)
                    self._variables[self._optimizer] = variable
                return self._variables[self._optimizer]
        return None


def _is_seen_from(graph: Any, tensor: Any) -> bool:
    """Whether operations of a graph, or of eager mode if it is None, can use a tensor."""
    own = getattr(tensor, "graph", None)  # that of a value raises an AttributeError
    while graph is not None and graph is not own:
        graph = getattr(graph, "outer_graph", None)
    return own is graph


def _accumulates(optimizer: Any) -> bool:
    return bool(getattr(optimizer, "gradient_accumulation_steps", None))


def _method(optimizer: Any, name: Optional[str]) -> Callable[..., Any]:
    """The method of the class, as that of the object is replaced."""
    return getattr(type(optimizer), str(name)).__get__(optimizer)


def _in_replicas(distribution: Any, method: Callable[..., Any], argument: Any) -> None:
    if tf.distribute.has_strategy() and tf.distribute.in_cross_replica_context():
        distribution.extended.call_for_each_replica(method, args=(argument,))
    else:
        method(argument)
