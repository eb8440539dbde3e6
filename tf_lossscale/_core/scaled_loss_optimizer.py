"""The base class of the two loss-scale optimizers for a `tf.compat.v1.train.Optimizer`."""

from typing import Any, List, Optional, Tuple

from tf_lossscale._core.optimizer_wrapper import OptimizerWrapper
from tf_lossscale._core.scaling import scale_loss, unscale_gradients
from tf_lossscale._core.steps import report_loss
from tf_lossscale._versions.base import do_not_convert, tf1

__all__ = ["ScaledLossOptimizer"]


class ScaledLossOptimizer(OptimizerWrapper):
    """Has the inner optimizer compute the gradients of the scaled loss, and unscales them.

    Subclasses implement `_current_loss_scale`, and override `_loss_to_scale` to check the loss.
    """

    def _current_loss_scale(self) -> Any:
        raise NotImplementedError("a subclass returns its current loss scale")

    def _loss_to_scale(self, loss: Any) -> Any:
        """Returns the loss to scale; raises an error if the class does not accept it."""
        return loss

    @do_not_convert
    def compute_gradients(
        self,
        loss: Any,
        var_list: Optional[Any] = None,
        gate_gradients: int = tf1.train.Optimizer.GATE_OP,
        aggregation_method: Optional[Any] = None,
        colocate_gradients_with_ops: bool = False,
        grad_loss: Optional[Any] = None,
    ) -> List[Tuple[Any, Any]]:
        """Computes the gradients of `loss`, through a loss that is scaled up.

        Args:
          loss: float tensor of shape `[]`, or a callable that returns it; in eager mode a callable.
          var_list: the variables; all trainable ones of the graph if None.
          gate_gradients: `GATE_NONE`, `GATE_OP` or `GATE_GRAPH`.
          aggregation_method: how gradient terms are combined, an `AggregationMethod`.
          colocate_gradients_with_ops: whether gradients are placed where their ops are.
          grad_loss: tensor that holds the gradient of the loss, or None.

        Returns:
          Pairs of the gradient (in the variable's dtype, scaled down again; None where the loss
          does not depend on the variable) and the variable.

        Raises:
          TypeError: a tensor was given in eager mode to the optimizer of `contrib`.
          RuntimeError: a tensor was given in eager mode to another.
        """
        loss = report_loss(self, self._loss_to_scale(loss))
        # Read once, so that loss and gradients use the same value even if it changes with each
        # reading; and outside the loss, where a tape would watch its variables.
        loss_scale = self._current_loss_scale()
        pairs = list(
            self._inner().compute_gradients(
                scale_loss(loss, lambda: loss_scale),
                var_list=var_list,
                gate_gradients=gate_gradients,
                aggregation_method=aggregation_method,
                colocate_gradients_with_ops=colocate_gradients_with_ops,
                grad_loss=grad_loss,
            )
        )
        gradients, variables = [each for each, _ in pairs], [each for _, each in pairs]
        del pairs  # so that only the list keeps the gradients alive while they are unscaled
        return list(zip(unscale_gradients(gradients, loss_scale), variables))
