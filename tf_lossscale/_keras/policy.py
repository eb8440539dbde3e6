"""The dtype policies of `tf.keras.mixed_precision`, final and experimental.

They set the policy of the installed Keras, and mark it as one of the shim (`policy_marks`).
"""

from typing import TYPE_CHECKING, Any, Dict, Optional

from tf_lossscale._core.same_class import is_our, stands_for
from tf_lossscale._keras.compiling import SCALED
from tf_lossscale._keras.experimental_policy import (
    PolicyThatIsSet,
    PolicyWithLossScale,
    register_policies,
)
from tf_lossscale._keras.policy_marks import (
    InstalledExperimentalPolicy,
    InstalledPolicy,
    MadePolicy,
    PolicyClass,
    experimental_namespace,
    global_policy as global_policy,
    installed_set_global_policy,
    marked,
)
from tf_lossscale._types import Class, DtypePolicy, Layer, LossScaleArgument, Method
from tf_lossscale._versions.base import tf
from tf_lossscale._versions.keras import is_keras_3, policy_of_layer
from tf_lossscale._versions.originals import original


class Policy(MadePolicy, metaclass=PolicyClass):
    """A dtype policy, which `compile` follows as in Keras 2, on every Keras.

    Stands for `tf.keras.mixed_precision.Policy`, TensorFlow 2.4 and later. The policies that it
    makes are objects of that class.

    Layers take the dtypes of their variables and computations from the policy. If the policy of a
    model is `"mixed_float16"`, `compile` wraps the optimizer in the shim's `LossScaleOptimizer`.

    State: none.

    Examples:
      >>> import tf_lossscale as tfls
      >>> policy = tfls.keras.mixed_precision.Policy("mixed_float16")
      >>> policy.compute_dtype, policy.variable_dtype
      ('float16', 'float32')

    Args:
      name: name of the policy, such as `"mixed_float16"`.

    Raises:
      ValueError: the policy cannot be parsed.
    """

    _makes = InstalledPolicy
    _pickled_as = (__name__, "Policy")

    if TYPE_CHECKING:  # the installed class has it

        def __init__(self, name: str) -> None: ...


stands_for(Policy, InstalledPolicy)


def set_global_policy(policy: DtypePolicy) -> None:
    """Sets the policy of layers and models that are created from now on.

    Stands for `tf.keras.mixed_precision.set_global_policy`, TensorFlow 2.4 and later. If the policy
    is `"mixed_float16"`, `compile` of these models wraps the optimizer in the shim's
    `LossScaleOptimizer`, on every Keras. This ends for models that are created after
    `tf.keras.mixed_precision.set_global_policy` has set another policy.

    Args:
      policy: a policy, its name, or None for the default one.
    """
    if is_our(PolicyWithLossScale, policy):
        set_policy(policy)
        return
    if policy is None and is_keras_3(tf.keras):  # whose own function takes no None
        policy = tf.keras.backend.floatx()
    installed_set_global_policy(policy)
    if policy is not None:
        is_name = isinstance(policy, str)
        current = global_policy()
        marked(current, is_experimental=not is_name and hasattr(current, "loss_scale"))


def _set_policy(policy: DtypePolicy) -> None:
    """Sets the policy of layers and models that are created from now on.

    Stands for `tf.keras.mixed_precision.experimental.set_policy`, TensorFlow 2.8. `compile` of
    these models wraps the optimizer in the shim's experimental `LossScaleOptimizer`, with the loss
    scale of the policy. This ends for models that are created after
    `tf.keras.mixed_precision.set_global_policy` has set another policy.

    Args:
      policy: a policy, its name, or None for the default one.
    """
    if policy is None or isinstance(policy, str):
        policy = PolicyWithLossScale(policy or tf.keras.backend.floatx())
    experimental = _experimental_policy_of(policy)
    if experimental is None:
        set_global_policy(policy)
    elif experimental.scales or experimental.name == SCALED:
        installed_set_global_policy(PolicyThatIsSet(experimental.name, experimental))
    else:
        plain = InstalledPolicy(experimental.name)
        plain.loss_scale = None
        plain.was_set_for = experimental
        installed_set_global_policy(plain)


def _experimental_policy_of(policy: DtypePolicy) -> Optional[DtypePolicy]:
    """Returns the experimental policy that was set as `policy`, or that it is; None for others."""
    policy = getattr(policy, "was_set_for", policy)
    return policy if is_our(PolicyWithLossScale, policy) else None


def _global_policy() -> DtypePolicy:
    """Returns the global policy, with its loss scale.

    Stands for `tf.keras.mixed_precision.experimental.global_policy`, TensorFlow 2.8.
    """
    return _with_loss_scale(global_policy())


def _get_layer_policy(layer: Layer) -> DtypePolicy:
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


def _with_loss_scale(policy: DtypePolicy) -> DtypePolicy:
    experimental = _experimental_policy_of(policy)
    if experimental is None and not hasattr(policy, "loss_scale"):
        return PolicyWithLossScale(policy.name)
    return experimental or policy


def _set_installed_policy(policy: DtypePolicy) -> None:
    """Sets the policy of layers and models that are created from now on.

    Stands for `tf.keras.mixed_precision.experimental.set_policy` of this TensorFlow. `compile` of
    these models wraps the optimizer in the shim's experimental class, with the loss scale of the
    policy. In TensorFlow 2.4 to 2.8, a name sets a policy of the final API; the class is the
    experimental one all the same, as up to 2.3, and is an instance of the final one, too.

    Args:
      policy: a policy, its name, or None for the default one.
    """
    _installed_set_policy(policy)
    if policy is not None:
        current = global_policy()
        is_experimental = isinstance(policy, str) or hasattr(current, "loss_scale")
        marked(current, is_experimental, loss_scale=policy)


def _class_like(installed: Class) -> Class:
    """Returns our class for the installed experimental policy, whose objects it makes."""

    def given(loss_scale: LossScaleArgument) -> Dict[str, Any]:
        # Up to TensorFlow 2.3, the default is another object, which means the same.
        is_default = isinstance(loss_scale, str) and loss_scale == "auto"
        return {} if is_default else {"loss_scale": loss_scale}

    def make(name: Optional[str], loss_scale: LossScaleArgument = "auto") -> DtypePolicy:
        return installed(name, **given(loss_scale))

    class OurPolicy(installed, metaclass=PolicyClass):
        is_experimental = True
        _makes = make
        _pickled_as = (__name__, "ExperimentalPolicy")

        def __init__(self, name: Optional[str], loss_scale: LossScaleArgument = "auto") -> None:
            super().__init__(name, **given(loss_scale))  # of a subclass

    for attribute in ("__name__", "__qualname__", "__module__", "__doc__"):
        setattr(OurPolicy, attribute, getattr(installed, attribute))
    stands_for(OurPolicy, installed)
    return OurPolicy


def _named(name: str, function: Method) -> Method:
    function.__name__ = function.__qualname__ = name
    return function


_installed_set_policy: Any = original(experimental_namespace, "set_policy")
ExperimentalPolicy: Any
set_policy: Any
if InstalledExperimentalPolicy is None:
    register_policies()
    ExperimentalPolicy = PolicyWithLossScale
    set_policy = _named("set_policy", _set_policy)
else:
    ExperimentalPolicy = _class_like(InstalledExperimentalPolicy)
    set_policy = _named("set_policy", _set_installed_policy)

# TensorFlow 1.15 has the first of them only.
experimental_global_policy: Any = original(experimental_namespace, "global_policy") or _named(
    "global_policy", _global_policy
)
get_layer_policy: Any = original(experimental_namespace, "get_layer_policy") or _named(
    "get_layer_policy", _get_layer_policy
)
