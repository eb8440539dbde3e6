"""`enable_mixed_precision_graph_rewrite` and its opposite."""

import importlib
from typing import Any

from tf_lossscale._core.same_class import loss_scale_class
from tf_lossscale._v1.optimizer import MixedPrecisionLossScaleOptimizer
from tf_lossscale._versions.base import tf, tf1
from tf_lossscale._versions.graphs import (
    graph_rewrite_is_on,
    mixed_policy_is_set,
    plain_session_exists,
    set_graph_rewrite,
)
from tf_lossscale._versions.keras import is_keras_object

__all__ = ["disable_mixed_precision_graph_rewrite", "enable_mixed_precision_graph_rewrite"]

OPTION = "auto_mixed_precision"


def enable_mixed_precision_graph_rewrite(opt: Any, loss_scale: Any = "dynamic") -> Any:
    """Lets Grappler run float32 graphs in float16 where that is safe, and scales the loss.

    Stands for `tf.compat.v1.mixed_precision.enable_mixed_precision_graph_rewrite`, TensorFlow 2.21,
    and takes the Keras optimizers that it refuses since TensorFlow 2.11 as well. The rewrite acts
    on functions and Sessions that run after this call, on GPUs.

    Args:
      opt: a `tf.compat.v1.train.Optimizer` or a Keras optimizer.
      loss_scale: `"dynamic"`, a number, or a `LossScale`.

    Returns:
      `opt` in a `MixedPrecisionLossScaleOptimizer` or a Keras `LossScaleOptimizer`, which is the
      experimental one where the installed Keras has it.

    Raises:
      TypeError: `opt` is a Keras optimizer, and `loss_scale` a `LossScale` of a class of yours.
      ValueError: `opt` is neither, or scales the loss already; `loss_scale` is None or cannot be
        interpreted; a mixed precision dtype policy is set.
    """
    _refuse_mixed_policy()
    wrapped = _wrap(opt, loss_scale)
    if plain_session_exists():
        tf1.logging.warn(
            "You already have existing Sessions that do not use mixed precision. "
            "enable_mixed_precision_graph_rewrite() will not affect these Sessions."
        )
    tf.config.optimizer.set_experimental_options({OPTION: True})
    set_graph_rewrite(True)
    return wrapped


def disable_mixed_precision_graph_rewrite() -> None:
    """Turns the rewrite off again, however it was turned on; optimizers stay wrapped.

    Stands for `tf.compat.v1.mixed_precision.disable_mixed_precision_graph_rewrite`, TensorFlow
    2.21. Logs a warning if the rewrite is off already.
    """
    if not graph_rewrite_is_on():
        tf1.logging.warn(
            "disable_mixed_precision_graph_rewrite() called when mixed precision is already "
            "disabled."
        )
    tf.config.optimizer.set_experimental_options({OPTION: False})
    set_graph_rewrite(False)


def _refuse_mixed_policy() -> None:
    if mixed_policy_is_set():
        raise ValueError(
            "The mixed precision graph rewrite cannot be enabled, because the global Keras dtype "
            "Policy has been set to a mixed precision policy. At most one of the two can be used: "
            "set the policy back with keras.mixed_precision.set_global_policy('float32'), or keep "
            "it and leave the rewrite."
        )


def _wrap(opt: Any, loss_scale: Any) -> Any:
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
        return module.of_graph_rewrite(opt, loss_scale)
    raise ValueError(
        '"opt" must be an instance of a tf.train.Optimizer or a tf.keras.optimizers.Optimizer, but '
        f"got: {opt}"
    )
