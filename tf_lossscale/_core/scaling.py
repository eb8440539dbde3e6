"""Scaling of losses and gradients, and what a step is passed: pairs of gradients and variables."""

import functools
from typing import Callable, Iterable, List, Optional

from tf_lossscale._types import (
    DType,
    Gradient,
    GradsAndVars,
    Loss,
    Pairs,
    ReadScale,
    Tape,
    Tensor,
    Variable,
)
from tf_lossscale._versions.base import do_not_convert, tf


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
