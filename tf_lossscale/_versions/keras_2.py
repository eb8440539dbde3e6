"""How Keras 2 optimizers and graph-mode Keras differ between versions."""

import sys
from typing import Any, List, Sequence

from tf_lossscale._versions.base import TF_VERSION, tf
from tf_lossscale._versions.keras import KerasFamily

__all__ = [
    "EXPERIMENTAL_SHARES_LOSS_SCALE",
    "KERAS_REFUSES_STRATEGIES",
    "LEGACY_AGGREGATES_ALWAYS",
    "LEGACY_AGGREGATES_FIRST",
    "LEGACY_CLIPS_WHEN_APPLIED",
    "LEGACY_COMPUTES_WITH_TAPE",
    "aggregate_gradients",
    "called_from_compile",
    "called_from_minimize_of_fit",
    "has_own_aggregation",
    "has_own_transformation",
    "overrides",
    "show_to_keras_session",
]

# The loss-scale optimizer refuses some strategies from TensorFlow 2.2 on.
KERAS_REFUSES_STRATEGIES: bool = TF_VERSION >= (2, 2)


# Up to TensorFlow 2.3 the experimental class uses the variables of the `DynamicLossScale` that it
# is given. From 2.4 to 2.8, where it last exists, each optimizer has its own.
EXPERIMENTAL_SHARES_LOSS_SCALE: bool = TF_VERSION < (2, 4)


# `OptimizerV2.apply_gradients` clips from TensorFlow 2.4 on; before, only `minimize` did.
LEGACY_CLIPS_WHEN_APPLIED: bool = TF_VERSION >= (2, 4)


# It takes gradients that the caller has added up over the replicas from TensorFlow 2.2 on.
LEGACY_AGGREGATES_ALWAYS: bool = TF_VERSION < (2, 2)


# The loss-scale optimizer adds gradients up before it tests them from TensorFlow 2.5 on, and passes
# `experimental_aggregate_gradients=False` to the inner optimizer from then on.
LEGACY_AGGREGATES_FIRST: bool = TF_VERSION >= (2, 5)


# `OptimizerV2._compute_gradients` takes a tape from TensorFlow 2.4 on.
LEGACY_COMPUTES_WITH_TAPE: bool = TF_VERSION >= (2, 4)


def overrides(family: KerasFamily, optimizer: Any, *methods: str) -> bool:
    """Returns whether the class of an optimizer has one of `methods` of its own.

    Args:
      family: the optimizer's.
      optimizer: the optimizer.
      *methods: names of methods of the base class, or of later versions of it.
    """
    cls = type(optimizer)
    return any(
        getattr(cls, name, None) is not getattr(family.base, name, None) or name in vars(optimizer)
        for name in methods
    )


def has_own_aggregation(family: KerasFamily, optimizer: Any) -> bool:
    """Returns whether an `OptimizerV2` adds gradients up in a way of its own, as Horovod's do.

    Args:
      family: the optimizer's.
      optimizer: the optimizer.
    """
    given = getattr(optimizer, "gradient_aggregator", None)
    package = family.base.__module__.split(".")[0]
    if given is not None and (getattr(given, "__module__", None) or "").split(".")[0] != package:
        return True
    return overrides(family, optimizer, "_aggregate_gradients", "_transform_unaggregated_gradients")


def has_own_transformation(family: KerasFamily, optimizer: Any) -> bool:
    """Returns whether an `OptimizerV2` changes gradients in a way of its own when it applies them.

    Args:
      family: the optimizer's.
      optimizer: the optimizer.
    """
    given = getattr(optimizer, "gradient_transformers", None)
    return bool(given) or overrides(family, optimizer, "_transform_gradients")


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


def called_from_compile() -> bool:
    """Returns whether a property is read by the `compile` of TensorFlow 1.15.

    It compares the loss scale of an optimizer with that of a policy, and both are objects there. A
    tensor cannot be compared with one in eager mode.
    """
    if TF_VERSION >= (2, 2):
        return False
    frame: Any = sys._getframe(2)
    return bool(frame.f_globals.get("__name__", "").endswith("keras.engine.training"))


def called_from_minimize_of_fit() -> bool:
    """Returns whether `fit` of TensorFlow 2.2 or 2.3 applies gradients that it has summed itself.

    Later versions leave the sum over the replicas to the optimizer.
    """
    if not (2, 2) <= TF_VERSION < (2, 4):
        return False
    frame: Any = sys._getframe(1)
    for _ in range(8):  # with the wrappers of AutoGraph
        if frame is None:
            return False
        module = frame.f_globals.get("__name__", "")
        if frame.f_code.co_name == "_minimize" and module.endswith("keras.engine.training"):
            return True
        frame = frame.f_back
    return False


def show_to_keras_session(family: KerasFamily, variables: Sequence[Any]) -> None:
    """Has the Session that graph-mode Keras keeps to itself initialize `variables`.

    It knows the variables that Keras made; there is no public way to tell it of others.
    """
    backend = getattr(sys.modules[family.base.__module__], "backend", None)
    for variable in variables:
        if backend is not None and not tf.executing_eagerly():
            backend.track_variable(variable)
