"""Which Keras packages are installed or loaded, and which one an object comes from."""

import contextlib
import enum
import importlib
import sys
from types import ModuleType
from typing import List, NamedTuple, Optional, Tuple

from tf_lossscale._types import Class, DtypePolicy, Layer, Model, Optimizer, Session
from tf_lossscale._versions.base import has, tf
from tf_lossscale._versions.originals import original
from tf_lossscale._versions.releases import Since

_KERAS_IS_A_PACKAGE = has(Since.KERAS_IS_A_PACKAGE)

# The packages that contain a Keras of this TensorFlow.
KERAS_PACKAGES: Tuple[str, ...] = ("keras", "tf_keras") if _KERAS_IS_A_PACKAGE else ("tensorflow",)

_INSIDE_TENSORFLOW = ("tensorflow.python.keras.", "tensorflow_core.python.keras.")


def is_keras_object(value: object) -> bool:
    """Returns whether the class of `value` comes from any Keras, without importing one.

    Reading `tf.keras` would import Keras 3, or fail where Keras is not installed.
    """
    prefixes = ("keras.", "tf_keras.", *_INSIDE_TENSORFLOW)
    return any(f"{base.__module__}.".startswith(prefixes) for base in type(value).__mro__)


def keras_packages() -> List[Tuple[str, str]]:
    """Returns the name and version of `tf.keras`, and of the packages keras and tf-keras."""
    found = []
    # From TensorFlow 2.16 on, `tf.keras` raises an error if the package keras is not installed.
    with contextlib.suppress(AttributeError, ImportError):
        found.append(("tf.keras", str(tf.keras.__version__)))
    for name in ("keras", "tf-keras"):
        # Not installed; or Python 3.7 without this module, whose TensorFlow contains Keras.
        with contextlib.suppress(ImportError):
            found.append((name, importlib.import_module("importlib.metadata").version(name)))
    return found


def loaded_keras_packages() -> List[str]:
    if not _KERAS_IS_A_PACKAGE:
        return ["tensorflow"]
    return [name for name in KERAS_PACKAGES if hasattr(sys.modules.get(name), "optimizers")]


def keras_package_of(module: str) -> Optional[str]:
    """Returns the name of the Keras package that a module belongs to; None for other modules."""
    if not _KERAS_IS_A_PACKAGE:
        return "tensorflow" if module.startswith(_INSIDE_TENSORFLOW) else None
    package = module.split(".")[0]
    return package if package in KERAS_PACKAGES else None


class KerasKind(enum.Enum):
    """Which base class of Keras an optimizer has."""

    LEGACY = "legacy"
    """`OptimizerV2` of Keras 2."""
    NEW = "new"
    """The new-style optimizers of Keras 2, from TensorFlow 2.9 on."""
    KERAS_3 = "keras3"


class KerasFamily(NamedTuple):
    """A kind of Keras optimizer, in one Keras package; several can be loaded in one process."""

    kind: KerasKind
    package: str  # "tensorflow" (up to 2.5), "keras" or "tf_keras"
    base: Class  # the base class of its optimizers

    @property
    def keras(self) -> ModuleType:
        if self.package == "tf_keras" or has(Since.KERAS_PACKAGE_IS_COMPLETE):
            return sys.modules[self.package]
        return tf.keras

    @property
    def installed_final(self) -> Optional[Class]:
        """The original final class of this Keras; None before TensorFlow 2.4."""
        return original(self.keras.mixed_precision, "LossScaleOptimizer")

    @property
    def installed_class(self) -> Optional[Class]:
        """The original class for this kind of optimizer, for which Keras itself tests."""
        final = self.installed_final
        if final is None:
            return self.installed_experimental
        # From TensorFlow 2.9 on, the public class of Keras 2 is a base of two private ones.
        return getattr(sys.modules[final.__module__], self.installed_name("final"))

    def installed_name(self, role: str) -> str:
        """Returns the name of the original class in model files."""
        if role == "experimental" and self.installed_experimental is not None:
            return str(self.installed_experimental.__name__)
        return "LossScaleOptimizerV3" if self.kind is KerasKind.NEW else "LossScaleOptimizer"

    @property
    def installed_experimental(self) -> Optional[Class]:
        """The original experimental class; None after TensorFlow 2.8."""
        experimental = getattr(self.keras.mixed_precision, "experimental", None)
        if experimental is None or self.kind is not KerasKind.LEGACY:
            return None
        return original(experimental, "LossScaleOptimizer")


def keras_family(optimizer: Optimizer) -> "Optional[KerasFamily]":
    """Returns the family of an optimizer, or None if it is not a Keras optimizer.

    Only the base classes of the optimizer can decide, because Keras 2 and Keras 3 can both be
    loaded. They are recognized by name: the public aliases move between `keras.optimizers` and
    `keras.optimizers.legacy`, and reading one may import another Keras.
    """
    return _family_of_class(type(optimizer))


def _family_of_class(cls: Class) -> "Optional[KerasFamily]":
    for base in cls.__mro__:
        package = keras_package_of(base.__module__)
        if package is None:
            continue
        if base.__name__ == "OptimizerV2":
            return KerasFamily(KerasKind.LEGACY, package, base)
        if base.__name__ == "Optimizer" and hasattr(base, "apply_gradients"):
            is_3 = is_keras_3(sys.modules[package])
            return KerasFamily(KerasKind.KERAS_3 if is_3 else KerasKind.NEW, package, base)
    return None


def default_family() -> KerasFamily:
    """Returns the family of the optimizers of `tf.keras`; of tf-keras if `tf.keras` is missing."""
    for find in (lambda: tf.keras, lambda: importlib.import_module("tf_keras")):
        # From TensorFlow 2.16 on, `tf.keras` raises an error if its package is not installed.
        with contextlib.suppress(AttributeError, ImportError):
            family = _family_of_class(find().optimizers.Optimizer)
            if family is not None:
                return family
    raise ImportError(
        "There is no Keras for the loss-scale optimizer: `pip install keras`, or `pip install "
        "tf-keras` for Keras 2 on TensorFlow 2.16 and later."
    )


def is_keras_3(keras: ModuleType) -> bool:
    return hasattr(keras, "Operation")


def loaded_families() -> List[KerasFamily]:
    """Returns one family for each loaded Keras, for access to its loss-scale classes."""
    return [KerasFamily(KerasKind.LEGACY, package, None) for package in loaded_keras_packages()]


def keras_session(optimizer: Optimizer) -> Session:
    """Returns the Session in which graph-mode Keras runs, or None."""
    family = keras_family(optimizer)
    if family is None or family.kind is KerasKind.KERAS_3:
        return None
    return sys.modules[family.base.__module__].backend.get_session()


def policy_of_layer(layer: Layer) -> DtypePolicy:
    """Returns the dtype policy of a Keras layer, private in 1.15; None for other objects."""
    policy = getattr(layer, "dtype_policy", None)
    return getattr(layer, "_dtype_policy", None) if policy is None else policy


def mixed_float16_is_on() -> bool:
    """Returns whether the global policy of a Keras that is loaded computes in float16."""
    for family in loaded_families():
        namespace = family.keras.mixed_precision
        if not hasattr(namespace, "global_policy"):  # before TensorFlow 2.4
            namespace = getattr(namespace, "experimental", None)
        policy = namespace and namespace.global_policy()
        is_mixed = getattr(policy, "compute_dtype", None) == "float16"
        if is_mixed and getattr(policy, "variable_dtype", None) == "float32":
            return True
    return False


def computes_in_mixed_float16(model: Model) -> bool:
    """Returns whether a layer of a Keras model computes in float16 with weights in float32."""
    return any(
        getattr(policy_of_layer(layer), "compute_dtype", None) == "float16"
        and getattr(policy_of_layer(layer), "variable_dtype", None) == "float32"
        for layer in layers_of(model)
    )


def layers_of(model: Model) -> List[Layer]:
    """Returns a model and the layers in it."""
    if hasattr(model, "_flatten_layers"):  # all but early versions of Keras 2
        return list(model._flatten_layers())
    found = [model]
    for layer in getattr(model, "layers", ()):
        found += layers_of(layer)
    return found
