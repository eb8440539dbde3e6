"""Object checkpoints, and the model files of each Keras, which name optimizers by registration."""

import importlib
import inspect
import sys
from types import ModuleType
from typing import Any, Dict, Iterator, Optional, Tuple

from tf_lossscale._types import Class, Config, CustomObjects, Optimizer
from tf_lossscale._versions.base import first_module, has
from tf_lossscale._versions.keras import KerasFamily, KerasKind, is_keras_3, loaded_families
from tf_lossscale._versions.originals import original
from tf_lossscale._versions.releases import Since

_trackable: Any = first_module(
    "tensorflow.python.trackable.base", "tensorflow.python.training.tracking.base"
)

# The base class of all objects that `tf.train.Checkpoint` saves. The public `tf.Module` would track
# every attribute under its own name, so that files would not have the keys of the originals.
Trackable: Any = _trackable.Trackable

# The (name, object) pair that `Trackable._checkpoint_dependencies` lists.
TrackableReference: Any = _trackable.TrackableReference

# The protocol buffer in which an object checkpoint stores its objects, their names for each other,
# and the keys of their tensors.
TrackableObjectGraph: Any = importlib.import_module(
    "tensorflow.core.protobuf.trackable_object_graph_pb2"
).TrackableObjectGraph


def deserialize_optimizer(
    keras: ModuleType, config: Config, custom_objects: Optional[CustomObjects], legacy: bool
) -> Optimizer:
    """Creates an optimizer of `keras` from its serialized form, which an older Keras may have made.

    `legacy` is whether to create an `OptimizerV2` if this Keras 2 also has a newer kind.
    """
    options = {}
    if is_keras_3(keras):
        # Its `optimizers.deserialize` does not know every optimizer (Lamb), this function does.
        if isinstance(config, dict) and config.get("module"):
            return keras.saving.deserialize_keras_object(config, custom_objects=custom_objects)
    elif legacy and "kwargs" in inspect.signature(keras.optimizers.deserialize).parameters:
        options["use_legacy_optimizer"] = True  # from TensorFlow 2.10 on there are two kinds
    return keras.optimizers.deserialize(config, custom_objects=custom_objects, **options)


def registered_class(name: Any) -> Optional[Class]:
    """Returns the class that a program registered under `name` with a loaded Keras, or None."""
    for family in loaded_families():
        utils = family.keras.utils
        find = getattr(utils, "get_registered_object", None)  # from TensorFlow 2.1 on
        found = utils.get_custom_objects().get(name) if find is None else find(name)
        if found is not None:
            return found
    return None


def registered_class_name(cls: Class) -> str:
    """Returns the name that files have for `cls`: its registered name, or its own."""
    for family in loaded_families():
        find = getattr(family.keras.utils, "get_registered_name", None)
        name = cls.__name__ if find is None else find(cls)
        if name != cls.__name__:
            return str(name)
    return str(cls.__name__)


def register_loss_scale_optimizer(package: str, cls: Class) -> None:
    """Lets one loaded Keras read optimizers that its own class wrote as objects of `cls`."""
    for table, name in _names_in_files(package):
        table.setdefault(name, cls)


def unregister_loss_scale_optimizer(package: str, cls: Class) -> None:
    for table, name in _names_in_files(package):
        if table.get(name) is cls:
            del table[name]


def serialize_as(family: KerasFamily, cls: Class, name: str) -> None:
    """Makes model files name `cls` like the original class, by module and name.

    Then the original class can read our class's files in a process without this package. Files of
    TensorFlow 2.12 and later contain the module. Keras 2 writes `__module__` of the class, and its
    name also as `registered_name`. Keras 3 writes the path under which its API exports a class,
    which no public function can set.
    """
    installed = family.installed_class
    if not has(Since.FILES_NAME_MODULES) or installed is None:
        return
    if family.kind is KerasKind.KERAS_3:
        api = importlib.import_module(family.package + ".src.api_export")
        api.REGISTERED_OBJS_TO_NAMES[cls] = installed.__module__ + "." + name
    else:
        cls.__module__ = installed.__module__


def serialize_like(cls: Class, installed: Class) -> None:
    """Makes model files name `cls` like another class of Keras, by its public path.

    Keras 2 has the path in the class, from TensorFlow 2.12 on. Keras 3 has it in a table.
    """
    for attribute, paths in vars(installed).items():
        if attribute.startswith("_keras_api_names"):
            setattr(cls, attribute, paths)
    package = installed.__module__.split(".")[0]
    if package == "keras" and is_keras_3(sys.modules[package]):
        names = importlib.import_module(package + ".src.api_export").REGISTERED_OBJS_TO_NAMES
        names[cls] = names[installed]


def _names_in_files(package: str) -> Iterator[Tuple[Dict[str, Any], str]]:
    """Yields each name of the original class in files, with the table that resolves it."""
    keras = KerasFamily(KerasKind.LEGACY, package, None).keras
    # `optimizers.deserialize` of Keras 2 looks up names in lower case.
    known = keras.utils.get_custom_objects()
    for name in ("LossScaleOptimizer", "LossScaleOptimizerV1", "LossScaleOptimizerV3"):
        yield known, name
        yield known, name.lower()
    if not has(Since.FILES_NAME_MODULES):
        return
    installed: Class = original(keras.mixed_precision, "LossScaleOptimizer")
    module = installed.__module__
    if is_keras_3(sys.modules[module.split(".")[0]]):
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


def share_registration(keras: ModuleType, registered: Class, cls: Class) -> None:
    """Makes `cls` serialize under the registered name of a user's class, if it has one.

    The instances of the user's class are really of the class `cls`.
    """
    register = getattr(keras.utils, "register_keras_serializable", None)  # TensorFlow 2.0 has it
    if register is None:
        return
    full_name = keras.utils.get_registered_name(registered)
    package, separator, name = full_name.partition(">")
    if not separator:
        return
    # Keras refuses to register a name twice, and files must be read as the user's class.
    known = keras.utils.get_custom_objects()
    kept = known.pop(full_name)
    register(package, name)(cls)
    known[full_name] = kept
