"""The optimizer of `tf.contrib.mixed_precision`."""

import contextlib
import functools
from typing import Any, Dict, Iterable, Iterator, List, Optional, Set

from tf_lossscale._core.refusals import refuse_updates
from tf_lossscale._core.same_class import SameClass, stands_for
from tf_lossscale._core.scaling import (
    as_pairs,
    require_replica_context,
    scale_loss,
    unscale_gradients,
)
from tf_lossscale._replicas.agreement import merge
from tf_lossscale._types import (
    Class,
    GradsAndVars,
    Loss,
    Operation,
    Optimizer,
    Pairs,
    ScaleManager,
    Strategy,
    Tensor,
    V1Optimizer,
    Variable,
)
from tf_lossscale._v1.managers import LossScaleManager, WhenContribIsLoaded
from tf_lossscale._v1.scaled_loss import ScaledLossOptimizer
from tf_lossscale._v1.step_gradients import apply_in_replicas, gradients_of_step
from tf_lossscale._versions.base import do_not_convert, tf, tf1
from tf_lossscale._versions.files import Trackable
from tf_lossscale._versions.graphs import outermost_graph
from tf_lossscale._versions.interventions import set_bases
from tf_lossscale._versions.keras import is_keras_object
from tf_lossscale._versions.private_hooks import is_overridden
from tf_lossscale._versions.update_methods import UPDATE_METHODS


@refuse_updates(UPDATE_METHODS["v1"], NotImplementedError)
class LossScaleOptimizer(ScaledLossOptimizer, metaclass=SameClass):
    """An optimizer that scales the loss by a manager's scale and skips steps that overflowed.

    Stands for `tf.contrib.mixed_precision.LossScaleOptimizer`, TensorFlow 1.15.

    `compute_gradients` multiplies the loss by the scale, has the inner optimizer compute the
    gradients, and multiplies them by the reciprocal of the scale. `apply_gradients` tests whether
    all of them are finite, over all replicas of a strategy. If so, the inner optimizer applies
    them; otherwise weights, slots and `global_step` do not change. The manager is updated after
    every step, skipped or not.

    State: none of its own. Slots are those of `opt`, and the loss scale is in `loss_scale_manager`;
    `tf.train.Checkpoint` finds them as `base_optimizer` and `loss_scale_manager`.

    Examples:
      >>> import tensorflow as tf
      >>> import tf_lossscale as tfls
      >>> weight = tf.Variable(1.0)
      >>> optimizer = tfls.contrib.mixed_precision.LossScaleOptimizer(
      ...     tf.compat.v1.train.GradientDescentOptimizer(0.5),
      ...     tfls.contrib.mixed_precision.FixedLossScaleManager(128))
      >>> step = optimizer.minimize(lambda: weight * 1.0, var_list=[weight])
      >>> float(weight.numpy())
      0.5
      >>> step = optimizer.minimize(lambda: weight * float("inf"), var_list=[weight])  # is skipped
      >>> float(weight.numpy())
      0.5

    Args:
      opt: a `tf.compat.v1.train.Optimizer`, or any object with its `compute_gradients` and
        `apply_gradients`.
      loss_scale_manager: a `LossScaleManager`.

    Raises:
      TypeError: `opt` is not such an optimizer.
    """

    def __init__(self, opt: Optimizer, loss_scale_manager: ScaleManager) -> None:
        methods = ("compute_gradients", "apply_gradients")
        works_alike = all(callable(getattr(opt, method, None)) for method in methods)
        if not isinstance(opt, tf1.train.Optimizer) and (is_keras_object(opt) or not works_alike):
            raise TypeError(
                "opt must be a tf.compat.v1.train.Optimizer, or an object with the same "
                f"compute_gradients and apply_gradients, but got: {type(opt)}. For a Keras "
                "optimizer use keras.mixed_precision.LossScaleOptimizer."
            )
        super().__init__(opt)
        self._opt = opt
        self._loss_scale_manager = loss_scale_manager
        if isinstance(loss_scale_manager, Trackable):
            self._track_trackable(loss_scale_manager, "loss_scale_manager")

    def _inner(self) -> V1Optimizer:
        return self._opt

    def variables(self) -> List[Variable]:
        """Returns the variables of the inner optimizer, then those of the manager.

        Keras initializes these in graph mode.
        """
        inner = super().variables()
        known = {id(variable) for variable in inner}
        return inner + list(_variables_in(self._loss_scale_manager, known))

    def _current_loss_scale(self) -> Tensor:
        return self._loss_scale_manager.get_loss_scale()

    def _gradients_of_scaled(self, loss: Loss, options: Dict[str, Any]) -> Pairs:
        if not is_overridden(self, _DEFAULTS):
            return super()._gradients_of_scaled(loss, options)
        loss_scale = self._current_loss_scale()
        scaled = scale_loss(loss, lambda: loss_scale)
        return self._down_scale(self._opt.compute_gradients(scaled, **options), loss_scale)

    def _down_scale(self, grads_vars: GradsAndVars, loss_scale: Tensor) -> Pairs:
        """Divides the gradients by the loss scale; a subclass may override it."""
        gradients = [gradient for gradient, _ in grads_vars]
        variables = [variable for _, variable in grads_vars]
        return list(zip(unscale_gradients(gradients, loss_scale), variables))

    def _loss_to_scale(self, loss: Loss) -> Loss:
        """Returns the loss as a tensor in a graph, and as a function in eager mode."""
        if not tf.executing_eagerly():
            return loss() if callable(loss) else loss
        if not callable(loss):
            try:
                loss()
            except TypeError as error:  # Python's own message, as with the original
                raise TypeError(
                    f"{error}. In eager mode, loss must be a function of no arguments that "
                    "computes it, so that its gradients can be recorded."
                ) from None
        return loss

    @do_not_convert
    def apply_gradients(
        self,
        grads_and_vars: GradsAndVars,
        global_step: Optional[Variable] = None,
        name: Optional[str] = None,
    ) -> Optional[Operation]:
        """Applies the gradients if all of them are finite, and updates the manager.

        Args:
          grads_and_vars: an iterable of pairs of a gradient, or None, and its variable.
          global_step: integer variable that an applied step increments by one, or None.
          name: name for the inner optimizer's operation.

        Returns:
          The operation of the step; None in eager mode.

        Raises:
          ValueError: there are no pairs or no gradients, or the call was not made in a replica
            context of the current strategy.
        """
        pairs = as_pairs(grads_and_vars, type(self).__name__)
        require_replica_context()
        return merge(self._apply_together, pairs, global_step, name)

    def _apply_together(
        self, strategy: Strategy, pairs: Pairs, global_step: Optional[Variable], name: Optional[str]
    ) -> Optional[Operation]:
        """Takes the step of all replicas, in a cross-replica context, and updates the manager."""
        gradients = gradients_of_step(strategy, self, self._opt, pairs)
        finite = gradients.all_finite()
        watched = gradients.watched_by(self)
        # In eager mode, the conditional of the original is only a scope, in which the inner
        # optimizer creates its variables: `cond/beta1_power`.
        in_scope = tf1.name_scope("cond") if tf.executing_eagerly() else contextlib.nullcontext()
        with watched.around(), in_scope:
            apply = functools.partial(apply_in_replicas, self._opt, global_step, name)
            applied = gradients.apply_if(finite, self._opt, apply, watched)
            updated = self._loss_scale_manager.update_loss_scale(finite)
        done = (applied, updated, *watched.finished(applied, finite))
        return tf.group(*[operation for operation in done if operation is not None])


_DEFAULTS = {"_down_scale": LossScaleOptimizer._down_scale}


def _variables_in(value: object, seen: Set[int]) -> Iterator[Variable]:
    """Yields the variables of the current graph in a manager of the shim, TensorFlow or a user."""
    if id(value) in seen:
        return
    seen.add(id(value))
    if callable(getattr(value, "assign", None)) and hasattr(value, "read_value"):
        if getattr(value, "graph", None) is outermost_graph():  # eager variables have none
            yield value
        return
    parts: Iterable[object] = ()
    if isinstance(value, (list, tuple)):
        parts = value
    elif isinstance(value, dict):
        parts = value.values()
    elif isinstance(value, LossScaleManager):  # or one in another one, which wraps it
        parts = vars(value).values()
    for part in parts:
        yield from _variables_in(part, seen)


def _derive_from(installed: Class) -> None:
    # It is not an abstract class that our class could be registered with. All its methods are
    # overridden.
    set_bases(LossScaleOptimizer, (ScaledLossOptimizer, installed))
    stands_for(LossScaleOptimizer, installed)


WhenContribIsLoaded("LossScaleOptimizer", _derive_from)
