"""The finite check of gradients that an inner optimizer transforms while it applies them.

Options such as `gradient_transformers` and `global_clipnorm`, and overrides of methods such as
`_transform_gradients`, run within a step of the inner optimizer and can turn finite gradients into
an infinity or a NaN. The originals apply the NaN. There is no public hook after them, so the method
that updates the variables is replaced during the step by one that first tests its gradients;
`update_methods` lists those of each kind of optimizer. Methods such as `update_step`, which process
one gradient at a time while the variables change, are not covered.
"""

import contextlib
import functools
import weakref
from typing import Any, Callable, Dict, List, MutableMapping, Optional, Sequence

from tf_lossscale._core.conditional import branch
from tf_lossscale._core.finite import all_finite
from tf_lossscale._core.replicas import all_replicas_agree, replica_count
from tf_lossscale._versions.base import overridden, tf, tf1
from tf_lossscale._versions.keras_optimizers import UpdateMethods

__all__ = ["run_with_late_check"]


def run_with_late_check(optimizer: Any, methods: UpdateMethods, run: Callable[[], Any]) -> Any:
    """Runs a step of an inner optimizer, but keeps it from applying non-finite gradients.

    `run` makes the step. Returns a bool tensor of shape `[]`: whether the gradients were finite.
    """
    decays: List[Any] = []
    flag = _FiniteFlag(optimizer)

    def if_finite(distribution: Any, grads_and_vars: Any, *args: Any, **kwargs: Any) -> Any:
        pairs = list(grads_and_vars)
        values = [
            value
            for gradient, _ in pairs
            if gradient is not None
            for value in distribution.experimental_local_results(gradient)
        ]
        flag.record(all_finite(values))

        def apply() -> Any:
            for variables in decays[:1]:  # the calls of all replicas are the same
                _in_replicas(distribution, _method(optimizer, methods.decay), variables)
            update = _method(optimizer, methods.update)
            done = update(distribution, pairs, *args, **kwargs)
            if tf.executing_eagerly():
                return None
            return tf.group(
                *[operation for operation in tf.nest.flatten([done]) if operation is not None]
            )

        return branch(flag.so_far(), apply)

    def accumulate_if_finite(gradients: Sequence[Any], accumulators: Any) -> None:
        flag.record(all_replicas_agree(all_finite(gradients)))
        accumulate = _method(optimizer, methods.accumulate)
        branch(flag.so_far(), lambda: accumulate(gradients, accumulators))

    def average_if_finite(name: str, variables: Any) -> None:
        branch(flag.so_far(), lambda: _method(optimizer, name)(variables))

    replacements: Dict[str, Callable[..., Any]] = {methods.update: if_finite}
    if methods.decay and getattr(optimizer, "weight_decay", None) is not None:
        # Weight decay runs before the update, so it is deferred until the step is tested.
        replacements[methods.decay] = decays.append
    if methods.accumulate and getattr(optimizer, "gradient_accumulation_steps", None):
        replacements[methods.accumulate] = accumulate_if_finite
    if getattr(optimizer, "use_ema", False):
        for name in methods.average:
            replacements[name] = functools.partial(average_if_finite, name)
    with contextlib.ExitStack() as stack:
        for name, function in replacements.items():
            stack.enter_context(overridden([optimizer], name, _constant(function)))
        done = run()
    in_graph = done is not None and not tf.executing_eagerly()
    with tf1.control_dependencies([done] if in_graph else []):
        return tf.identity(flag.after_step())


class _FiniteFlag:
    """Whether the gradients of one step were finite, as tested anywhere within the step.

    The test may run in a branch (in an optimizer that accumulates gradients) or in a nested
    function. Only a variable can carry the result out of there.
    """

    # Not an attribute of the optimizer, which would save it; but functions do not keep it alive.
    _variables: "MutableMapping[Any, Any]" = weakref.WeakKeyDictionary()

    def __init__(self, optimizer: Any) -> None:
        self._optimizer = optimizer
        self._tensor: Optional[Any] = None
        self._graph = None if tf.executing_eagerly() else tf1.get_default_graph()

    def record(self, finite: Any) -> None:
        self._tensor = finite
        if not _is_seen_from(self._graph, finite):
            variable = self._variable()
            if variable is not None:
                variable.assign(finite)

    def so_far(self) -> Any:
        """Returns the last result, a bool tensor of shape `[]`, within the step."""
        here = None if tf.executing_eagerly() else tf1.get_default_graph()
        if self._tensor is not None and _is_seen_from(here, self._tensor):
            return self._tensor
        variable = self._variables.get(self._optimizer)
        return tf.constant(True) if variable is None else variable.read_value()

    def after_step(self) -> Any:
        """Returns the last result, and resets it for the next step."""
        finite = self.so_far()
        variable = self._variables.get(self._optimizer)
        if variable is not None:
            with tf1.control_dependencies([finite] if self._graph is not None else []):
                variable.assign(True)
        return finite

    def _variable(self) -> Optional[Any]:
        with tf.init_scope():
            # In a Session nothing would initialize the variable, and each replica would need one.
            if tf.executing_eagerly() and replica_count() == 1:
                if self._optimizer not in self._variables:
                    variable = tf.compat.v2.Variable(True, trainable=False)
                    self._variables[self._optimizer] = variable
                return self._variables[self._optimizer]
        return None


def _is_seen_from(graph: Any, tensor: Any) -> bool:
    """Whether operations in `graph` (None for eager mode) can use a tensor."""
    own = getattr(tensor, "graph", None)  # of an eager tensor, it raises an AttributeError
    while graph is not None and graph is not own:
        graph = getattr(graph, "outer_graph", None)
    return own is graph


def _constant(value: Any) -> Callable[[Any], Any]:
    return lambda _: value


def _method(optimizer: Any, name: Optional[str]) -> Callable[..., Any]:
    """Returns the method of the class, because the one of the instance is replaced."""
    return getattr(type(optimizer), str(name)).__get__(optimizer)


def _in_replicas(distribution: Any, method: Callable[..., Any], argument: Any) -> None:
    if tf.distribute.has_strategy() and tf.distribute.in_cross_replica_context():
        distribution.extended.call_for_each_replica(method, args=(argument,))
    else:
        method(argument)
