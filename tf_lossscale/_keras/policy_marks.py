"""Marks the policies that a program makes or sets by a name of the shim.

A marked policy is an object of the installed Keras, or of a subclass, so that layers and files
treat it as one of Keras. `compile` of a model with a marked policy wraps the optimizer in the
shim's class, as `scaling_of` says.
"""

import copyreg
import importlib
import inspect
from types import ModuleType
from typing import Any, Dict, Optional, Tuple, Union

from tf_lossscale._core.same_class import SameClass
from tf_lossscale._keras.compiling import SCALED, scaling_by_final_class, scaling_by_loss_scale
from tf_lossscale._types import Class, DtypePolicy, LossScaleArgument, Method, Model
from tf_lossscale._versions.base import has, tf
from tf_lossscale._versions.interventions import Scaling, serve
from tf_lossscale._versions.keras import policy_of_layer
from tf_lossscale._versions.originals import original
from tf_lossscale._versions.releases import Since

_namespace: ModuleType = tf.keras.mixed_precision
experimental_namespace: Any = getattr(_namespace, "experimental", None)


def _first(*names: str) -> Any:
    for owner in (_namespace, experimental_namespace):
        for name in names:
            found = original(owner, name)
            if found is not None:
                return found
    raise AttributeError(f"tf.keras.mixed_precision has none of {names}")


# Keras 3 has two names for each; TensorFlow up to 2.3 has the experimental namespace only.
InstalledPolicy: Class = _first("Policy", "DTypePolicy")
installed_set_global_policy: Any = _first("set_global_policy", "set_dtype_policy", "set_policy")
global_policy: Any = _first("global_policy", "dtype_policy")

MadePolicy: Class = type(InstalledPolicy("float32"))
"""The class of the policies that `InstalledPolicy` makes: in Keras 3.3, a subclass of it."""

InstalledExperimentalPolicy: Class = original(experimental_namespace, "Policy")
"""None from TensorFlow 2.9 on; up to 2.3 the same as `InstalledPolicy`."""

_KERAS: str = MadePolicy.__module__.split(".")[0]
_MARK = "_tf_lossscale_mark"


class Mark:
    """Marks a policy. Copies of the policy have the same mark.

    `compile` is hooked as long as any policy has a mark.

    Args:
      is_experimental: whether the policy has a loss scale, which the experimental class takes.
      is_dynamic: whether that is the dynamic loss scale without an object of the program.
    """

    def __init__(self, is_experimental: bool, is_dynamic: bool) -> None:
        self.is_experimental = is_experimental
        self.is_dynamic = is_dynamic
        self.serve()

    def serve(self) -> None:
        """Hooks `compile`, unless it is hooked. `uninstall()` ends the hook of every policy."""
        serve(self, _KERAS, scaling_of)

    def __copy__(self) -> "Mark":
        return self

    def __deepcopy__(self, memo: Dict[int, object]) -> "Mark":
        return self

    def __reduce__(self) -> Any:
        return (Mark, (self.is_experimental, self.is_dynamic))


def mark_of(policy: DtypePolicy) -> Optional[Mark]:
    return getattr(policy, _MARK, None)


def set_mark(policy: DtypePolicy, mark: Optional[Mark]) -> None:
    setattr(policy, _MARK, mark)
    if mark is not None:
        mark.serve()


def marked(
    policy: DtypePolicy, is_experimental: bool, loss_scale: LossScaleArgument = None
) -> DtypePolicy:
    """Marks a policy, unless it has a mark; returns it.

    A policy under which `compile` of no Keras scales the loss needs no mark.

    Args:
      policy: a policy of the installed Keras.
      is_experimental: whether it is an experimental one.
      loss_scale: the argument that an experimental policy was made with.
    """
    mark = mark_of(policy)
    if mark is not None:
        mark.serve()
    elif policy.name == SCALED or _has_loss_scale(policy):
        set_mark(policy, Mark(is_experimental, isinstance(loss_scale, str)))
    return policy


def _has_loss_scale(policy: DtypePolicy) -> bool:
    if hasattr(
        policy, "scales"
    ):  # an attribute of our class, whose loss scale is made when it is read
        return bool(policy.scales)
    return getattr(policy, "loss_scale", None) is not None


def scaling_of(model: Model, always: bool) -> Optional[Scaling]:
    """Returns what `compile` does with the optimizer of a model; None if Keras decides.

    Args:
      model: a Keras model.
      always: whether our class is also used for a model without a policy of the shim.
    """
    policy = policy_of_layer(model)
    if policy is None:
        return None
    mark = mark_of(policy)
    if mark is None:
        return _scaling_without_mark(policy, always)
    if not mark.is_experimental:
        return scaling_by_final_class(policy.name)
    # Up to TensorFlow 2.3, optimizers of one policy share the state of its loss scale. Later, each
    # has its own, and an object that was passed to one warns when it is read.
    is_name = mark.is_dynamic and has(Since.EXPERIMENTAL_HAS_OWN_LOSS_SCALE)
    return scaling_by_loss_scale(policy.name, "dynamic" if is_name else policy.loss_scale)


def _scaling_without_mark(policy: DtypePolicy, always: bool) -> Optional[Scaling]:
    """Returns what `compile` does under a policy that the program has not made by our names.

    Keras makes a policy of the name that a layer or model is given, and of the configuration in a
    file. While the global policy is of the shim, such policies behave as on Keras 2, too.
    """
    current = mark_of(global_policy())
    if current is None and not always:
        return None
    if hasattr(policy, "loss_scale"):
        return scaling_by_loss_scale(policy.name, policy.loss_scale)
    was_experimental = InstalledExperimentalPolicy is None and current and current.is_experimental
    if was_experimental and policy.name == SCALED:
        return scaling_by_loss_scale(SCALED, "dynamic")
    return scaling_by_final_class(policy.name)


class PolicyClass(SameClass):
    """Metaclass of our policy classes, which marks the policies that they make.

    A public class that has `_makes` makes objects of that installed class: Keras 2 compares the
    class of a policy with it, and files contain its name.
    """

    is_experimental = False
    _pickled_as: Tuple[str, str]  # the module and the name in it that `pickle` finds a class by

    def __call__(cls, *args: object, **kwargs: object) -> Any:
        make = vars(cls).get("_makes", super().__call__)
        loss_scale = kwargs.get("loss_scale", args[1] if len(args) > 1 else "auto")
        return marked(make(*args, **kwargs), cls.is_experimental, loss_scale)

    def __instancecheck__(cls, instance: object) -> bool:
        # What `set_policy` sets counts as the policy that it was given.
        return super().__instancecheck__(getattr(instance, "was_set_for", instance))

    @property
    def __signature__(cls) -> inspect.Signature:
        # `inspect` would otherwise report the signature of `__call__`.
        return inspect.signature(vars(cls).get("_makes", cls.__init__))  # type: ignore[misc]


def _reduce_class(cls: Class) -> Union[str, Tuple[Method, Tuple[str, str]]]:
    """Returns what `pickle` stores for a class: our classes have the names of Keras's classes."""
    pickled_as = vars(cls).get("_pickled_as")
    return str(cls.__qualname__) if pickled_as is None else (_class_at, pickled_as)


def _class_at(module: str, name: str) -> Class:
    return getattr(importlib.import_module(module), name)


copyreg.pickle(PolicyClass, _reduce_class)
