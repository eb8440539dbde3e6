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


def attributes():
    """The attributes of the modules that are loaded, also of those above them."""
    above = {name.rpartition(".")[0] for name in _paths.PRIVATE}
    loaded = sorted(sys.modules.keys() & (above | set(_paths.PRIVATE)))
    return {name: sorted(vars(sys.modules[name])) for name in loaded}


def main():
    warnings.simplefilter("ignore")
    states = {"before": everything(), "attributes": attributes()}
    states["not legacy"] = not_legacy()
    modules = set(sys.modules)
    tf_lossscale.install()
    states["during"] = everything()
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
    states["left"] = sorted(set(_paths.PRIVATE).intersection(sys.modules) - modules)
    print(json.dumps(states))


main()
