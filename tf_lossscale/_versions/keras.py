"""Which Keras packages are installed or loaded, and which one an object comes from."""

import contextlib
import importlib
import sys
from typing import Any, List, NamedTuple, Optional, Tuple

from tf_lossscale._versions.base import TF_VERSION, tf
from tf_lossscale._versions.originals import original

__all__ = [
    "KERAS_PACKAGES",
    "WRAPPERS_ARE_MARKED",
    "KerasFamily",
    "calling_keras",
    "default_family",
    "is_keras_object",
    "keras_family",
    "keras_packages",
    "keras_session",
    "loaded_families",
    "loaded_keras",
    "loaded_keras_packages",
    "policy_of_layer",
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
    def installed_class(self) -> Optional[Any]:
        """The installed class over this kind of optimizer, which Keras itself looks for."""
        final = self.installed_final
        if final is None:
            return self.installed_experimental
        # From TensorFlow 2.9 on the public name of Keras 2 is a common base of two private classes.
        private = "LossScaleOptimizerV3" if self.kind == "new" else "LossScaleOptimizer"
        return getattr(sys.modules[final.__module__], private)

    def installed_name(self, role: str) -> str:
        """Returns the name of the installed class in model files.

        Args:
          role: "final" or "experimental".
        """
        experimental = self.installed_experimental if role == "experimental" else None
        if experimental is not None:
            return str(experimental.__name__)
        return "LossScaleOptimizerV3" if self.kind == "new" else "LossScaleOptimizer"

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
    return _family_of_class(type(optimizer))


def _family_of_class(cls: Any) -> "Optional[KerasFamily]":
    for base in cls.__mro__:
        package = _keras_package(base.__module__)
        if package is None:
            continue
        if base.__name__ == "OptimizerV2":
            return KerasFamily("legacy", package, base)
        if base.__name__ == "Optimizer" and hasattr(base, "apply_gradients"):
            is_3 = getattr(sys.modules[package], "__version__", "2").startswith("3")
            return KerasFamily("keras3" if is_3 else "new", package, base)
    return None


def default_family() -> KerasFamily:
    """Returns what is known of the optimizers of `tf.keras`, or of the Keras that there is."""
    kerases = [lambda: tf.keras, lambda: importlib.import_module("tf_keras")]
    for find in kerases:
        # TensorFlow 2.16 and later has no `tf.keras` where the package that it wants is missing.
        with contextlib.suppress(AttributeError, ImportError):
            family = _family_of_class(find().optimizers.Optimizer)
            if family is not None:
                return family
    raise ImportError(
        "There is no Keras for the loss-scale optimizer: `pip install keras`, or `pip install "
        "tf-keras` for Keras 2 on TensorFlow 2.16 and later."
    )


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


def loaded_families() -> List[KerasFamily]:
    """Returns a family of each loaded Keras, which names its loss-scale classes."""
    return [KerasFamily("legacy", package, None) for package in loaded_keras_packages()]


def keras_session(optimizer: Any) -> Any:
    """Returns the Session in which graph-mode Keras runs, or None.

    Args:
      optimizer: a Keras optimizer, or another object.
    """
    family = keras_family(optimizer)
    if family is None or family.kind == "keras3":
        return None
    backend = getattr(sys.modules[family.base.__module__], "backend", None)
    return None if backend is None else backend.get_session()


def policy_of_layer(layer: Any) -> Any:
    """Returns the dtype policy of a Keras layer, None for what is no layer.

    It has no public name in TensorFlow 1.15, which has no `get_layer_policy` either.
    """
    policy = getattr(layer, "dtype_policy", None)
    return getattr(layer, "_dtype_policy", None) if policy is None else policy
