"""How the optimizers of Keras 2 and Keras 3 differ between versions."""

import contextlib
import importlib
import sys
from typing import Any, Iterator, List, Sequence

from tf_lossscale._versions.base import TF_VERSION, tf
from tf_lossscale._versions.keras import KerasFamily
from tf_lossscale._versions.overridden_methods import overridden

__all__ = [
    "EXPERIMENTAL_SHARES_LOSS_SCALE",
    "KERAS_REFUSES_STRATEGIES",
    "LEGACY_AGGREGATES_ALWAYS",
    "LEGACY_AGGREGATES_FIRST",
    "LEGACY_CLIPS_WHEN_APPLIED",
    "LEGACY_COMPUTES_WITH_TAPE",
    "aggregate_gradients",
    "build_as_apply_does",
    "calculates_with_tensorflow",
    "called_from_compile",
    "called_from_minimize_of_fit",
    "explain_missing_methods",
    "has_own_aggregation",
    "has_own_transformation",
    "is_overwritten_with_gradient",
    "keras_3_backend",
    "keras_3_can_be_given_sums",
    "keras_3_does_not_track",
    "keras_3_is_given_sums",
    "keras_3_takes_sums",
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


_KERAS_3_BEFORE_THE_SUM = (
    "apply",
    "_all_reduce_sum_gradients",
    "_backend_apply_gradients",
    "_backend_update_step",
    "_clip_gradients",
)

_KERAS_3_OPTIONS = (
    "clipnorm",
    "clipvalue",
    "global_clipnorm",
    "gradient_accumulation_steps",
    "loss_scale_factor",
)

_KERAS_2_METHODS = ("get_scaled_loss", "get_unscaled_gradients", "loss_scale", "dynamic_counter")


def explain_missing_methods(cls: Any) -> None:
    """Makes the AttributeError of a Keras 2 method on Keras 3's own class say what to do.

    A program that has tested the optimizer's class calls these methods next. `hasattr` remains
    false.

    Args:
      cls: the class of an optimizer. Nothing is done if it has the methods.
    """
    if hasattr(cls, _KERAS_2_METHODS[0]) or hasattr(cls, "__getattr__"):
        return

    def __getattr__(self: Any, name: str) -> Any:
        message = f"{type(self).__name__!r} object has no attribute {name!r}"
        if name in _KERAS_2_METHODS:
            message += (
                ": it is Keras 3's own class. Wrap the optimizer in "
                "tf_lossscale.keras.mixed_precision.LossScaleOptimizer before compile(), or call "
                "tf_lossscale.install(replace=True) first, so that compile() does."
            )
        raise AttributeError(message)

    cls.__getattr__ = __getattr__


def keras_3_backend(family: KerasFamily) -> str:
    """Returns what Keras 3 calculates with: "tensorflow", "jax", "torch" and so on."""
    return str(family.keras.config.backend())


def keras_3_does_not_track() -> Any:
    """Returns a context in which Keras 3 objects do not track the variables set on them."""
    return importlib.import_module("keras.src.utils.tracking").DotNotTrackScope()


def keras_3_takes_sums(family: KerasFamily, optimizer: Any, variables: Sequence[Any]) -> bool:
    """Returns whether a Keras 3 optimizer does the same with gradients that are added up before.

    In `apply` it adds those of the replicas up last: it has accumulated and clipped each replica's
    own by then, and put gradients in the place of variables that ask for that.

    Args:
      family: the optimizer's.
      optimizer: the optimizer.
      variables: those that the gradients are for.
    """
    return (
        keras_3_can_be_given_sums(family, optimizer)
        and all(getattr(optimizer, name, None) is None for name in _KERAS_3_OPTIONS)
        and not any(is_overwritten_with_gradient(each) for each in variables)
    )


def is_overwritten_with_gradient(variable: Any) -> bool:
    """Returns whether a Keras 3 optimizer assigns the gradient to the variable, unscaled.

    Args:
      variable: a Keras variable or a TensorFlow variable.
    """
    return bool(getattr(variable, "overwrite_with_gradient", False))


def keras_3_can_be_given_sums(family: KerasFamily, optimizer: Any) -> bool:
    """Returns whether `keras_3_is_given_sums` does what it says: no class overrides these steps.

    Args:
      family: the optimizer's.
      optimizer: the optimizer.
    """
    return all(
        hasattr(family.base, name) and getattr(type(optimizer), name) is getattr(family.base, name)
        for name in _KERAS_3_BEFORE_THE_SUM
    )


@contextlib.contextmanager
def keras_3_is_given_sums(optimizer: Any) -> Iterator[None]:
    """Keeps a Keras 3 optimizer from adding the gradients of the replicas up, within the block.

    It has no argument for that.
    """
    with overridden([optimizer], "_all_reduce_sum_gradients", lambda _: list):
        yield


def build_as_apply_does(optimizer: Any, variables: Sequence[Any]) -> None:
    """Builds an optimizer that is not built yet, as its own `apply` would at its beginning.

    Args:
      optimizer: a loss-scale optimizer of Keras 3, or ours.
      variables: the variables that it will change.
    """
    if optimizer.built or not variables:
        return
    if type(optimizer).__module__.startswith("tf_lossscale.") or hasattr(optimizer, "_state"):
        with tf.init_scope():
            optimizer.build(variables)
        return
    backend = sys.modules["keras.src.backend"]
    with backend.name_scope(optimizer.name, caller=optimizer):
        optimizer.build(variables)
    optimizer.built = True


def calculates_with_tensorflow() -> bool:
    """Returns whether the backend of the loaded Keras 3 is TensorFlow."""
    return bool(sys.modules["keras"].config.backend() == "tensorflow")
