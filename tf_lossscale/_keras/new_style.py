"""The wrapper of Keras 2's newer optimizers, TensorFlow 2.11 and later."""

from typing import Any, List, Optional, Sequence, Tuple

from tf_lossscale._core.replicas import replica_count
from tf_lossscale._keras.steps import StepArguments
from tf_lossscale._keras.transformed import late_check
from tf_lossscale._keras.wrapper import DelegatingWrapper
from tf_lossscale._versions.base import do_not_convert, tf
from tf_lossscale._versions.keras_optimizers import overrides

__all__ = ["Keras2Wrapper"]


class Keras2Wrapper(DelegatingWrapper):
    """The API of the final class, for a newer Keras 2 optimizer."""

    @do_not_convert
    def compute_gradients(
        self, loss: Any, var_list: Any, tape: Optional[Any] = None
    ) -> List[Tuple[Any, Any]]:
        """Scales the loss, computes the gradients and unscales them.

        Args:
          loss: a callable that returns the loss, or a tensor, which requires `tape`.
          var_list: the variables, or a callable that returns them.
          tape: the tape that recorded the loss tensor.

        Returns:
          Pairs of the unscaled gradient, or None, and the variable.
        """
        scaled, tape = self._scaled_on_tape(loss, tape)
        return self._unscaled_pairs(self._optimizer.compute_gradients(scaled, var_list, tape=tape))

    @do_not_convert
    def minimize(self, loss: Any, var_list: Any, tape: Optional[Any] = None) -> None:
        """Scales the loss, computes the gradients, unscales and applies them.

        Args:
          loss: a callable that returns the loss, or a tensor, which requires `tape`.
          var_list: the variables, or a callable that returns them.
          tape: the tape that recorded the loss tensor.
        """
        self.apply_gradients(self.compute_gradients(loss, var_list, tape))

    @do_not_convert
    def apply_gradients(
        self,
        grads_and_vars: Any,
        name: Optional[str] = None,
        skip_gradients_aggregation: bool = False,
        **kwargs: Any,
    ) -> None:
        """Applies unscaled gradients if all of them are finite on all replicas.

        Args:
          grads_and_vars: an iterable of pairs of a gradient, or None, and its variable.
          name: ignored, as in Keras's own class.
          skip_gradients_aggregation: whether the gradients are already summed over the replicas.
          **kwargs: `experimental_aggregate_gradients`, the opposite of
            `skip_gradients_aggregation`.

        Raises:
          ValueError: every gradient is None, or the call is not in a replica context.
        """
        aggregate = kwargs.pop("experimental_aggregate_gradients", True)
        aggregate = aggregate and not skip_gradients_aggregation
        if kwargs:
            raise TypeError("apply_gradients() has no argument " + ", ".join(sorted(kwargs)))
        pairs = list(grads_and_vars)
        variables = [variable for _, variable in pairs]
        pairs = self._pairs_with_gradient(pairs)
        inner = self._optimizer
        if variables:
            with tf.init_scope():
                # The variables of the inner optimizer cannot be created in a conditional.
                inner.build(variables)
        own = [gradient for gradient, _ in pairs]  # not summed, for a loss scale that decides
        if pairs and aggregate and (replica_count() > 1 or self._has_own_aggregation()):
            pairs = list(inner.aggregate_gradients(pairs))
        gradients = [gradient for gradient, _ in pairs]
        rest = StepArguments([variable for _, variable in pairs], None, False)
        check = late_check(self._family, inner)
        tested = own if self._state.decides else gradients
        self._step(
            tested, self._apply, gradients, rest, same_on_replicas=aggregate, late_check=check
        )

    def _has_own_aggregation(self) -> bool:
        """Whether the inner optimizer overrides how gradients are summed."""
        return overrides(self._family, self._optimizer, "aggregate_gradients")

    def _apply(self, gradients: Sequence[Any], rest: StepArguments) -> Any:
        if gradients:
            self._optimizer.apply_gradients(
                list(zip(gradients, rest.variables)), skip_gradients_aggregation=True
            )
