"""The dtype policies of `tf.keras.mixed_precision`, final and experimental.

The final names are those of the installed Keras. So are the experimental ones where Keras has them.
Later versions of `compile` ignore the loss scale of a policy, so the class here raises an error
for a loss scale that would be ignored.
"""

import copyreg
from typing import Any, Callable, Dict, Optional, Tuple, Union

from tf_lossscale._core.loss_scales import DynamicLossScale, as_loss_scale, is_standard
from tf_lossscale._core.same_class import SameClass, is_our, stands_for
from tf_lossscale._keras.arguments import as_final_arguments, loss_scale_from_config
from tf_lossscale._keras.config import serialized_loss_scale
from tf_lossscale._versions.base import tf
from tf_lossscale._versions.keras import policy_of_layer
from tf_lossscale._versions.originals import compile_uses_policies, original

_installed: Any = tf.keras.mixed_precision
_experimental: Any = getattr(_installed, "experimental", None)


def _first(*names: str) -> Any:
    for owner in (_installed, _experimental):
        for name in names:
            found = original(owner, name)
            if found is not None:
                return found
    raise AttributeError(f"tf.keras.mixed_precision has none of {names}")


# Keras 3 has two names for each; TensorFlow up to 2.3 has the experimental namespace only.
Policy: Any = _first("Policy", "DTypePolicy")
global_policy: Any = _first("global_policy", "dtype_policy")
set_global_policy: Any = _first("set_global_policy", "set_dtype_policy", "set_policy")

_SCALED = "mixed_float16"
_SET_FOR = "_tfls_experimental_policy"
_SCALE_OF_COMPILE = {"initial_loss_scale": 2.0**15, "increment_period": 2000, "multiplier": 2.0}


class _SamePolicy(SameClass):
    """Metaclass: what `set_policy` set counts as experimental policy, as it does up to 2.8."""

    def __instancecheck__(cls, instance: Any) -> bool:
        was_set = cls is ExperimentalPolicy and hasattr(instance, _SET_FOR)
        return was_set or super().__instancecheck__(instance)


def _reduce_class(cls: Any) -> Union[str, Tuple[Callable[..., Any], Tuple[Any, ...]]]:
    """Returns what `pickle` stores for a class: the public one is not below its own name."""
    return (_public_class, ()) if cls is ExperimentalPolicy else str(cls.__qualname__)


def _public_class() -> Any:
    return ExperimentalPolicy


copyreg.pickle(_SamePolicy, _reduce_class)

# In Keras 3.3 the public class makes objects of a subclass, which alone reads the name.
_MadePolicy: Any = type(Policy("float32"))


class _PolicyWithLossScale(_MadePolicy, metaclass=_SamePolicy):
    """A dtype policy with a loss scale, which `compile` applies to the optimizer.

    Stands for `tf.keras.mixed_precision.experimental.Policy`, TensorFlow 2.8.

    Layers take the dtypes of their variables and computations from the policy, as from the final
    one. Since TensorFlow 2.9, `compile` uses dynamic loss scaling under `mixed_float16` and none
    under other policies. After `tf_lossscale.install()`, it uses the policy's loss scale under
    `mixed_float16`. A policy whose loss scale `compile` would ignore raises an error.

    State: none of its own. `loss_scale` is the loss scale that was passed; the default one is
    created when it is first read.

    Examples:
      >>> import tf_lossscale as tfls
      >>> policy = tfls.keras.mixed_precision.experimental.Policy("mixed_float16")
      >>> policy.compute_dtype, policy.variable_dtype, float(policy.loss_scale())
      ('float16', 'float32', 32768.0)

    Args:
      name: name of the policy, such as `"mixed_float16"`.
      loss_scale: `"auto"`, which is dynamic for `mixed_float16` and None for other policies; or a
        loss scale that `compile` can apply.

    Raises:
      ValueError: `compile` would ignore the loss scale, or the policy cannot be parsed.
    """

    def __init__(self, name: Any, loss_scale: Any = "auto") -> None:
        super().__init__(name)
        if isinstance(loss_scale, dict):
            loss_scale = loss_scale_from_config(loss_scale)
        by_name = isinstance(loss_scale, str) and loss_scale in ("auto", "dynamic")
        self._loss_scale: Optional[Any] = None if by_name else as_loss_scale(loss_scale)
        self._has_own_loss_scale = not by_name
        if self._has_own_loss_scale or (loss_scale == "dynamic" and self.name != _SCALED):
            _refuse_what_compile_ignores(self.name, as_loss_scale(loss_scale))

    @property
    def loss_scale(self) -> Optional[Any]:
        """The loss scale that was passed, or the default one of the policy."""
        # Created on first use, because variables cannot be created everywhere.
        if self.scales and self._loss_scale is None:
            with tf.init_scope():
                self._loss_scale = DynamicLossScale()
        return self._loss_scale

    @property
    def scales(self) -> bool:
        """Whether `compile` scales the loss under this policy."""
        by_default = self.name == _SCALED and not self._has_own_loss_scale
        return by_default or self._loss_scale is not None

    @property
    def loss_scale_of_compile(self) -> Any:
        """The argument that `compile` passes to the experimental optimizer."""
        return self._loss_scale if self._has_own_loss_scale else "dynamic"

    def get_config(self) -> Dict[str, Any]:
        """Returns the name, and the loss scale unless it follows from the name."""
        scale = self._loss_scale
        if not self._has_own_loss_scale or _is_scale_of_compile(self.name, scale):
            return {"name": self.name}
        return {"name": self.name, "loss_scale": scale and serialized_loss_scale(scale)}

    @classmethod
    def from_config(cls, config: Dict[str, Any], custom_objects: Any = None) -> Any:
        """Makes a policy from the result of `get_config`, including that of TensorFlow 2.1 to 2.8.

        Args:
          config: maps the names of the constructor's arguments to their values.
          custom_objects: not used, but Keras passes it.
        """
        return cls(**config)


# Layers are saved with the class of their policy, and Keras must find its own class there.
_PolicyWithLossScale.__name__ = _PolicyWithLossScale.__qualname__ = _MadePolicy.__name__
_PolicyWithLossScale.__module__ = _MadePolicy.__module__


def experimental_policy_of(policy: Any) -> Optional[Any]:
    """Returns the policy if it is of our class, or the one from which `set_policy` made it."""
    if is_our(_PolicyWithLossScale, policy):
        return policy
    return getattr(policy, _SET_FOR, None)


def _is_scale_of_compile(name: str, scale: Optional[Any]) -> bool:
    """Whether `compile` of Keras 2 from 2.9 on, or of Keras 3, scales a policy of this name so."""
    if scale is None:
        return name != _SCALED
    is_dynamic = is_standard(scale, DynamicLossScale)
    return name == _SCALED and is_dynamic and bool(scale.get_config() == _SCALE_OF_COMPILE)


def _refuse_what_compile_ignores(name: str, scale: Optional[Any]) -> None:
    if (name == _SCALED and compile_uses_policies()) or _is_scale_of_compile(name, scale):
        return
    unscaled = {"dynamic": False, "initial_scale": 1}
    arguments = (unscaled if scale is None else as_final_arguments(scale)) or {}
    shown = [f"{name}={value}" for name, value in arguments.items()]
    raise ValueError(
        f"The loss scale {scale} of the policy {name!r} would be ignored: compile() of this Keras "
        f"scales the loss for {_SCALED!r} only, and then dynamically. Set the policy without a "
        "loss scale and wrap the optimizer:\n"
        f"  tf.keras.mixed_precision.set_global_policy({name!r})\n"
        "  optimizer = tf_lossscale.keras.mixed_precision.LossScaleOptimizer("
        f"{', '.join(['optimizer', *(shown or ['...'])])})"
    )


def _global_policy() -> Any:
    """Returns the global policy, with its loss scale.

    Stands for `tf.keras.mixed_precision.experimental.global_policy`, TensorFlow 2.8.
    """
    return _with_loss_scale(global_policy())


def _set_policy(policy: Any) -> None:
    """Sets the policy of layers that are created from now on.

    Stands for `tf.keras.mixed_precision.experimental.set_policy`, TensorFlow 2.8.

    Args:
      policy: a policy, its name, or None for the default one.
    """
    # Set as a plain policy, because layers write their policy to the files they are saved in.
    scaled = _with_loss_scale(tf.keras.backend.floatx() if policy is None else policy)
    plain = Policy(scaled.name)
    setattr(plain, _SET_FOR, scaled)
    set_global_policy(plain)


def _get_layer_policy(layer: Any) -> Any:
    """Returns the policy of a layer, with its loss scale.

    Stands for `tf.keras.mixed_precision.experimental.get_layer_policy`, TensorFlow 2.8.

    Args:
      layer: a Keras layer.

    Raises:
      ValueError: `layer` is not a Keras layer.
    """
    policy = policy_of_layer(layer)
    if policy is None:
        raise ValueError(f"get_policy can only be called on a layer, but got: {layer}")
    return _with_loss_scale(policy)


def _with_loss_scale(policy: Any) -> Any:
    if hasattr(policy, "loss_scale"):
        return policy
    return experimental_policy_of(policy) or _PolicyWithLossScale(getattr(policy, "name", policy))


def _accepting_our_loss_scales(installed: Any) -> Any:
    """Returns a subclass of the installed experimental policy that also accepts our loss scales."""

    class AcceptsOurs(installed, metaclass=_SamePolicy):
        def __init__(self, name: Any, loss_scale: Any = "auto") -> None:
            is_auto = isinstance(loss_scale, str) and loss_scale == "auto"
            # The default differs between versions. Our loss scales are registered as TensorFlow's.
            super().__init__(name, **({} if is_auto else {"loss_scale": loss_scale}))

    stands_for(AcceptsOurs, installed)
    AcceptsOurs.__name__ = AcceptsOurs.__qualname__ = installed.__name__
    AcceptsOurs.__module__, AcceptsOurs.__doc__ = installed.__module__, installed.__doc__
    return AcceptsOurs


def _installed_or(name: str, ours: Any) -> Any:
    ours.__name__ = ours.__qualname__ = name
    return original(_experimental, name) or ours


_known: Any = original(_experimental, "Policy")
ExperimentalPolicy: Any = _accepting_our_loss_scales(_known) if _known else _PolicyWithLossScale
experimental_global_policy: Any = _installed_or("global_policy", _global_policy)
set_policy: Any = _installed_or("set_policy", _set_policy)
get_layer_policy: Any = _installed_or("get_layer_policy", _get_layer_policy)
