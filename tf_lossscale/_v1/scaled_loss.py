"""The base class of the loss-scale optimizers around a v1 optimizer."""

from typing import Any, Dict, List, Optional

from tf_lossscale._core.scaling import scale_loss, unscale_gradients
from tf_lossscale._core.shown_names import methods_shown_as
from tf_lossscale._core.watching import report_loss, report_unscaled
from tf_lossscale._types import Loss, Optimizer, Pairs, Tensor, Variable, VarList
from tf_lossscale._versions.base import do_not_convert, tf1
from tf_lossscale._versions.callers import called_from_checkpoint
from tf_lossscale._versions.files import Trackable


@methods_shown_as("LossScaleOptimizer")
class ScaledLossOptimizer(tf1.train.Optimizer):
    """Has the inner optimizer compute the gradients of the scaled loss, and unscales them.

    Subclasses define the step, `_inner()`, which returns the optimizer that they wrap, and
    `_current_loss_scale()`. No method needs `__init__` to have run: users' subclasses of the
    contrib optimizer may not call it, because the original never initialized its base class.
    """

    def __init__(self, inner: Optimizer) -> None:
        try:
            name = str(inner.get_name())
        except AttributeError:  # wrappers that never called `Optimizer.__init__` have no name
            name = type(inner).__name__
        # Not `super()`: TensorFlow's own class may stand between, for class tests only.
        locks = getattr(inner, "_use_locking", False)
        tf1.train.Optimizer.__init__(self, use_locking=locks, name=name)
        if isinstance(inner, Trackable):
            self._track_trackable(inner, "base_optimizer")

    def _loss_to_scale(self, loss: Loss) -> Loss:
        """Returns the loss to scale; raises an error if the class does not accept it."""
        return loss

    def get_name(self) -> str:
        """Returns the name of the inner optimizer."""
        return self._inner().get_name()

    def get_slot(self, var: Variable, name: str) -> Optional[Variable]:
        """Returns a slot of the inner optimizer.

        Args:
          var: the variable that the slot belongs to.
          name: name of the slot, one of `get_slot_names()`.

        Returns:
          A variable with the shape and, as a rule, the dtype of `var`; None if it is not made yet.
        """
        return self._inner().get_slot(var, name)

    def get_slot_names(self) -> List[str]:
        """Returns the names of the slots of the inner optimizer."""
        if called_from_checkpoint("get_slot_names", self):
            return []  # they are saved with the inner optimizer, as in the originals' files
        return self._inner().get_slot_names()

    def variables(self) -> List[Variable]:
        """Returns the variables of the inner optimizer."""
        return self._inner().variables()

    @do_not_convert
    def compute_gradients(
        self,
        loss: Loss,
        var_list: Optional[VarList] = None,
        gate_gradients: int = tf1.train.Optimizer.GATE_OP,
        aggregation_method: Optional[int] = None,
        colocate_gradients_with_ops: bool = False,
        grad_loss: Optional[Tensor] = None,
    ) -> Pairs:
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
          RuntimeError: a tensor was given in eager mode to any other optimizer.
        """
        loss = report_loss(self, self._loss_to_scale(loss))
        options = {
            "var_list": var_list,
            "gate_gradients": gate_gradients,
            "aggregation_method": aggregation_method,
            "colocate_gradients_with_ops": colocate_gradients_with_ops,
            "grad_loss": grad_loss,
        }
        pairs = list(self._gradients_of_scaled(loss, options))
        gradients, variables = zip(*pairs) if pairs else ((), ())
        report_unscaled(self, gradients, variables)
        return pairs

    def _gradients_of_scaled(self, loss: Loss, options: Dict[str, Any]) -> Pairs:
        """Computes the gradients with a scaled loss, and unscales them.

        The `options` are passed to `compute_gradients` of the inner optimizer.
        """
        # Read once, so that loss and gradients use the same value even if it changes with each
        # reading; and outside the loss, where a tape would watch its variables.
        loss_scale = self._current_loss_scale()
        scaled = scale_loss(loss, lambda: loss_scale)
        pairs = list(self._inner().compute_gradients(scaled, **options))
        gradients = [gradient for gradient, _ in pairs]
        variables = [variable for _, variable in pairs]
        del pairs  # so that only the list keeps the gradients alive while they are unscaled
        return list(zip(unscale_gradients(gradients, loss_scale), variables))
