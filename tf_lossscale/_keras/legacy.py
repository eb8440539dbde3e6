"""The wrapper of Keras 2 `OptimizerV2` optimizers."""

from typing import Any, Dict, List, Optional, Sequence, Tuple

from tf_lossscale._core.gradient_sums import sums_for_replica
from tf_lossscale._core.replicas import replica_count
from tf_lossscale._core.scaling import gradients_of, with_gradients
from tf_lossscale._keras.keras2 import DelegatingWrapper
from tf_lossscale._keras.steps import StepArguments, step
from tf_lossscale._versions.base import do_not_convert, has, tf, tf1
from tf_lossscale._versions.files import TrackableReference, called_from_checkpoint
from tf_lossscale._versions.keras_optimizers import (
    aggregate_gradients,
    has_own_aggregation,
    has_own_transformation,
    overrides,
    show_to_keras_session,
)
from tf_lossscale._versions.releases import Since
from tf_lossscale._versions.replicas import already_summed, has_own_sum


class OptimizerV2Wrapper(DelegatingWrapper):
    """The API of the final class, for an `OptimizerV2`, in eager mode and in graphs."""

    _HAS_AGGREGATE_GRAD = True

    def _set_up(self, inner: Any, state: Any) -> None:
        super()._set_up(inner, state)
        if state.dynamic and not state.decides:
            show_to_keras_session(self._family, [state.current_loss_scale, state.counter])

    @do_not_convert
    def minimize(
        self,
        loss: Any,
        var_list: Any,
        grad_loss: Optional[Any] = None,
        name: Optional[str] = None,
        tape: Optional[Any] = None,
    ) -> Any:
        """Scales the loss, computes the gradients, unscales and applies them.

        Args:
          loss: a callable that returns the loss, or a tensor, which requires `tape`.
          var_list: the variables, or a callable that returns them.
          grad_loss: gradient of the loss, or None.
          name: name for the operation.
          tape: the tape that recorded the loss tensor.

        Returns:
          An operation in a graph; None in eager mode.
        """
        # An override written for TensorFlow 2.3 has no `tape`.
        kwargs = {"tape": tape} if has(Since.LEGACY_COMPUTES_WITH_TAPE) or tape is not None else {}
        pairs = self._compute_gradients(loss, var_list=var_list, grad_loss=grad_loss, **kwargs)
        return self.apply_gradients(pairs, name=name)

    @do_not_convert
    def _compute_gradients(
        self, loss: Any, var_list: Any, grad_loss: Optional[Any] = None, tape: Optional[Any] = None
    ) -> List[Tuple[Any, Any]]:
        scaled, tape = self._scaled_on_tape(loss, tape)
        compute = self._optimizer._compute_gradients
        if has(Since.LEGACY_COMPUTES_WITH_TAPE):
            return self._unscaled_pairs(compute(scaled, var_list, grad_loss, tape=tape))
        if callable(loss) and not self._clips():
            return self._unscaled_pairs(compute(scaled, var_list, grad_loss))
        with tape:
            if callable(scaled):
                if not callable(var_list):
                    tape.watch(var_list)
                scaled = scaled()
            variables = tf.nest.flatten(var_list() if callable(var_list) else var_list)
        with tf1.name_scope(self.name + "/gradients"):
            gradients = tape.gradient(scaled, variables, grad_loss)
        return list(zip(self.get_unscaled_gradients(gradients), variables))

    def _clips(self) -> Dict[str, Any]:
        """Returns how the inner optimizer would clip the scaled gradients, as it did up to 2.3."""
        names = () if has(Since.LEGACY_CLIPS_WHEN_APPLIED) else ("clipnorm", "clipvalue")
        clips = {name: getattr(self._optimizer, name, None) for name in names}
        return {name: limit for name, limit in clips.items() if limit is not None}

    @do_not_convert
    def get_gradients(self, loss: Any, params: Sequence[Any]) -> List[Any]:
        """Returns the unscaled gradients of a loss tensor in a graph.

        Args:
          loss: float tensor of shape `[]`.
          params: the variables.

        Raises:
          ValueError: the loss does not depend on one of the variables.
        """
        scaled = self.get_scaled_loss(loss)
        if not self._clips():
            return self.get_unscaled_gradients(self._optimizer.get_gradients(scaled, params))
        gradients = tf1.gradients(scaled, list(params))
        for gradient, variable in zip(gradients, params):
            if gradient is None:
                raise ValueError(
                    f"Variable {variable} has `None` for gradient: the loss does not depend on it "
                    "in a way that can be differentiated."
                )
        return self.get_unscaled_gradients(gradients)

    @do_not_convert
    def get_updates(self, loss: Any, params: Sequence[Any]) -> List[Any]:
        """Returns a list with the operation that runs a step, for graph-mode Keras."""
        return [self.apply_gradients(list(zip(self.get_gradients(loss, params), params)))]

    def _clip_gradients(self, grads: Any) -> Any:
        return grads  # apply_gradients clips them after it sums them over the replicas

    @do_not_convert
    def apply_gradients(
        self,
        grads_and_vars: Any,
        name: Optional[str] = None,
        experimental_aggregate_gradients: bool = True,
    ) -> Any:
        """Applies unscaled gradients if all of them are finite on all replicas.

        Args:
          grads_and_vars: an iterable of pairs of a gradient, or None, and its variable.
          name: name for the operation.
          experimental_aggregate_gradients: whether to sum the gradients over the replicas first.

        Returns:
          An operation in a graph; None in eager mode.

        Raises:
          ValueError: every gradient is None, or the call is not in a replica context.
        """
        pairs = self._pairs_with_gradient(grads_and_vars)
        inner, aggregate = self._optimizer, experimental_aggregate_gradients
        same_on_replicas, checks_late = replica_count() == 1 or not pairs, True
        own = gradients_of(pairs)  # not summed, for a loss scale that decides
        if has(Since.LEGACY_AGGREGATES_FIRST):
            if aggregate and (not same_on_replicas or has_own_aggregation(self._family, inner)):
                pairs, same_on_replicas = aggregate_gradients(inner, pairs), True
            aggregate = False
        elif not has(Since.LEGACY_ACCEPTS_SUMS) and aggregate and not same_on_replicas:
            own_sum = has_own_sum(inner, self._family.base)
            sums = sums_for_replica(pairs)
            pairs = pairs if own_sum else with_gradients(pairs, sums)
            return step(self, own, pairs, name, own_sum, summed=sums)
        elif (
            has_own_aggregation(self._family, inner)
            or has_own_transformation(self._family, inner)
            or overrides(self._family, inner, "apply_gradients")
        ):
            pass  # its `apply_gradients` transforms or sums the gradients itself
        elif not same_on_replicas and aggregate:
            pairs, same_on_replicas, aggregate = aggregate_gradients(inner, pairs), True, False
        elif not has(Since.LEGACY_ACCEPTS_SUMS) and not same_on_replicas:
            checks_late = False  # both would replace the same method of the inner optimizer
        return step(self, own, pairs, name, aggregate, same_on_replicas, checks_late)

    def _apply(self, gradients: Sequence[Any], rest: "StepArguments") -> Any:
        clips = self._clips()
        if "clipnorm" in clips:
            gradients = [tf.clip_by_norm(each, clips["clipnorm"]) for each in gradients]
        if "clipvalue" in clips:
            value = clips["clipvalue"]
            gradients = [tf.clip_by_value(each, -value, value) for each in gradients]
        pairs = list(zip(gradients, rest.variables))
        if not has(Since.LEGACY_ACCEPTS_SUMS):
            with already_summed([] if rest.aggregate else [self._optimizer]):
                return self._optimizer.apply_gradients(pairs, rest.name)
        kwargs: Dict[str, Any] = {"experimental_aggregate_gradients": rest.aggregate}
        if has(Since.LEGACY_GETS_NAME_BY_KEYWORD):
            return self._optimizer.apply_gradients(pairs, name=rest.name, **kwargs)
        return self._optimizer.apply_gradients(pairs, rest.name, **kwargs)

    @property
    def weights(self) -> List[Any]:
        """The variables of the inner optimizer, in its order, without those of the loss scale."""
        return self._optimizer.weights

    # Checkpoint layout of TensorFlow before 2.3: the inner optimizer is a child.

    @property
    def _checkpoint_dependencies(self) -> List[Any]:
        if has(Since.LEGACY_SAVES_ONE_OBJECT):
            return super()._checkpoint_dependencies
        return [
            TrackableReference(name="base_optimizer", ref=self._optimizer),
            TrackableReference(name="loss_scale", ref=self._state.saved),
        ]

    def get_slot_names(self) -> List[str]:
        """Returns the names of the slots of the inner optimizer."""
        is_child = not has(Since.LEGACY_SAVES_ONE_OBJECT)
        if is_child and called_from_checkpoint("get_slot_names", self):
            return []  # the slots are saved with the inner optimizer
        return self._optimizer.get_slot_names()
