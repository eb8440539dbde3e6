"""The Kerases that are installed or loaded, and which one an object comes from."""

import contextlib
import importlib
import inspect
import sys
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

from tf_lossscale._versions.base import TF_VERSION, first_module, tf
from tf_lossscale._versions.originals import original

__all__ = [
    "KERAS_PACKAGES",
    "WRAPPERS_ARE_MARKED",
    "KerasFamily",
    "calling_keras",
    "default_family",
    "deserialize_optimizer",
    "is_keras_object",
    "keras_family",
    "keras_packages",
    "keras_session",
    "loaded_families",
    "loaded_keras",
    "loaded_keras_packages",
    "policy_of_layer",
    "register_loss_scale_optimizer",
    "registered_class",
    "registered_class_name",
    "serialize_as",
    "share_registration",
    "unregister_loss_scale_optimizer",
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


def deserialize_optimizer(keras: Any, config: Any, custom_objects: Any, legacy: bool) -> Any:
    """Makes an optimizer of a Keras from a serialized one, also one of an older generation.

    Args:
      keras: the Keras.
      config: what `optimizers.serialize` returned.
      custom_objects: name to class, or None.
      legacy: whether an `OptimizerV2` is wanted where Keras 2 has a newer kind as well.
    """
    more = {}
    if hasattr(keras, "Operation"):  # Keras 3
        # Its `optimizers.deserialize` does not know every optimizer (Lamb), this function does.
        if isinstance(config, dict) and config.get("module"):
            return keras.saving.deserialize_keras_object(config, custom_objects=custom_objects)
    elif legacy and _takes_any_keyword(keras.optimizers.deserialize):
        more["use_legacy_optimizer"] = True  # there are two kinds, from TensorFlow 2.10 on
    return keras.optimizers.deserialize(config, custom_objects=custom_objects, **more)


def registered_class(name: Any) -> Optional[Any]:
    """Returns the class that a program registered under `name` with a loaded Keras, or None."""
    for utils in _loaded_utils():
        find = getattr(utils, "get_registered_object", None)  # from TensorFlow 2.1 on
        found = utils.get_custom_objects().get(name) if find is None else find(name)
        if found is not None:
            return found
    return None


def registered_class_name(cls: Any) -> str:
    """Returns the name under which files refer to `cls`: that of its registration, or its own."""
    for utils in _loaded_utils():
        find = getattr(utils, "get_registered_name", None)
        name = cls.__name__ if find is None else find(cls)
        if name != cls.__name__:
            return str(name)
    return str(cls.__name__)


def _loaded_utils() -> List[Any]:
    return [KerasFamily("", package, None).keras.utils for package in loaded_keras_packages()]


def _takes_any_keyword(function: Any) -> bool:
    parameters = inspect.signature(function).parameters.values()
    return any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters)


def register_loss_scale_optimizer(package: str, cls: Any) -> None:
    """Lets one loaded Keras read the optimizers of model files that its own class wrote as `cls`.

    Args:
      package: "tensorflow", "keras" or "tf_keras".
      cls: our final class.
    """
    for table, name in _names_in_files(package):
        table.setdefault(name, cls)


def unregister_loss_scale_optimizer(package: str, cls: Any) -> None:
    """Undoes `register_loss_scale_optimizer`."""
    for table, name in _names_in_files(package):
        if table.get(name) is cls:
            del table[name]


def serialize_as(family: KerasFamily, cls: Any, name: str) -> None:
    """Has model files name `cls` as they name the installed class, by module and name.

    So that the installed class can read what ours wrote, in a process that knows nothing of ours.
    Files of TensorFlow 2.12 and later hold the module. Keras 2 writes that of the class, and the
    class name also as `registered_name`. Keras 3 writes what a class of its API is exported under;
    there is no public way to export a class.

    Args:
      family: that of its inner optimizers.
      cls: the class.
      name: the name of the installed class.
    """
    installed = family.installed_class
    if TF_VERSION < (2, 12) or installed is None:
        return
    if family.kind == "keras3":
        api = importlib.import_module(family.package + ".src.api_export")
        api.REGISTERED_OBJS_TO_NAMES[cls] = installed.__module__ + "." + name
    else:
        cls.__module__ = installed.__module__


def _names_in_files(package: str) -> Iterator[Tuple[Dict[str, Any], str]]:
    """Yields each name by which files name the installed class, and the table that resolves it."""
    keras = KerasFamily("", package, None).keras
    # The lower case is for `optimizers.deserialize` of Keras 2, which lowers the names it knows.
    known = keras.utils.get_custom_objects()
    for name in ("LossScaleOptimizer", "LossScaleOptimizerV1", "LossScaleOptimizerV3"):
        yield known, name
        yield known, name.lower()
    if TF_VERSION < (2, 12):
        return
    installed: Any = original(keras.mixed_precision, "LossScaleOptimizer")
    module = installed.__module__
    if hasattr(sys.modules[module.split(".")[0]], "Operation"):  # Keras 3
        symbols = importlib.import_module(module.split(".")[0] + ".src.api_export")
        known = symbols.REGISTERED_NAMES_TO_OBJS
        # `optimizers.deserialize` lowers the name of a built-in class, and since the lowered name
        # is a custom object of ours, looks it up below the path of the API.
        yield known, symbols.REGISTERED_OBJS_TO_NAMES[installed].rpartition(".")[0] + "." + (
            installed.__name__.lower()
        )
    else:
        known = first_module("tensorflow.python.util.tf_export")._NAME_TO_SYMBOL_MAPPING
    for name in ("LossScaleOptimizer", "LossScaleOptimizerV3"):
        yield known, module + "." + name
        yield known, module + "." + name.lower()


def share_registration(keras: Any, registered: Any, cls: Any) -> None:
    """Serializes `cls` under the name that another class was registered with, if it was.

    Args:
      keras: the Keras.
      registered: what `@register_keras_serializable` may have decorated.
      cls: the class that its instances may be of.
    """
    register = getattr(keras.utils, "register_keras_serializable", None)  # TensorFlow 2.0 has it
    if register is None:
        return
    full_name = keras.utils.get_registered_name(registered)
    package, separator, name = full_name.partition(">")
    if not separator:
        return
    # It takes no name twice, and files are to be read as what the user registered.
    known = keras.utils.get_custom_objects()
    kept = known.pop(full_name)
    register(package, name)(cls)
    known[full_name] = kept


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
