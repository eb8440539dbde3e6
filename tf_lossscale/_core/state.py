"""The variables of dynamic loss scales, and the rule of `DynamicLossScale` that updates them.

It and the rule of the contrib manager equal TensorFlow's, bit for bit. Both increase the
scale after a number of finite steps and decrease it after non-finite ones. They cover NaN and
infinite scales (the recorded traces of the originals have such cases), so `max` is written as a
comparison: `tf.maximum` of NaN differs between versions.

Steps may run at the same time, on several workers with a parameter server or in several threads. So
a finite step only adds to the counter, in place. The scale is written when it changes, and then
only: a value that was read before and is written back could undo the halving of another step.
"""

from typing import Any, Dict, List, Optional, Tuple

from tf_lossscale._core.conditional import branch
from tf_lossscale._core.minimum import MINIMUM
from tf_lossscale._types import Graph, Operation, SavedObject, Tensor, ToOperation, Variable
from tf_lossscale._versions.base import do_not_convert, tf, tf1, where
from tf_lossscale._versions.files import Trackable, TrackableReference
from tf_lossscale._versions.graphs import outermost_graph


class HoldsState(Trackable):
    """Base of the objects whose variables are checkpoint children.

    `_weights` maps (name, graph) to the variable; the graph is None in eager mode. It is created on
    first use, because users' subclasses may not call `super().__init__()`.
    """

    def _make_variable(self, name: str, value: Tensor, **options: Any) -> Variable:
        """Creates the child `name` of the current graph, and restores a deferred value."""
        variable = tf1.Variable(value, name=name, trainable=False, **options)
        weights: Dict[Tuple[str, Optional[Graph]], Variable] = self.__dict__.setdefault(
            "_weights", {}
        )
        key = (name, outermost_graph())
        if key in weights:
            raise RuntimeError(
                f"Duplicate variables detected. {key}: this {type(self).__name__} already has a "
                "variable of this name in this graph; give the second one another name."
            )
        weights[key] = variable
        self._handle_deferred_dependencies(name=name, trackable=variable)
        return variable

    def _state_here(self) -> List[Tuple[str, Variable]]:
        """Returns the (name, variable) pairs of the current graph, sorted by name."""
        here = outermost_graph()
        weights = self.__dict__.get("_weights", {})
        pairs = [(name, variable) for (name, graph), variable in weights.items() if graph is here]
        return sorted(pairs, key=lambda pair: pair[0])

    # The two hooks of Trackable: which children are saved, and which child a restored value is for.

    @property
    def _checkpoint_dependencies(self) -> List[SavedObject]:
        mine = [TrackableReference(name=name, ref=ref) for name, ref in self._state_here()]
        return list(super()._checkpoint_dependencies) + mine

    def _lookup_dependency(
        self, name: str, *args: object, **kwargs: object
    ) -> Optional[SavedObject]:
        found = super()._lookup_dependency(name, *args, **kwargs)
        return found if found is not None else dict(self._state_here()).get(name)


@do_not_convert
def dynamic_update(
    scale: Variable,
    good_steps: Variable,
    finite: Tensor,
    period: int,
    multiplier: float,
    minimum: float = MINIMUM,
) -> Optional[Operation]:
    """Updates the float32 scale and the int64 count of a `DynamicLossScale` or Keras 2 optimizer.

    * The `period`-th finite step in a row: `scale *= multiplier`, unless the product is not finite;
      the count is reset. Any other finite step: the count goes up by one.
    * A non-finite step: `scale = max(scale / multiplier, minimum)`; the count is reset.

    A `period` of 0 or below means every step. Returns an operation or tensor to wait for; None in
    eager mode.
    """
    counted = read(good_steps) + 1
    changes = tf.logical_or(counted >= period, tf.logical_not(finite))

    def change() -> Optional[Operation]:
        old_scale = read(scale)
        grown = if_finite(old_scale * multiplier, old_scale)
        divided = old_scale / multiplier
        shrunk = where(divided < minimum, tf.fill([], minimum), divided)  # NaN stays NaN
        new_scale = where(finite, grown, shrunk)
        return assign_all((scale, new_scale), (good_steps, tf.zeros_like(counted)))

    return branch_of_state(changes, change, lambda: add(good_steps, 1))


def branch_of_state(
    condition: Tensor, then: ToOperation, otherwise: ToOperation
) -> Optional[Tensor]:
    """Runs one of two updates; returns a tensor to wait for, None in eager mode."""
    done = branch(condition, then, otherwise)
    return None if tf.executing_eagerly() else done


def add(variable: Variable, value: int) -> Optional[Operation]:
    """Adds to a variable in place, so that no addition of another step is lost."""
    # Without a lock, a reference variable is read and written in two steps. Others ignore it.
    return tf.group(variable.assign_add(value, use_locking=True))


def read(variable: Variable) -> Tensor:
    # A new read, not the cached snapshot of a reference variable. In both rules every value that is
    # read is an input of the value that is assigned to the same variable. Reference variables are
    # assigned in place, and so no assignment can run before the read.
    return variable.read_value()


def if_finite(new: Tensor, old: Tensor) -> Tensor:
    return where(tf1.is_finite(new), new, old)


def assign_all(*pairs: Tuple[Variable, Tensor]) -> Optional[Operation]:
    return tf.group(*[variable.assign(value) for variable, value in pairs])


def update_as_cond(update: ToOperation, finite: Tensor) -> Optional[Tensor]:
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
