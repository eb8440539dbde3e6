"""The wrapper of Keras 3 optimizers: the methods and update rules of Keras 2 on Keras 3's class."""

from typing import Any, Dict, Iterable, List, Optional

from tf_lossscale._core import scaling
from tf_lossscale._core.refusals import refuse_updates
from tf_lossscale._core.shown_names import methods_shown_as
from tf_lossscale._core.watching import report_loss, report_unscaled
from tf_lossscale._keras.arguments import are_summed
from tf_lossscale._keras.keras3_attributes import Keras3Attributes
from tf_lossscale._keras.step_style import Call
from tf_lossscale._keras.steps import StepArguments, StepRequest, reduce_sum, step
from tf_lossscale._replicas.agreement import replica_count
from tf_lossscale._types import (
    Gradient,
    Gradients,
    GradsAndVars,
    Loss,
    Operation,
    Pairs,
    Tape,
    Variable,
    Variables,
    VarList,
)
from tf_lossscale._versions import keras_optimizers
from tf_lossscale._versions.base import do_not_convert, tf, tf1
from tf_lossscale._versions.callers import called_by_keras
from tf_lossscale._versions.update_methods import UPDATE_METHODS

_OF_KERAS_2 = (
    *("get_scaled_loss", "get_unscaled_gradients"),
    *("minimize", "compute_gradients", "_compute_gradients"),
)
"""Methods by which a subclass changes the steps of `fit` on Keras 2 only."""


@methods_shown_as("LossScaleOptimizer")
@refuse_updates(UPDATE_METHODS["keras3"], NotImplementedError)
class Keras3Wrapper(Keras3Attributes):
    """The API of the final class, for a Keras 3 optimizer.

    `apply` takes scaled gradients. `apply_gradients` applies what it is given, as on Keras 2,
    unless the step uses a name that only Keras 3 has, as `fit` does; see `step_style`.
    """

    _advances_first = False

    @do_not_convert
    def scale_loss(self, loss: Loss) -> Loss:
        """Returns the loss multiplied by the loss scale, as Keras 3 does before it calls `apply`.

        Args:
          loss: a float tensor.

        Returns:
          The product: float64 if the loss is float64, otherwise float32.
        """
        self._warn_of_uncalled()
        loss = tf.convert_to_tensor(loss)
        self._calls.refuse_scaled(loss)
        self._calls.note(Call.SCALE_LOSS, by_keras=called_by_keras())
        if loss.dtype not in (tf.float32, tf.float64):
            loss = tf.cast(loss, tf.float32)
        scaled = scaling.scale_loss(report_loss(self, loss), self._state)
        self._calls.note_scaled(Call.SCALE_LOSS, scaled)
        return scaled

    @do_not_convert
    def get_scaled_loss(self, loss: Loss) -> Loss:
        """Returns the loss multiplied by the loss scale.

        Args:
          loss: a float tensor, or a callable that returns one.

        Returns:
          The product, in the dtype of the loss. If `loss` is a callable, the result is a callable
          that reads the loss scale when it is called.
        """
        scaled = super().get_scaled_loss(loss)
        if isinstance(scaled, tf.Tensor):
            self._calls.note_scaled(Call.GET_SCALED_LOSS, scaled)
        return scaled

    def _warn_of_uncalled(self) -> None:
        """Logs what a step of `fit` leaves out; looks for it at the first loss only."""
        if self.__dict__.get("_has_looked"):
            return
        self.__dict__["_has_looked"] = True
        if any(self._is_the_users(name) for name in ("scale_loss", "apply")):
            return  # written for Keras 3
        uncalled = [name for name in _OF_KERAS_2 if self._is_the_users(name)]
        if uncalled:
            tf1.logging.warning(
                f"{type(self).__name__} defines {' and '.join(uncalled)}, which fit() on Keras 3 "
                "never calls, so nothing of it takes effect there. Override scale_loss() and "
                "apply() instead, or train in a loop that calls the methods itself."
            )
        if self._is_the_users("apply_gradients"):
            tf1.logging.warning(
                f"{type(self).__name__} defines apply_gradients, to which fit() on Keras 3 passes "
                "gradients that are still scaled. If it depends on their size, define it in the "
                "class of the inner optimizer instead, or train in a loop that unscales them."
            )

    def _is_the_users(self, name: str) -> bool:
        others = ("tf_lossscale", "keras", "tf_keras")
        return name in vars(self) or keras_optimizers.defined_outside(self, name, *others)

    @do_not_convert
    def minimize(
        self, loss: Loss, var_list: VarList, tape: Optional[Tape] = None
    ) -> Optional[Operation]:
        """Scales the loss, computes the gradients, unscales and applies them.

        Args:
          loss: a callable that returns the loss, or a tensor, which requires `tape`.
          var_list: the variables, or a callable that returns them.
          tape: the tape that recorded the loss tensor.
        """
        return self.apply_gradients(self._pairs_to_minimize(loss, var_list, tape))

    @do_not_convert
    def compute_gradients(
        self, loss: Loss, var_list: VarList, tape: Optional[Tape] = None
    ) -> Pairs:
        """Scales the loss, computes the gradients and unscales them.

        Args:
          loss: a callable that returns the loss, or a tensor, which requires `tape`.
          var_list: the variables, or a callable that returns them.
          tape: the tape that recorded the loss tensor.

        Returns:
          Pairs of the unscaled gradient, or None, and the variable.
        """
        self._calls.begin()
        tape = scaling.tape_for(loss, tape)
        with tape:
            scaled = self.get_scaled_loss(loss() if callable(loss) else loss)
        variables = list(var_list() if callable(var_list) else var_list)
        gradients = tape.gradient(scaled, [_watched(variable) for variable in variables])
        unscaled = self.get_unscaled_gradients(gradients)
        self._note(Call.COMPUTE)
        return list(zip(unscaled, variables))

    @do_not_convert
    def aggregate_gradients(self, grads_and_vars: GradsAndVars) -> Pairs:
        """Sums gradients over the replicas, as a step does before it tests them.

        Args:
          grads_and_vars: pairs of a gradient, or None, and its variable.

        Returns:
          The pairs with sums. `apply_gradients` takes them with `skip_gradients_aggregation=True`.
        """
        pairs = list(grads_and_vars)
        gradients = scaling.gradients_of(pairs)
        if replica_count() == 1 or not gradients:
            return pairs
        return scaling.with_gradients(pairs, reduce_sum(gradients))

    @do_not_convert
    def apply_gradients(
        self, grads_and_vars: GradsAndVars, name: Optional[str] = None, **kwargs: object
    ) -> Optional[Operation]:
        """Applies the gradients if all of them are finite on all replicas.

        They are applied as they are, as on Keras 2. Only in a step that uses `scale_loss` or
        `dynamic_scale`, which Keras 3 alone has, are they divided by the loss scale, as there.

        Args:
          grads_and_vars: pairs of a gradient, or None, and its variable.
          name: an argument of Keras 2, which has no effect.
          **kwargs: the arguments `experimental_aggregate_gradients` and
            `skip_gradients_aggregation` of Keras 2.

        Returns:
          The variable that counts the steps.

        Raises:
          RuntimeError: the step uses the methods of both Keras 2 and Keras 3, or the loss was
            scaled by `scale_loss` of another optimizer; nothing is applied.
          ValueError: every gradient is None, the call is not in a replica context, or the inner
            optimizer does not support gradients that are already summed over the replicas.
        """
        summed_by_caller = self._are_summed(kwargs)
        pairs = list(grads_and_vars)
        gradients = [gradient for gradient, _ in pairs]
        variables = [variable for _, variable in pairs]
        divides = self._calls.divides(gradients, variables)
        if pairs:
            scaling.as_pairs(pairs, type(self).__name__)
        if not divides:
            self._apply_all(gradients, variables, summed_by_caller)
        elif summed_by_caller or any(gradient is None for gradient in gradients):
            divided = scaling.divide_gradients(gradients, self._state())
            self._apply_all(divided, variables, summed_by_caller)
        else:
            # Keras 3 does the same; so `fit` calls the `apply` of a subclass that overrides it.
            self._calls.pass_on()
            self.apply(tuple(gradients), tuple(variables))
            self._calls.begin()  # for an override that does not call our method
        return self.iterations

    @do_not_convert
    def apply(
        self, grads: Iterable[Optional[Gradient]], trainable_variables: Optional[Variables] = None
    ) -> None:
        """Unscales the gradients and applies them if all of them are finite on all replicas.

        Args:
          grads: the gradients of a loss that `scale_loss` scaled, and None.
          trainable_variables: their variables; if None, those that the optimizer was built for.

        Raises:
          RuntimeError: the gradients have already been unscaled.
          ValueError: every gradient is None, or the call is not in a replica context.
        """
        grads = list(grads)
        if trainable_variables is None and self.built:
            trainable_variables = self._trainable_variables
        variables = list(trainable_variables or [])
        self._calls.check_apply(variables)
        if trainable_variables is None:
            raise ValueError(
                "apply() without variables needs an optimizer that is built: pass the "
                "variables, or call build(variables) first."
            )
        if len(variables) != len(grads):
            raise ValueError(
                f"apply() was given {len(grads)} gradients for {len(variables)} variables."
            )
        divided = scaling.divide_gradients(list(grads), self._state())
        gradients = [
            gradient if self._is_assigned(variable) else quotient
            for gradient, quotient, variable in zip(grads, divided, variables)
        ]
        report_unscaled(self, gradients, variables, in_step=True)
        self._apply_all(gradients, variables)

    def stateless_apply(
        self, optimizer_variables: Variables, grads: Any, trainable_variables: Variables
    ) -> None:
        """Raises an error: as Keras's own class, it does not work with the TensorFlow backend.

        Args:
          optimizer_variables: values in Keras's order of the variables, which `variables` lacks.
          grads: gradients.
          trainable_variables: values.

        Raises:
          ValueError: always. Keras's class raises it where the gradients are finite.
        """
        raise ValueError(
            "stateless_apply() is not supported with the TensorFlow backend: call apply()."
        )

    def _end_micro_batch(self, gradients: Gradients, variables: Variables) -> bool:
        """Ends the calls of a micro-batch of `accumulate`; returns whether they scaled its loss.

        Each micro-batch decides for itself, because the calls between the last of them and the step
        may belong to other gradients that are accumulated with this optimizer.
        """
        return self._calls.divides(gradients, variables)

    def _begin_accumulated_step(self, is_scaled: bool) -> None:
        """Lets `apply_gradients`, which is called next, divide its gradients or not."""
        self._calls.begin()
        self._note(Call.SCALE_LOSS if is_scaled else Call.UNSCALE)

    def _apply_weight_decay(self, variables: Variables) -> None:
        """Does nothing, as in Keras's own class: the inner optimizer decays in its own step."""

    def _is_assigned(self, variable: Variable) -> bool:
        """Returns whether Keras assigns gradients to a variable, which are then not unscaled."""
        # Keras 3.10 and later have this method, which a subclass may override.
        overwrites = getattr(self, "_overwrite_variable_with_gradient", None)
        if overwrites is not None:
            return bool(overwrites(variable))
        return bool(getattr(variable, "overwrite_with_gradient", False))

    def _are_summed(self, kwargs: Dict[str, Any]) -> bool:
        if not are_summed(**kwargs) or replica_count() == 1:
            return False
        if keras_optimizers.keras_3_can_be_given_sums(self._family, self.inner_optimizer):
            return True
        raise ValueError(
            f"{type(self.inner_optimizer).__name__} of Keras 3 sums the gradients of all "
            "replicas itself and has no option that turns this off. Pass apply_gradients() each "
            "replica's own gradients, or divide the sums by strategy.num_replicas_in_sync."
        )

    def _apply_all(
        self,
        gradients: List[Optional[Gradient]],
        variables: List[Variable],
        summed_by_caller: bool = False,
    ) -> None:
        """Makes a step with the scaled gradients of one replica, within its replica context.

        The gradients are summed over the replicas before they are tested, so that all replicas skip
        or none does. The inner optimizer is given the sums if it treats them as it treats its own
        sum; otherwise the gradients themselves, and it sums again.
        """
        scaling.require_replica_context("apply")
        self._raise_if_strategy_unsupported()
        keras_optimizers.build_as_apply_does(self, variables)
        self._checkpoints.check()
        pairs = list(zip(gradients, variables))
        pairs = scaling.as_pairs(pairs, type(self).__name__) if pairs else []
        own = summed = scaling.gradients_of(pairs)
        aggregate = not summed_by_caller
        if replica_count() > 1 and own and aggregate:
            summed = reduce_sum(own)
            if keras_optimizers.keras_3_takes_sums(self._family, self.inner_optimizer, variables):
                pairs, aggregate = scaling.with_gradients(pairs, summed), False
        arguments = StepArguments([variable for _, variable in pairs], aggregate=aggregate)
        step(self, StepRequest(pairs, own, summed, arguments, not summed_by_caller))

    def _counter_of_skipped(self) -> Optional[Variable]:
        if self.inner_optimizer.gradient_accumulation_steps:
            return None  # accumulation depends on the count, so a skipped step must not change it
        return self.inner_optimizer.iterations.value

    def _apply(self, gradients: Gradients, arguments: StepArguments) -> None:
        inner, variables = self.inner_optimizer, arguments.variables
        if not arguments.aggregate:
            with keras_optimizers.keras_3_is_given_sums(inner):
                inner.apply(gradients, trainable_variables=variables)
        elif gradients and keras_optimizers.overrides(self._family, inner, "apply_gradients"):
            # Keras 3's own class skips such an override. Classes written for Keras 2 have one, and
            # without a wrapper `fit` calls it on Keras 3, too. Keras's own calls `apply`.
            inner.apply_gradients(list(zip(gradients, variables)))
        else:
            inner.apply(gradients, trainable_variables=variables)


def _watched(variable: Variable) -> Any:
    """Returns what a tape watches of a variable: Keras 3 keeps TensorFlow's inside."""
    return variable if isinstance(variable, tf.Variable) else variable.value
