"""The Kerases that are installed or loaded, and which one an object comes from."""

import contextlib
import importlib
import sys
from typing import Any, List, NamedTuple, Optional, Tuple

from tf_lossscale._versions.base import TF_VERSION, original, tf

__all__ = [
    "KERAS_PACKAGES",
    "WRAPPERS_ARE_MARKED",
    "KerasFamily",
    "calling_keras",
    "deserialize_optimizer",
    "is_keras_object",
    "keras_family",
    "keras_packages",
    "loaded_keras",
    "loaded_keras_packages",
    "policy_of_layer",
    "register_loss_scale_optimizer",
]

# The packages that hold a Keras of this TensorFlow.
KERAS_PACKAGES: Tuple[str, ...] = ("tensorflow",) if TF_VERSION < (2, 6) else ("keras", "tf_keras")


# Keras 2 refuses to wrap one optimizer twice from TensorFlow 2.6 on; Keras 3 never does.
WRAPPERS_ARE_MARKED: bool = TF_VERSION >= (2, 6)


def is_keras_object(value: Any) -> bool:
    """Returns whether the class of `value` comes from any Keras, without importing one.

    A look at `tf.keras` would import Keras 3, or fail where Keras is not installed.
    """
    for base in type(value).__mro__:
        parts = base.__module__.split(".")
        if parts[0] in ("keras", "tf_keras") or parts[:3] == ["tensorflow", "python", "keras"]:
            return True
        if parts[:3] == ["tensorflow_core", "python", "keras"]:  # TensorFlow 1.15
            return True
    return False


def keras_packages() -> List[Tuple[str, str]]:
    """Returns name and version of `tf.keras` and of the separate packages that are installed."""
    found = []
    # TensorFlow 2.16 and later has none where the package keras is missing.
    with contextlib.suppress(AttributeError, ImportError):
        found.append(("tf.keras", str(tf.keras.__version__)))
    if sys.version_info >= (3, 8):  # below that, Keras is a part of TensorFlow
        metadata = importlib.import_module("importlib.metadata")
        for name in ("keras", "tf-keras"):
            try:
                found.append((name, metadata.version(name)))
            except metadata.PackageNotFoundError:
                continue
    return found


def loaded_keras_packages() -> List[str]:
    """Returns the packages of the Kerases that are loaded."""
    if TF_VERSION < (2, 6):
        return ["tensorflow"]
    return [name for name in KERAS_PACKAGES if hasattr(sys.modules.get(name), "optimizers")]


def _keras_package(module: str) -> Optional[str]:
    if TF_VERSION < (2, 6):
        inside = ("tensorflow.python.keras.", "tensorflow_core.python.keras.")
        return "tensorflow" if module.startswith(inside) else None
    package = module.split(".")[0]
    return package if package in ("keras", "tf_keras") else None


class KerasFamily(NamedTuple):
    """A kind of Keras optimizer.

    Attributes:
      kind: "legacy" (Keras 2 `OptimizerV2`), "new" (Keras 2 from TensorFlow 2.9 on) or "keras3".
      package: "tensorflow" (up to 2.5), "keras" or "tf_keras".
      base: the base class of its optimizers.
    """

    kind: str
    package: str
    base: Any

    @property
    def keras(self) -> Any:
        """The public Keras module."""
        # Up to 2.15 the `keras` package leaves out a part of the API that `tf.keras` has.
        in_tensorflow = self.package == "tensorflow" or TF_VERSION < (2, 16)
        return (
            tf.keras if in_tensorflow and self.package != "tf_keras" else sys.modules[self.package]
        )

    @property
    def installed_final(self) -> Optional[Any]:
        """The installed final class, which also `compile` knows; None before TensorFlow 2.4."""
        return original(self.keras.mixed_precision, "LossScaleOptimizer")

    @property
    def installed_experimental(self) -> Optional[Any]:
        """The installed experimental class; None after TensorFlow 2.8."""
        experimental = getattr(self.keras.mixed_precision, "experimental", None)
        return original(experimental, "LossScaleOptimizer") if self.kind == "legacy" else None


def keras_family(optimizer: Any) -> "Optional[KerasFamily]":
    """Returns what is known of the Keras that the class of `optimizer` comes from.

    Told by the class alone, as Keras 2 and Keras 3 may be loaded side by side; None where it is no
    Keras optimizer. The private names are those of the base classes; the public ones move between
    `keras.optimizers` and `keras.optimizers.legacy`, and importing one would load a Keras.
    """
    for base in type(optimizer).__mro__:
        package = _keras_package(base.__module__)
        if package is None:
            continue
        if base.__name__ == "OptimizerV2":
            return KerasFamily("legacy", package, base)
        if base.__name__ == "Optimizer" and hasattr(base, "apply_gradients"):
            is_3 = getattr(sys.modules[package], "__version__", "2").startswith("3")
            return KerasFamily("keras3" if is_3 else "new", package, base)
    return None


def calling_keras() -> Optional[Any]:
    """Returns the Keras that called, somewhere up the stack, or None.

    What a model file says of an optimizer does not tell which Keras is reading it.
    """
    frame: Any = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        package = _keras_package(module)
        if package is not None:
            return KerasFamily("", package, None).keras
        frame = frame.f_back
    return None


def loaded_keras(is_3: bool) -> Optional[Any]:
    """Returns the loaded Keras 3, or the loaded Keras 2; None where there is none."""
    for package in loaded_keras_packages():
        keras = KerasFamily("", package, None).keras
        if hasattr(keras, "Operation") == is_3:  # only Keras 3 has it
            return keras
    return None


def deserialize_optimizer(keras: Any, config: Any, custom_objects: Any, legacy: bool) -> Any:
    """Makes an optimizer of a Keras from a serialized one, also one of an older generation.

    Args:
      keras: the Keras.
      config: what `optimizers.serialize` returned.
      custom_objects: name to class, or None.
      legacy: whether an `OptimizerV2` is wanted where Keras 2 has a newer kind as well.
    """
    more = {}
    if legacy and hasattr(keras.optimizers, "legacy") and not hasattr(keras, "Operation"):
        more["use_legacy_optimizer"] = True
    return keras.optimizers.deserialize(config, custom_objects=custom_objects, **more)


def register_loss_scale_optimizer(package: str, cls: Any) -> None:
    """Lets one loaded Keras read the optimizers of model files that its own class wrote as `cls`.

    Args:
      package: "tensorflow", "keras" or "tf_keras".
      cls: our final class.
    """
    # The lower case is for `optimizers.deserialize` of Keras 2, which lowers the names it knows.
    names = ("LossScaleOptimizer", "LossScaleOptimizerV1", "LossScaleOptimizerV3")
    known = KerasFamily("", package, None).keras.utils.get_custom_objects()
    for name in names:
        known.setdefault(name, cls)
        known.setdefault(name.lower(), cls)


def policy_of_layer(layer: Any) -> Any:
    """Returns the dtype policy of a Keras layer, None for what is no layer.

    It has no public name in TensorFlow 1.15, which has no `get_layer_policy` either.
    """
    policy = getattr(layer, "dtype_policy", None)
    return getattr(layer, "_dtype_policy", None) if policy is None else policy
