"""The variables of dynamic loss scales, and the rule of `DynamicLossScale` that updates them.

It and the rule of the contrib manager are those of the originals, bit for bit. Both increase the
scale after a number of finite steps and decrease it after non-finite ones. They have no branches,
because two conditionals in a graph cost more than these few scalar operations. They cover NaN and
infinite scales (the recorded traces of the originals have such cases), so `max` is written as a
comparison: `tf.maximum` of NaN differs between versions.
"""

from typing import Any, Callable, Dict, List, Tuple

from tf_lossscale._versions.base import do_not_convert, tf, tf1, where
from tf_lossscale._versions.files import Trackable, TrackableReference
from tf_lossscale._versions.graphs import outermost_graph


class HoldsState(Trackable):
    """Base of the objects whose variables are checkpoint children.

    `_weights` maps (name, graph) to the variable; the graph is None in eager mode. It is created on
    first use, because users' subclasses may not call `super().__init__()`.
    """

    def _make_variable(self, name: str, value: Any, **options: Any) -> Any:
        """Creates the child `name` of the current graph, and restores a deferred value."""
        variable = tf1.Variable(value, name=name, trainable=False, **options)
        weights: Dict[Tuple[str, Any], Any] = self.__dict__.setdefault("_weights", {})
        key = (name, outermost_graph())
        if key in weights:
            raise RuntimeError(
                f"Duplicate variables detected. {key}: this {type(self).__name__} already has a "
                "variable of this name in this graph; give the second one another name."
            )
        weights[key] = variable
        self._handle_deferred_dependencies(name=name, trackable=variable)
        return variable

    def _state_here(self) -> List[Tuple[str, Any]]:
        """Returns the (name, variable) pairs of the current graph, sorted by name."""
        here = outermost_graph()
        weights = self.__dict__.get("_weights", {})
        pairs = [(name, variable) for (name, graph), variable in weights.items() if graph is here]
        return sorted(pairs, key=lambda pair: pair[0])

    # The two hooks of Trackable: which children are saved, and which child a restored value is for.

    @property
    def _checkpoint_dependencies(self) -> List[Any]:
        mine = [TrackableReference(name=name, ref=ref) for name, ref in self._state_here()]
        return list(super()._checkpoint_dependencies) + mine

    def _lookup_dependency(self, name: str, *args: Any, **kwargs: Any) -> Any:
        found = super()._lookup_dependency(name, *args, **kwargs)
        return found if found is not None else dict(self._state_here()).get(name)


@do_not_convert
def dynamic_update(scale: Any, good_steps: Any, finite: Any, period: int, multiplier: float) -> Any:
    """Updates the float32 scale and the int64 count of a `DynamicLossScale` or Keras 2 optimizer.

    * The `period`-th finite step in a row: `scale *= multiplier`, unless the product is not finite;
      the count is reset. Any other finite step: the count goes up by one.
    * A non-finite step: `scale = max(scale / multiplier, 1)`; the count is reset.

    A `period` of 0 or below means every step. Returns an operation that assigns both variables;
    None in eager mode.
    """
    old_scale, counted = read(scale), read(good_steps) + 1
    grows = tf.logical_and(finite, counted >= period)
    grown = if_finite(old_scale * multiplier, old_scale)
    divided = old_scale / multiplier
    shrunk = where(divided < 1.0, tf.ones([], tf.float32), divided)  # NaN stays NaN
    kept_or_shrunk = where(finite, old_scale, shrunk)
    counts_on = tf.logical_and(finite, tf.logical_not(grows))
    return assign_all(
        (scale, where(grows, grown, kept_or_shrunk)),
        (good_steps, where(counts_on, counted, tf.zeros_like(counted))),
    )


def read(variable: Any) -> Any:
    # A new read, not the cached snapshot of a reference variable. In both rules every value that is
    # read is an input of the value that is assigned to the same variable. Reference variables are
    # assigned in place, and so no assignment can run before the read.
    return variable.read_value()


def if_finite(new: Any, old: Any) -> Any:
    return where(tf1.is_finite(new), new, old)


def assign_all(*pairs: Any) -> Any:
    return tf.group(*[variable.assign(value) for variable, value in pairs])


def update_as_cond(update: Callable[[], Any], finite: Any) -> Any:
    """Returns a bool tensor that is available after an update; None in eager mode.

    The scope is called "cond", although there are no branches: the originals have a conditional of
    this name, and with control flow v1 conditionals are counted in the names of optimizers'
    variables (`cond_1/beta1_power` for the next one of the graph).
    """
    with tf1.name_scope(None, "cond"):
        updated = update()
        if updated is None:
            return None
        with tf.control_dependencies([updated]):
            return tf.identity(finite, name="updated")
