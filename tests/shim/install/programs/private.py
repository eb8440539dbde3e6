"""Prints whose the symbols of modules without a public name are, with `install()` and without."""

import importlib
import json
import sys
import warnings

import tf_lossscale
from tf_lossscale import _namespace, _paths
from tf_lossscale._install import namespaces

CONTRIB = "tensorflow.contrib.mixed_precision.python"


def whose(module_name, name, symbol):
    """`ours`, `original`, `both` where ours re-exports it, or what is missing."""
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        return str(error)
    value = getattr(module, name, None)
    if value is None:
        return "no " + name
    if value is not _namespace.load(symbol):
        return "original"
    return "ours" if value.__module__.startswith("tf_lossscale") else "both"


def everything():
    return {
        f"{module_name}.{name}": whose(module_name, name, _paths.symbol_at(path))
        for module_name, names in _paths.PRIVATE.items()
        for name, path in names.items()
    }


def not_legacy():
    """The names that are not removed ones, in modules of Keras's API that this Keras has."""
    return [
        f"{module_name}.{name}"
        for module_name, names in _paths.PRIVATE.items()
        for name, path in names.items()
        if module_name in sys.modules
        and namespaces.namespace_of(module_name) is not None
        and not _paths.symbol_at(path).legacy
    ]


def message(run):
    try:
        run()
    except (AttributeError, ImportError) as error:
        return str(error)
    return ""


def loaded():
    """The names of the modules that are loaded, also of those above them."""
    above = {name.rpartition(".")[0] for name in _paths.PRIVATE}
    return sorted(sys.modules.keys() & (above | set(_paths.PRIVATE)))


def attributes():
    """The attributes of these modules."""
    return {name: sorted(vars(sys.modules[name])) for name in loaded()}


def exported():
    """The `__all__` of these modules, which `from module import *` reads."""
    return {name: list(getattr(sys.modules[name], "__all__", [])) for name in loaded()}


def cannot_be_exported():
    """The names in an `__all__` that a module lacks, or that are the module's own."""
    return [
        f"{module_name}.{name}"
        for module_name, names in exported().items()
        for name in names
        if name in ("__dir__", "__getattr__") or not hasattr(sys.modules[module_name], name)
    ]


def main():
    warnings.simplefilter("ignore")
    states = {"before": everything(), "attributes": attributes(), "exported": exported()}
    states["not legacy"] = not_legacy()
    modules = set(sys.modules)
    tf_lossscale.install()
    states["during"] = everything()
    states["cannot be exported"] = cannot_be_exported()
    parent = "tensorflow.python.keras.mixed_precision"
    states["refused"] = [
        message(lambda: importlib.import_module(CONTRIB + ".layers")),
        message(lambda: importlib.import_module(parent + ".experimental.autocast")),
        message(lambda: sys.modules[parent + ".experimental.policy"].PolicyV1),
        message(lambda: sys.modules["keras.src.mixed_precision.policy"].no_such_name),
    ]
    tf_lossscale.uninstall()
    states["after"] = everything()
    states["attributes_after"] = attributes()
    states["exported_after"] = exported()
    states["left"] = sorted(set(_paths.PRIVATE).intersection(sys.modules) - modules)
    print(json.dumps(states))


main()
