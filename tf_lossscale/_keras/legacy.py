"""The wrapper of Keras 2 `OptimizerV2` optimizers."""

import dataclasses
from typing import Dict, List, Optional

from tf_lossscale._core.gradient_sums import sums_for_replica
from tf_lossscale._core.refusals import refuse_updates
from tf_lossscale._core.scaling import gradients_of, with_gradients
from tf_lossscale._core.shown_names import methods_shown_as
from tf_lossscale._keras.keras2 import DelegatingWrapper
from tf_lossscale._keras.steps import StepArguments, StepRequest, step
from tf_lossscale._keras.wrapper import InVariables, LossScaleWrapper
from tf_lossscale._replicas.agreement import replica_count
from tf_lossscale._types import (
    Gradient,
    Gradients,
    GradsAndVars,
    LearningRate,
    Loss,
    Operation,
    Optimizer,
    OptimizerV2,
    Pairs,
    SavedObject,
    ScaleState,
    Tape,
    Tensor,
    Variable,
    Variables,
    VarList,
)
from tf_lossscale._versions import optimizer_v2
from tf_lossscale._versions.base import do_not_convert, tf, tf1
from tf_lossscale._versions.callers import called_from_checkpoint
from tf_lossscale._versions.files import TrackableReference
from tf_lossscale._versions.keras_optimizers import (
    defined_outside,
    overrides,
    show_to_keras_session,
)
from tf_lossscale._versions.optimizer_v2 import Sums
from tf_lossscale._versions.replicas import has_own_sum
from tf_lossscale._versions.update_methods import UPDATE_METHODS


@methods_shown_as("LossScaleOptimizer")
@refuse_updates(UPDATE_METHODS["legacy"], NotImplementedError)
class OptimizerV2Wrapper(DelegatingWrapper):
    """The API of the final class, for an `OptimizerV2`, in eager mode and in graphs."""

    _HAS_AGGREGATE_GRAD = True
    _optimizer: OptimizerV2

    def _set_up(self, inner: Optimizer, state: ScaleState) -> None:
        super()._set_up(inner, state)
        if isinstance(state, InVariables):
            show_to_keras_session(self._family, [state.current_loss_scale, state.counter])

    @do_not_convert
    def minimize(
        self,
        loss: Loss,
        var_list: VarList,
        grad_loss: Optional[Tensor] = None,
        name: Optional[str] = None,
        tape: Optional[Tape] = None,
    ) -> Optional[Operation]:
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
        kwargs = {"tape": tape} if optimizer_v2.COMPUTES_WITH_TAPE or tape is not None else {}
        pairs = self._compute_gradients(loss, var_list=var_list, grad_loss=grad_loss, **kwargs)
        return self.apply_gradients(pairs, name=name)

    @do_not_convert
    def _compute_gradients(
        self,
        loss: Loss,
        var_list: VarList,
        grad_loss: Optional[Tensor] = None,
        tape: Optional[Tape] = None,
    ) -> Pairs:
        """Computes the gradients of the scaled loss, and unscales them; returns pairs.

        From TensorFlow 2.4 on the inner optimizer computes them. Before, it does so for a function
        without clipping only: with clipping, it would clip the scaled gradients.
        """
        scaled, tape = self._scaled_on_tape(loss, tape)
        compute = self._optimizer._compute_gradients
        if optimizer_v2.COMPUTES_WITH_TAPE:
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

    def _clips(self) -> Dict[str, float]:
        """Returns how the inner optimizer would clip the scaled gradients, as it did up to 2.3."""
        names = () if optimizer_v2.CLIPS_WHEN_APPLIED else ("clipnorm", "clipvalue")
        clips = {name: getattr(self._optimizer, name, None) for name in names}
        return {name: limit for name, limit in clips.items() if limit is not None}

    @do_not_convert
    def get_gradients(self, loss: Loss, params: Variables) -> List[Optional[Gradient]]:
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
    def get_updates(self, loss: Loss, params: Variables) -> List[Optional[Operation]]:
        """Returns a list with the operation that runs a step, for graph-mode Keras."""
        return [self.apply_gradients(list(zip(self.get_gradients(loss, params), params)))]

    def _clip_gradients(self, grads: Gradients) -> Gradients:
        return grads  # apply_gradients clips them after it sums them over the replicas

    @do_not_convert
    def apply_gradients(
        self,
        grads_and_vars: GradsAndVars,
        name: Optional[str] = None,
        experimental_aggregate_gradients: bool = True,
    ) -> Optional[Operation]:
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
        request = StepRequest(
            pairs,
            own=gradients_of(pairs),
            tested=gradients_of(pairs),
            arguments=StepArguments(
                [variable for _, variable in pairs], name, experimental_aggregate_gradients
            ),
            same_on_replicas=replica_count() == 1 or not pairs,
        )
        return step(self, _SUM_HERE[optimizer_v2.SUMS](self, request))

    def _apply(self, gradients: Gradients, arguments: StepArguments) -> Optional[Operation]:
        clips = self._clips()
        if "clipnorm" in clips:
            gradients = [tf.clip_by_norm(gradient, clips["clipnorm"]) for gradient in gradients]
        if "clipvalue" in clips:
            limit = clips["clipvalue"]
            gradients = [tf.clip_by_value(gradient, -limit, limit) for gradient in gradients]
        pairs = list(zip(gradients, arguments.variables))
        return optimizer_v2.apply_gradients(
            self._optimizer, pairs, arguments.name, arguments.aggregate
        )

    def _set_learning_rate(self, value: LearningRate) -> None:
        if optimizer_v2.READS_RATE_BEFORE_IT_SETS:
            # Makes the variables of all hyperparameters. So the file of a checkpoint has the key
            # `learning_rate` even if the value is a schedule.
            _ = self._optimizer.learning_rate
        super()._set_learning_rate(value)

    @property
    def weights(self) -> List[Variable]:
        """The variables of the inner optimizer, in its order, but not of the loss scale."""
        return self._optimizer.weights

    # Checkpoint layout of TensorFlow before 2.3: the inner optimizer is a child.

    @property
    def _checkpoint_dependencies(self) -> List[SavedObject]:
        if optimizer_v2.SAVES_ONE_OBJECT:
            return super()._checkpoint_dependencies
        return [
            TrackableReference(name="base_optimizer", ref=self._optimizer),
            TrackableReference(name="loss_scale", ref=self._state.saved),
        ]

    def get_slot_names(self) -> List[str]:
        """Returns the names of the slots of the inner optimizer."""
        is_child = not optimizer_v2.SAVES_ONE_OBJECT
        if is_child and called_from_checkpoint("get_slot_names", self):
            return []  # the slots are saved with the inner optimizer
        return self._optimizer.get_slot_names()


# Which sums over the replicas are made here, before the gradients are tested. The rest is left to
# the inner optimizer, where the original leaves it.


def _sum_before_the_test(wrapper: LossScaleWrapper, request: StepRequest) -> StepRequest:
    if not request.arguments.aggregate:
        return request
    arguments = dataclasses.replace(request.arguments, aggregate=False)
    inner = wrapper._optimizer
    is_needed = not request.same_on_replicas
    if is_needed or optimizer_v2.has_own_aggregation(wrapper._family, inner):
        return _with_sums(inner, request._replace(arguments=arguments))
    return request._replace(arguments=arguments)


def _sum_unless_the_inner_optimizer_must(
    wrapper: LossScaleWrapper, request: StepRequest
) -> StepRequest:
    """Sums the gradients over the replicas for the step, and for the inner optimizer.

    Not for one whose own sum or `apply_gradients` a program has overridden: it must get what it
    gets from TensorFlow's class, the gradients of each replica.
    """
    inner, family = wrapper._optimizer, wrapper._family
    needs_own = (
        optimizer_v2.has_own_aggregation(family, inner)
        or optimizer_v2.has_own_transformation(family, inner)
        or overrides(family, inner, "apply_gradients")
        or _has_own_step(wrapper)
    )
    if needs_own or request.same_on_replicas or not request.arguments.aggregate:
        return request
    arguments = dataclasses.replace(request.arguments, aggregate=False)
    return _with_sums(inner, request._replace(arguments=arguments))


def _sum_for_distributed_apply(wrapper: LossScaleWrapper, request: StepRequest) -> StepRequest:
    if request.same_on_replicas or not request.arguments.aggregate:
        return request
    sums = sums_for_replica(request.pairs)
    request = request._replace(tested=sums, same_on_replicas=True)
    if has_own_sum(wrapper._optimizer, wrapper._family.base) or _has_own_step(wrapper):
        return request  # it gets the gradients of each replica, and sums them itself
    arguments = dataclasses.replace(request.arguments, aggregate=False)
    return request._replace(pairs=with_gradients(request.pairs, sums), arguments=arguments)


def _has_own_step(wrapper: LossScaleWrapper) -> bool:
    """Returns whether a program overrides `_apply_gradients`, which gets each replica's gradients.

    So it does up to TensorFlow 2.4, whose class leaves the sum to the inner optimizer.
    """
    name = "_apply_gradients"
    return name in vars(wrapper) or defined_outside(wrapper, name, "tf_lossscale")


def _with_sums(inner: Optimizer, request: StepRequest) -> StepRequest:
    pairs = optimizer_v2.aggregate_gradients(inner, request.pairs)
    return request._replace(pairs=pairs, tested=gradients_of(pairs), same_on_replicas=True)


_SUM_HERE = {
    Sums.BEFORE_THE_TEST: _sum_before_the_test,
    Sums.IN_APPLY_GRADIENTS: _sum_unless_the_inner_optimizer_must,
    Sums.IN_DISTRIBUTED_APPLY: _sum_for_distributed_apply,
}
