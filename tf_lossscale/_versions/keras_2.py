"""How Keras 2 optimizers and graph-mode Keras differ between versions."""

import sys
from typing import Any, List, Sequence

from tf_lossscale._versions.base import TF_VERSION, tf
from tf_lossscale._versions.keras import KerasFamily

__all__ = [
    "LEGACY_AGGREGATES_ALWAYS",
    "LEGACY_CLIPS_WHEN_APPLIED",
    "aggregate_gradients",
    "asked_by_compile",
    "show_to_keras_session",
]

# `OptimizerV2.apply_gradients` clips from TensorFlow 2.4 on; before, only `minimize` did.
LEGACY_CLIPS_WHEN_APPLIED: bool = TF_VERSION >= (2, 4)


# It takes gradients that the caller has added up over the replicas from TensorFlow 2.2 on.
LEGACY_AGGREGATES_ALWAYS: bool = TF_VERSION < (2, 2)


def aggregate_gradients(optimizer: Any, pairs: Sequence[Any]) -> List[Any]:
    """Adds gradients up as an `OptimizerV2` of TensorFlow 2.2 or later does when it applies them.

    The methods are private, but optimizers such as Horovod's override them, so they must be asked.

    Args:
      optimizer: the optimizer.
      pairs: gradients and variables, in a replica context.
    """
    if TF_VERSION < (2, 4):  # it returns the gradients alone
        variables = [variable for _, variable in pairs]
        return list(zip(optimizer._aggregate_gradients(pairs), variables))
    return list(optimizer._aggregate_gradients(optimizer._transform_unaggregated_gradients(pairs)))


def asked_by_compile() -> bool:
    """Returns whether a property is read by the `compile` of TensorFlow 1.15.

    It compares the loss scale of an optimizer with that of a policy, and both are objects there. A
    tensor cannot be compared with one in eager mode.
    """
    if TF_VERSION >= (2, 2):
        return False
    frame: Any = sys._getframe(2)
    return bool(frame.f_globals.get("__name__", "").endswith("keras.engine.training"))


def show_to_keras_session(family: KerasFamily, variables: Sequence[Any]) -> None:
    """Has the Session that graph-mode Keras keeps to itself initialize `variables`.

    It knows the variables that Keras made; there is no public way to tell it of others.
    """
    backend = getattr(sys.modules[family.base.__module__], "backend", None)
    for variable in variables:
        if backend is not None and not tf.executing_eagerly():
            backend.track_variable(variable)
