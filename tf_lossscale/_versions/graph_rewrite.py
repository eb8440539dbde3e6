"""The switches of the mixed precision graph rewrite, and the Keras policies that exclude it."""

import sys
from typing import Any

from tf_lossscale._versions.base import TF_VERSION, first_module, tf

__all__ = [
    "graph_rewrite_is_on",
    "mixed_policy_is_set",
    "plain_session_exists",
    "set_graph_rewrite",
]

# The switches of the mixed precision graph rewrite. A Session reads `..._enabled` when it is made
# and then asks Grappler for the rewrite; the Keras policies of TensorFlow 1.15 to 2.15 and tf_keras
# refuse a mixed policy while it is set. There is no public way to set it but the originals.
# TensorFlow up to 2.5 keeps it in module attributes, later ones behind functions.
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
    """Returns whether a Session was made while the rewrite was off."""
    created = _rewrite.non_mixed_precision_session_created
    return bool(created() if callable(created) else created)


def mixed_policy_is_set() -> bool:
    """Returns whether the global dtype policy of any loaded Keras is a mixed precision policy.

    Keras 2 tells TensorFlow, from 2.3 on. TensorFlow 1.15 must look at the policy itself, and Keras
    3 tells nobody; it is looked at if it is loaded, so that none is imported.
    """
    if TF_VERSION >= (2, 6):
        told = bool(_rewrite.is_using_mixed_precision_policy())
    else:
        told = bool(getattr(_rewrite, "using_mixed_precision_policy", False))
    policies = []
    if TF_VERSION < (2, 3):
        policies.append(tf.keras.mixed_precision.experimental.global_policy())
    keras_3: Any = getattr(sys.modules.get("keras"), "mixed_precision", None)
    if hasattr(keras_3, "dtype_policy"):
        policies.append(keras_3.dtype_policy())
    return told or any(each.compute_dtype != each.variable_dtype for each in policies)
