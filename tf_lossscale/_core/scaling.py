"""Scaling of losses and gradients, and the base class of loss-scale optimizers around a v1 one."""

import functools
from typing import Any, Callable, Dict, Iterable, List, Optional

from tf_lossscale._core.shown_names import methods_shown_as
from tf_lossscale._core.steps import report_loss, report_unscaled
from tf_lossscale._types import (
    DType,
    Gradient,
    GradsAndVars,
    Loss,
    Optimizer,
    Pairs,
    ReadScale,
    Tape,
    Tensor,
    Variable,
    VarList,
)
from tf_lossscale._versions.base import do_not_convert, tf, tf1
from tf_lossscale._versions.callers import called_from_checkpoint
from tf_lossscale._versions.files import Trackable


@do_not_convert
def scale_loss(loss: Loss, loss_scale: ReadScale) -> Loss:
    """Returns the loss times the scale, in the dtype of the loss; for a callable, a callable.

    `loss_scale` returns the scale. It is called when the loss is multiplied, so that a loss
    function in a loop sees the scale of its own step.
    """
    if callable(loss):
        return lambda: scale_loss(loss(), loss_scale)
    loss = tf.convert_to_tensor(loss)
    return loss * tf.cast(loss_scale(), loss.dtype.base_dtype)


@do_not_convert
def unscale_gradients(
    gradients: List[Optional[Gradient]], loss_scale: Tensor
) -> List[Optional[Gradient]]:
    """Multiplies every gradient by `1 / loss_scale`, and empties the list.

    The reciprocal is taken in the dtype of the scale and cast to the dtype of the gradient, as the
    original classes do, except for the class of Keras 3.
    """
    # Plain numbers are divided in Python, where 1 / 8 is a float.
    return multiply_gradients(gradients, tf.convert_to_tensor(1 / loss_scale))


@do_not_convert
def multiply_gradients(
    gradients: List[Optional[Gradient]], factor: Tensor
) -> List[Optional[Gradient]]:
    """Multiplies every gradient by a tensor, in the dtype of the gradient, and empties the list."""

    def multiplied(gradient: Gradient, cast: Callable[[DType], Tensor]) -> Gradient:
        own_factor = cast(gradient.dtype.base_dtype)
        if not isinstance(gradient, tf.Tensor):
            return gradient * own_factor  # variables, ragged and symbolic tensors
        # Not `*`: dispatching it takes longer than the multiplication itself.
        return tf.raw_ops.Mul(x=gradient, y=own_factor, name="mul")

    return _change_each(gradients, multiplied, factor)


@do_not_convert
def divide_gradients(
    gradients: List[Optional[Gradient]], loss_scale: Tensor
) -> List[Optional[Gradient]]:
    """Divides every gradient by `loss_scale`, as Keras 3 does, and empties the list.

    The quotients of integers and of 16-bit gradients are float32. float16 cannot hold every scale;
    and where a `tf.function` also multiplies the gradient by the scale, TensorFlow may multiply it
    by the reciprocal first, so that in float16 a small gradient would become 0.
    """

    def divided(gradient: Gradient, cast: Callable[[DType], Tensor]) -> Gradient:
        dtype = gradient.dtype.base_dtype
        if dtype in (tf.float16, tf.bfloat16, tf.bool) or dtype.is_integer:
            gradient, dtype = tf.cast(gradient, tf.float32), tf.float32
        if not isinstance(gradient, tf.Tensor):
            return gradient / cast(dtype)
        return tf.raw_ops.RealDiv(x=gradient, y=cast(dtype), name="truediv")

    return _change_each(gradients, divided, tf.convert_to_tensor(loss_scale))


def _change_each(
    gradients: List[Optional[Gradient]],
    change: Callable[[Gradient, Callable[[DType], Tensor]], Gradient],
    factor: Tensor,
) -> List[Optional[Gradient]]:
    """Returns `change(gradient, cast)` of each, and empties the list. `cast(dtype)` is the factor.

    None stays None and `IndexedSlices` stay sparse; a number without a dtype gets the factor's. In
    eager mode each gradient is freed as soon as it is changed, unless something else refers to it:
    its memory is reused for the next one, and a step never needs memory for all gradients twice.
    """
    cast = functools.lru_cache(maxsize=None)(functools.partial(tf.cast, factor))

    def changed(gradient: Gradient) -> Optional[Gradient]:
        if gradient is None:
            return None
        if isinstance(gradient, tf.IndexedSlices):
            values = changed(gradient.values)
            return tf.IndexedSlices(values, gradient.indices, dense_shape=gradient.dense_shape)
        if not isinstance(getattr(gradient, "dtype", None), tf.DType):
            dtype = tf.as_dtype(getattr(gradient, "dtype", factor.dtype))  # NumPy's, or of no dtype
            gradient = tf.convert_to_tensor(gradient, dtype=dtype)
        return change(gradient, cast)

    gradients.reverse()
    return [changed(gradients.pop()) for _ in range(len(gradients))]


def tape_for(loss: Loss, tape: Optional[Tape]) -> Tape:
    """Returns the tape that records how a loss is scaled: `tape`, or a new one for a callable."""
    if not callable(loss) and tape is None:
        raise ValueError(f"`tape` is required when a `Tensor` loss is passed. Got: loss={loss}")
    return tf.GradientTape() if tape is None else tape


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


def gradients_of(pairs: Pairs) -> List[Gradient]:
    return [gradient for gradient, _ in pairs if gradient is not None]


def with_gradients(pairs: Pairs, gradients: Iterable[Gradient]) -> Pairs:
    """Returns the pairs with other gradients in place of those that are not None."""
    remaining = iter(gradients)
    return [(None if old is None else next(remaining), variable) for old, variable in pairs]


def as_pairs(
    grads_and_vars: GradsAndVars,
    who: str,
    names_of: Optional[Callable[[List[Variable]], object]] = None,
) -> Pairs:
    """Returns the pairs as a list; a ValueError if there are none, or no pair has a gradient."""
    pairs = list(grads_and_vars)
    if not pairs:
        raise ValueError(
            f"No variables provided. {who}.apply_gradients() was given no pair of a gradient and a "
            "variable; was an iterator of pairs read before?"
        )
    if all(gradient is None for gradient, _ in pairs):
        variables = [variable for _, variable in pairs]
        names = (
            [str(variable) for variable in variables] if names_of is None else names_of(variables)
        )
        raise ValueError(
            f"No gradients provided for any variable: {names}. Every gradient that "
            f"{who}.apply_gradients() was given is None; check that the loss depends on these "
            "variables."
        )
    return pairs


def require_replica_context(method: str = "apply_gradients") -> None:
    """Raises a ValueError where `method` is called outside the replicas of a strategy."""
    if tf.distribute.has_strategy() and tf.distribute.in_cross_replica_context():
        raise ValueError(
            f"{method}() must be called in a replica context. Call it in the function that "
            "`strategy.run` (`strategy.experimental_run_v2` in TensorFlow 1.15) runs."
        )
