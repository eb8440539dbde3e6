"""Multiplying a loss by the scale, and gradients by its reciprocal, in their own dtypes."""

from typing import Any, Callable, Dict, List, Optional

from tf_lossscale._versions.base import do_not_convert, tf


@do_not_convert
def scale_loss(loss: Any, loss_scale: Callable[[], Any]) -> Any:
    """Returns the loss times the scale, in the dtype of the loss; for a callable, a callable.

    `loss_scale` returns the scale. It is called when the loss is multiplied, so that a loss
    function in a loop sees the scale of its own step.
    """
    if callable(loss):
        return lambda: _times_scale(loss(), loss_scale)
    return _times_scale(loss, loss_scale)


@do_not_convert
def unscale_gradients(gradients: List[Any], loss_scale: Any) -> List[Any]:
    """Multiplies every gradient by `1 / loss_scale`, and empties the list.

    The reciprocal is taken in the dtype of the scale and cast to the dtype of the gradient, as the
    originals do; None stays None and `IndexedSlices` stay sparse. In eager mode a scaled gradient
    is freed as soon as it is unscaled, unless something else refers to it: its memory is reused for
    the next one, and a step never needs memory for all gradients twice.
    """
    # Plain numbers are divided in Python, where 1 / 8 is a float.
    reciprocal = tf.convert_to_tensor(1 / loss_scale)
    reciprocals: Dict[Any, Any] = {reciprocal.dtype.base_dtype: reciprocal}

    def unscaled(gradient: Any) -> Any:
        if gradient is None:
            return None
        if isinstance(gradient, tf.IndexedSlices):
            return tf.IndexedSlices(
                unscaled(gradient.values), gradient.indices, dense_shape=gradient.dense_shape
            )
        if not isinstance(getattr(gradient, "dtype", None), tf.DType):
            # A Python number, which has no dtype, or a NumPy value.
            dtype = getattr(gradient, "dtype", reciprocal.dtype)
            gradient = tf.convert_to_tensor(gradient, dtype=tf.as_dtype(dtype))
        dtype = gradient.dtype.base_dtype
        if dtype not in reciprocals:
            reciprocals[dtype] = tf.cast(reciprocal, dtype)
        if not isinstance(gradient, tf.Tensor):
            return gradient * reciprocals[dtype]  # variables, ragged and symbolic tensors
        # Not `*`: dispatching it takes longer than the multiplication itself.
        return tf.raw_ops.Mul(x=gradient, y=reciprocals[dtype], name="mul")

    gradients.reverse()
    return [unscaled(gradients.pop()) for _ in range(len(gradients))]


def tape_for(loss: Any, tape: Optional[Any]) -> Any:
    """Returns the tape that records how a loss is scaled: `tape`, or a new one.

    Raises:
      ValueError: the loss is a tensor, and there is no tape.
    """
    if not callable(loss) and tape is None:
        raise ValueError(f"`tape` is required when a `Tensor` loss is passed. Got: loss={loss}")
    return tf.GradientTape() if tape is None else tape


def _times_scale(loss: Any, loss_scale: Callable[[], Any]) -> Any:
    loss = tf.convert_to_tensor(loss)
    return loss * tf.cast(loss_scale(), loss.dtype.base_dtype)
