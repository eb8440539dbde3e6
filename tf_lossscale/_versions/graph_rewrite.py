"""The switches of the mixed precision graph rewrite, and the Keras policies that rule it out."""

import sys
from typing import Any

from tf_lossscale._versions.base import TF_VERSION, first_module, tf

__all__ = [
    "graph_rewrite_is_on",
    "mixed_policy_is_set",
    "plain_session_exists",
    "set_graph_rewrite",
]

# The switches of the mixed precision graph rewrite. A Session reads `..._enabled` when it is
# created and then enables the rewrite in Grappler; while it is set, the Keras of TensorFlow 1.15 to
# 2.15 and tf_keras reject a mixed policy. The only public way to set it are the original functions.
# It is a module attribute up to TensorFlow 2.5; later versions have functions.
_rewrite: Any = first_module("tensorflow.python.training.experimental.mixed_precision_global_state")


def set_graph_rewrite(on: bool) -> None:
    """Sets whether new Sessions rewrite their graphs."""
    if TF_VERSION >= (2, 6):
        _rewrite.set_mixed_precision_graph_rewrite_enabled(on)
    else:
        _rewrite.mixed_precision_graph_rewrite_is_enabled = on


def graph_rewrite_is_on() -> bool:
    """Returns whether new Sessions rewrite their graphs."""
    if TF_VERSION >= (2, 6):
        return bool(_rewrite.is_mixed_precision_graph_rewrite_enabled())
    return bool(_rewrite.mixed_precision_graph_rewrite_is_enabled)


def plain_session_exists() -> bool:
    """Returns whether a Session was created while the rewrite was off."""
    created = _rewrite.non_mixed_precision_session_created
    return bool(created() if callable(created) else created)


def mixed_policy_is_set() -> bool:
    """Returns whether the global dtype policy of any loaded Keras is a mixed precision policy.

    From 2.3 on, Keras 2 sets a flag in TensorFlow. On TensorFlow 1.15 the policy itself must be
    read, and so must that of Keras 3, if it is loaded; no Keras is imported for this.
    """
    if TF_VERSION >= (2, 6):
        is_set = bool(_rewrite.is_using_mixed_precision_policy())
    else:
        is_set = bool(getattr(_rewrite, "using_mixed_precision_policy", False))
    policies = []
    if TF_VERSION < (2, 3):
        policies.append(tf.keras.mixed_precision.experimental.global_policy())
    keras_3: Any = getattr(sys.modules.get("keras"), "mixed_precision", None)
    if hasattr(keras_3, "dtype_policy"):
        policies.append(keras_3.dtype_policy())
    return is_set or any(each.compute_dtype != each.variable_dtype for each in policies)
