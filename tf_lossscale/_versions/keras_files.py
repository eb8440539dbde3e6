"""The names by which each Keras writes optimizers to model files and reads them."""

import importlib
import inspect
import sys
from typing import Any, Dict, Iterator, List, Optional, Tuple

from tf_lossscale._versions.base import first_module, has
from tf_lossscale._versions.keras import KerasFamily, loaded_keras_packages
from tf_lossscale._versions.originals import original
from tf_lossscale._versions.releases import Since

__all__ = [
    "deserialize_optimizer",
    "register_loss_scale_optimizer",
    "registered_class",
    "registered_class_name",
    "serialize_as",
    "share_registration",
    "unregister_loss_scale_optimizer",
]


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
    if not has(Since.FILES_NAME_MODULES) or installed is None:
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
    if not has(Since.FILES_NAME_MODULES):
        return
    installed: Any = original(keras.mixed_precision, "LossScaleOptimizer")
    module = installed.__module__
    if hasattr(sys.modules[module.split(".")[0]], "Operation"):  # Keras 3
        symbols = importlib.import_module(module.split(".")[0] + ".src.api_export")
        known = symbols.REGISTERED_NAMES_TO_OBJS
        # `optimizers.deserialize` lowers the name of a built-in class. Keras finds the lowered name
        # in the custom objects, and then looks for it in the module where the API has the class.
        api_module = symbols.REGISTERED_OBJS_TO_NAMES[installed].rpartition(".")[0]
        yield known, api_module + ".lossscaleoptimizer"
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
