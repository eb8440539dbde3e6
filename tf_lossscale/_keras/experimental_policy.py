"""The experimental policy on TensorFlow 2.9 and later, whose Keras has none.

`compile` wraps optimizers with its loss scale. Files of a model contain it in two
ways: the optimizer has it, and a layer that was given such a policy.
"""

from typing import Optional

from tf_lossscale._core.loss_scales import DynamicLossScale, as_loss_scale, is_standard
from tf_lossscale._keras.arguments import loss_scale_from_config
from tf_lossscale._keras.compiling import SCALED
from tf_lossscale._keras.config import serialized_loss_scale
from tf_lossscale._keras.policy_marks import MadePolicy, PolicyClass, mark_of, set_mark
from tf_lossscale._types import (
    Config,
    CustomObjects,
    DtypePolicy,
    LossScaleArgument,
    LossScaleObject,
)
from tf_lossscale._versions.base import tf
from tf_lossscale._versions.files import serialize_like

_SCALE_OF_COMPILE = {"initial_loss_scale": 2.0**15, "increment_period": 2000, "multiplier": 2.0}


class PolicyWithLossScale(MadePolicy, metaclass=PolicyClass):
    """A dtype policy with a loss scale, which `compile` applies to the optimizer.

    Stands for `tf.keras.mixed_precision.experimental.Policy`, TensorFlow 2.8.

    Layers take the dtypes of their variables and computations from the policy, as from the final
    one. `compile` of a model with this policy wraps the optimizer in the shim's experimental
    `LossScaleOptimizer` with this loss scale. If the loss scale is None, it uses the optimizer as
    it is.

    State: none of its own. `loss_scale` is the loss scale that was passed; the default one is
    created when it is first read.

    Examples:
      >>> import tf_lossscale as tfls
      >>> policy = tfls.keras.mixed_precision.experimental.Policy("mixed_float16")
      >>> policy.compute_dtype, policy.variable_dtype, float(policy.loss_scale())
      ('float16', 'float32', 32768.0)

    Args:
      name: name of the policy, such as `"mixed_float16"`.
      loss_scale: a number, a `LossScale`, `"dynamic"`, None for no scaling; or `"auto"`, which is
        dynamic for `mixed_float16` and None for other policies.

    Raises:
      ValueError: the policy cannot be parsed, or `loss_scale` is any other value.
    """

    is_experimental = True
    _pickled_as = (__name__, "PolicyWithLossScale")

    def __init__(self, name: Optional[str], loss_scale: LossScaleArgument = "auto") -> None:
        super().__init__(name)
        if isinstance(loss_scale, dict):
            loss_scale = loss_scale_from_config(loss_scale)
        if isinstance(loss_scale, str) and loss_scale == "auto":
            loss_scale = "dynamic" if self.name == SCALED else None
        is_dynamic = isinstance(loss_scale, str) and loss_scale == "dynamic"
        self._loss_scale: Optional[LossScaleObject] = (
            None if is_dynamic else as_loss_scale(loss_scale)
        )
        self.scales = is_dynamic or self._loss_scale is not None
        if type(self) is PolicyWithLossScale and not self._scale_follows_from_name():
            self.__class__ = _PolicyWithOwnLossScale

    # Whether `compile` scales the loss under this policy. An attribute, because reading
    # `loss_scale` makes variables.
    scales: bool

    @property
    def loss_scale(self) -> Optional[LossScaleObject]:
        """The loss scale that was passed, or the default one of the policy."""
        # Created on first use, because variables cannot be created everywhere.
        if self.scales and self._loss_scale is None:
            with tf.init_scope():
                self._loss_scale = DynamicLossScale()
        return self._loss_scale

    def get_config(self) -> Config:
        """Returns the name, and the loss scale unless it follows from the name."""
        config = {"name": self.name}
        if self._scale_follows_from_name():
            return config
        return {**config, "loss_scale": self._serialized_loss_scale()}

    def _scale_follows_from_name(self) -> bool:
        """Whether `compile` of every Keras from 2.9 on scales like that."""
        if self.name != SCALED:
            return not self.scales
        scale = self._loss_scale
        if scale is None:
            return self.scales
        is_dynamic = is_standard(scale, DynamicLossScale)
        return is_dynamic and bool(scale.get_config() == _SCALE_OF_COMPILE)

    def _serialized_loss_scale(self) -> Optional[Config]:
        if not self.scales:
            return None
        loss_scale = self._loss_scale
        if loss_scale is None:
            return {"class_name": "DynamicLossScale", "config": dict(_SCALE_OF_COMPILE)}
        return serialized_loss_scale(loss_scale)

    @classmethod
    def from_config(
        cls, config: Config, custom_objects: Optional[CustomObjects] = None
    ) -> DtypePolicy:
        """Makes a policy from the result of `get_config`, also of TensorFlow 2.1 to 2.8.

        Args:
          config: maps the names of the constructor's arguments to their values.
          custom_objects: not used, but Keras passes it.
        """
        return cls(**config)


class _PolicyWithOwnLossScale(PolicyWithLossScale):
    """A policy whose loss scale does not follow from its name.

    If a layer has it, model files contain it under the name of this package. Without this package
    they cannot be read: Keras's own policy would lose the loss scale.
    """

    _pickled_as = (__name__, "_PolicyWithOwnLossScale")


class PolicyThatIsSet(PolicyWithLossScale):
    """What `set_policy` sets for an experimental policy.

    It has the loss scale of that policy, but layers with it are saved with the name of the policy
    only, so that every Keras can read the file. The optimizer in the file has the loss scale. Up to
    TensorFlow 2.8, layers that are read from a file have the policy without its loss scale, too.
    """

    _pickled_as = (__name__, "PolicyThatIsSet")

    def __init__(self, name: str, policy: PolicyWithLossScale) -> None:
        MadePolicy.__init__(self, name)
        self.was_set_for = policy
        self.scales = policy.scales
        set_mark(self, mark_of(policy))

    @property
    def loss_scale(self) -> Optional[LossScaleObject]:
        """The loss scale of the policy."""
        return self.was_set_for.loss_scale

    def get_config(self) -> Config:
        """Returns the name."""
        return {"name": self.name}


# Layers are saved with the class of their policy, and every Keras must find its own class there.
for _cls in (PolicyWithLossScale, PolicyThatIsSet):
    _cls.__name__ = _cls.__qualname__ = MadePolicy.__name__
    _cls.__module__ = MadePolicy.__module__
    serialize_like(_cls, MadePolicy)

# Keras 3 imports the module that a file names, if the program has not imported it.
_PolicyWithOwnLossScale.__name__ = _PolicyWithOwnLossScale.__qualname__ = "Policy"
_PolicyWithOwnLossScale.__module__ = "tf_lossscale.keras.mixed_precision.experimental"


def register_policies() -> None:
    """Lets Keras read layers that were saved with a loss scale."""
    register = tf.keras.utils.register_keras_serializable("tf_lossscale", "Policy")
    register(_PolicyWithOwnLossScale)
