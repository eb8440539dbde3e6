"""The optimizer of `tf.train.experimental`, and the graph rewrite that wraps optimizers in it."""

import importlib
from typing import Any, Dict, List, Optional

from tf_lossscale._core.loss_scales import DynamicLossScale, as_loss_scale, is_fixed
from tf_lossscale._core.refusals import refuse_updates
from tf_lossscale._core.same_class import SameClass, loss_scale_class, stands_for
from tf_lossscale._core.scaling import (
    as_pairs,
    multiply_gradients,
    require_replica_context,
    scale_loss,
)
from tf_lossscale._replicas.agreement import all_workers_agree, merge
from tf_lossscale._types import (
    Class,
    Gradient,
    Gradients,
    GradsAndVars,
    Loss,
    LossScaleArgument,
    Operation,
    Optimizer,
    Pairs,
    Strategy,
    Tensor,
    V1Optimizer,
    Variable,
)
from tf_lossscale._v1.scaled_loss import ScaledLossOptimizer
from tf_lossscale._v1.step_gradients import apply_in_replicas, gradients_of_step, watch_fixed
from tf_lossscale._versions import graphs
from tf_lossscale._versions.base import do_not_convert, tf, tf1
from tf_lossscale._versions.keras import is_keras_object
from tf_lossscale._versions.originals import original
from tf_lossscale._versions.private_hooks import is_overridden
from tf_lossscale._versions.update_methods import UPDATE_METHODS

_installed: Any = original(tf1.train.experimental, "MixedPrecisionLossScaleOptimizer")
_Base: Class = tf1.train.Optimizer if _installed is None else _installed


@refuse_updates(UPDATE_METHODS["v1"], RuntimeError, "This function should never be called. ")
class MixedPrecisionLossScaleOptimizer(ScaledLossOptimizer, _Base, metaclass=SameClass):
    """An optimizer that scales the loss, and skips steps as its loss scale decides.

    Stands for `tf.compat.v1.mixed_precision.MixedPrecisionLossScaleOptimizer`, TensorFlow 2.21.

    `compute_gradients` multiplies the loss by the scale and the gradients by its reciprocal.
    `apply_gradients` has the inner optimizer apply them, unless the step is skipped. With a
    `DynamicLossScale` a step with a non-finite gradient on any replica is skipped: weights, slots
    and `global_step` do not change. With a `FixedLossScale` no step is skipped. With your own
    subclass of `LossScale`, its `update()` decides.

    State: none of its own. Slots are those of `opt`, and the scale is in the loss scale;
    `tf.train.Checkpoint` finds them as `base_optimizer` and `loss_scale`.

    Examples:
      >>> import tensorflow as tf
      >>> import tf_lossscale as tfls
      >>> weight = tf.Variable(1.0)
      >>> loss_scale = tfls.compat.v1.mixed_precision.DynamicLossScale(8.0, increment_period=1)
      >>> optimizer = tfls.compat.v1.mixed_precision.MixedPrecisionLossScaleOptimizer(
      ...     tf.compat.v1.train.GradientDescentOptimizer(0.5), loss_scale)
      >>> step = optimizer.minimize(lambda: weight * 1.0, var_list=[weight])
      >>> float(weight.numpy()), float(loss_scale())
      (0.5, 16.0)
      >>> step = optimizer.minimize(lambda: weight * float("inf"), var_list=[weight])  # is skipped
      >>> float(weight.numpy()), float(loss_scale())
      (0.5, 8.0)

    Args:
      opt: a `tf.compat.v1.train.Optimizer`.
      loss_scale: a `LossScale`, a number (fixed), or `"dynamic"`.

    Raises:
      ValueError: `opt` is not such an optimizer, or `loss_scale` is none of the above.
    """

    def __init__(self, opt: Optimizer, loss_scale: LossScaleArgument) -> None:
        if not isinstance(opt, tf1.train.Optimizer):
            raise ValueError(
                f'"opt" must be an instance of Optimizer, but got: {type(opt)}. It takes a '
                "tf.compat.v1.train.Optimizer; for a Keras optimizer use "
                "keras.mixed_precision.LossScaleOptimizer."
            )
        super().__init__(opt)
        self._optimizer = opt
        self._loss_scale: Any = as_loss_scale(loss_scale)
        if self._loss_scale is None:
            raise ValueError("loss_scale cannot be None. Pass 'dynamic', a number or a LossScale.")
        self._track_trackable(self._loss_scale, "loss_scale")

    def _inner(self) -> V1Optimizer:
        return self._optimizer

    def variables(self) -> List[Variable]:
        """Returns the variables of the inner optimizer, then those of the loss scale."""
        return self._optimizer.variables() + list(self._loss_scale._weights.values())

    def _current_loss_scale(self) -> Tensor:
        return self._loss_scale()

    def _gradients_of_scaled(self, loss: Loss, options: Dict[str, Any]) -> Pairs:
        if not is_overridden(self, _SCALING):
            return super()._gradients_of_scaled(loss, options)
        # As the original, which reads the loss scale for the loss and again for the gradients.
        pairs = list(self._optimizer.compute_gradients(self._scale_loss(loss), **options))
        unscaled = self._unscale_grads([gradient for gradient, _ in pairs])
        return list(zip(unscaled, [variable for _, variable in pairs]))

    # The methods that the original calls on itself, so that programs override them.

    def _scale_loss(self, loss: Loss) -> Loss:
        return scale_loss(loss, self._loss_scale)

    def _unscale_grads(self, grads: Gradients) -> List[Optional[Gradient]]:
        reciprocal = 1 / self._loss_scale()
        return [
            None if gradient is None else self._scale_grad(gradient, reciprocal)
            for gradient in grads
        ]

    def _scale_grad(self, grad: Gradient, loss_scale_reciprocal: Tensor) -> Gradient:
        return multiply_gradients([grad], tf.convert_to_tensor(loss_scale_reciprocal))[0]

    def _doing_dynamic_loss_scaling(self) -> bool:
        """Returns whether the loss scale may skip a step."""
        return not is_fixed(self._loss_scale)

    @do_not_convert
    def apply_gradients(
        self,
        grads_and_vars: GradsAndVars,
        global_step: Optional[Variable] = None,
        name: Optional[str] = None,
    ) -> Optional[Operation]:
        """Applies the gradients, unless the loss scale decides to skip the step.

        Args:
          grads_and_vars: an iterable of pairs of a gradient, or None, and its variable.
          global_step: integer variable that an applied step increments by one, or None.
          name: name for the operation; the optimizer's name if None.

        Returns:
          The operation of the step; None in eager mode.

        Raises:
          ValueError: there are no pairs or no gradients, or the call was not made in a replica
            context of the current strategy.
        """
        require_replica_context()
        pairs = as_pairs(grads_and_vars, type(self).__name__)
        if not self._doing_dynamic_loss_scaling():
            watched = watch_fixed(self, self._optimizer, pairs)
            with watched.around():
                done = self._optimizer.apply_gradients(pairs, global_step=global_step, name=name)
            watched.finished(done, True)
            return done
        return merge(self._distributed_apply, tuple(pairs), global_step, name)

    def _distributed_apply(
        self,
        distribution: Strategy,
        grads_and_vars: GradsAndVars,
        global_step: Optional[Variable] = None,
        name: Optional[str] = None,
    ) -> Optional[Operation]:
        """Makes the step of all replicas, in a cross-replica context."""
        pairs, name = list(grads_and_vars), name or self.get_name()
        # Our own `update` only tests the gradients; another one decides in its own way, even if it
        # is the `update` of another loss scale.
        method = self._loss_scale.update
        is_our = getattr(method, "__func__", None) is DynamicLossScale.update
        tests_gradients = is_our and method.__self__ is self._loss_scale
        gradients = gradients_of_step(distribution, self, self._optimizer, pairs, tests_gradients)
        watched = gradients.watched_by(self)  # sees the scale before its update
        with watched.around():
            if tests_gradients:
                should_apply = gradients.all_finite()
                update = DynamicLossScale._update_after(self._loss_scale, should_apply)
            else:
                update, should_apply = method([gradient for gradient, _ in pairs])
                # On each worker it sees the gradients of that worker. Those that apply wait for
                # the others, so all must do the same.
                if tf.executing_eagerly() or not isinstance(should_apply, bool):
                    should_apply = all_workers_agree(should_apply)
            applied = gradients.apply_if(
                should_apply,
                self._optimizer,
                lambda strategy, pairs: self._apply_gradients(
                    strategy, pairs, global_step, name + "-wrapped"
                ),
                watched,
            )
        done = (update, applied, *watched.finished(applied, should_apply))
        return tf1.group(*[operation for operation in done if operation is not None], name=name)

    def _apply_gradients(
        self,
        distribution: Strategy,
        grads_and_vars: GradsAndVars,
        global_step: Optional[Variable],
        name: Optional[str],
    ) -> Optional[Operation]:
        """Lets the inner optimizer apply gradients in all replicas."""
        pairs = list(grads_and_vars)
        return apply_in_replicas(self._optimizer, global_step, name, distribution, pairs)


_SCALING = {
    name: vars(MixedPrecisionLossScaleOptimizer)[name]
    for name in ("_scale_loss", "_unscale_grads", "_scale_grad")
}


stands_for(MixedPrecisionLossScaleOptimizer, _installed)

_OPTION = "auto_mixed_precision"


def enable_mixed_precision_graph_rewrite(
    opt: Optimizer, loss_scale: LossScaleArgument = "dynamic"
) -> Optimizer:
    """Lets Grappler run float32 graphs in float16 where that is safe, and scales the loss.

    Stands for `tf.compat.v1.mixed_precision.enable_mixed_precision_graph_rewrite`, TensorFlow 2.21,
    and takes the Keras optimizers that it refuses since TensorFlow 2.11 as well. The rewrite acts
    on functions and Sessions that run after this call, on GPUs.

    Args:
      opt: a `tf.compat.v1.train.Optimizer` or a Keras optimizer.
      loss_scale: `"dynamic"`, a number, or a `LossScale`.

    Returns:
      `opt` in a `MixedPrecisionLossScaleOptimizer`, or in the experimental `LossScaleOptimizer` if
      it is a Keras optimizer.

    Raises:
      ValueError: `opt` is neither, or scales the loss already; `loss_scale` is None or cannot be
        interpreted; a mixed precision dtype policy is set.
    """
    if graphs.mixed_policy_is_set():
        raise ValueError(
            "The mixed precision graph rewrite cannot be enabled, because the global Keras dtype "
            "Policy has been set to a mixed precision policy. At most one of the two can be used: "
            "set the policy back with keras.mixed_precision.set_global_policy('float32'), or keep "
            "it and leave the rewrite."
        )
    wrapped = _wrap(opt, loss_scale)
    if graphs.plain_session_exists():
        tf1.logging.warn(
            "You already have existing Sessions that do not use mixed precision. "
            "enable_mixed_precision_graph_rewrite() will not affect these Sessions."
        )
    tf.config.optimizer.set_experimental_options({_OPTION: True})
    graphs.set_graph_rewrite(True)
    return wrapped


def disable_mixed_precision_graph_rewrite() -> None:
    """Turns the rewrite off again, however it was turned on; optimizers stay wrapped.

    Stands for `tf.compat.v1.mixed_precision.disable_mixed_precision_graph_rewrite`, TensorFlow
    2.21. Logs a warning if the rewrite is off already.
    """
    if not graphs.graph_rewrite_is_on():
        tf1.logging.warn(
            "disable_mixed_precision_graph_rewrite() called when mixed precision is already "
            "disabled."
        )
    tf.config.optimizer.set_experimental_options({_OPTION: False})
    graphs.set_graph_rewrite(False)


def _wrap(opt: Optimizer, loss_scale: LossScaleArgument) -> Optimizer:
    """Returns the loss-scale optimizer around `opt`, with the errors of the graph rewrite."""
    scaled_by = loss_scale_class(opt)
    if scaled_by:
        raise ValueError(
            f'"opt" must not already be an instance of a {scaled_by}. '
            "`enable_mixed_precision_graph_rewrite` will automatically wrap the optimizer with a "
            f"{scaled_by}."
        )
    if isinstance(opt, tf1.train.Optimizer):
        return MixedPrecisionLossScaleOptimizer(opt, loss_scale)
    if is_keras_object(opt) and hasattr(opt, "apply_gradients"):
        if loss_scale is None:
            raise ValueError("loss_scale cannot be None. Pass 'dynamic', a number or a LossScale.")
        # Keras is loaded already; our Keras classes are not, and v1 code must not load them.
        module = importlib.import_module("tf_lossscale._keras.experimental")
        return module.LossScaleOptimizer(opt, loss_scale)
    raise ValueError(
        '"opt" must be an instance of a tf.train.Optimizer or a tf.keras.optimizers.Optimizer, but '
        f"got: {opt}"
    )
