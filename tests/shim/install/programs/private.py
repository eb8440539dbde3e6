"""Prints whose the symbols of modules without a public name are, with `install()` and without."""

import importlib
import json
import sys
import warnings

import tf_lossscale
from tf_lossscale import _namespace, _paths

CONTRIB = "tensorflow.contrib.mixed_precision.python"
# What programs import from there, of what each shows.
NAMES = {
    "loss_scale_manager": "FixedLossScaleManager",
    "loss_scale_optimizer": "LossScaleOptimizer",
    "tpu_ops": "cross_replica_sum",
    "tpu_optimizer": "CrossShardOptimizer",
    "experimental": "LossScaleOptimizer",
    "get_layer_policy": "get_layer_policy",
    "policy": "Policy",
}


def found(module_name):
    """`ours`, `original`, `both` where ours re-exports it, or the message of the error."""
    name = NAMES[module_name.rpartition(".")[2]]
    try:
        value = getattr(importlib.import_module(module_name), name, None)
    except ImportError as error:
        return str(error)
    symbol = _paths.NAMESPACES[_paths.PRIVATE[module_name.partition(".")[2]]][name]
    if value is None:
        return "no " + name  # an original package that only holds modules
    if value is not _namespace.load(symbol):
        return "original"
    return "ours" if value.__module__.startswith("tf_lossscale") else "both"


def everything():
    return {name: found("tensorflow." + name) for name in _paths.PRIVATE}


def message(run):
    try:
        run()
    except (AttributeError, ImportError) as error:
        return str(error)
    return ""


def names_of(module_name):
    return sorted(vars(importlib.import_module(module_name)))


def main():
    warnings.simplefilter("ignore")
    parent = "tensorflow.python.keras.mixed_precision"
    importlib.import_module(parent)
    states = {"before": everything(), "names": names_of(parent)}
    modules = set(sys.modules)
    tf_lossscale.install()
    states["during"] = everything()
    states["refused"] = [
        message(lambda: importlib.import_module(CONTRIB + ".layers")),
        message(lambda: importlib.import_module(parent + ".experimental.autocast")),
        message(lambda: sys.modules[parent + ".experimental.policy"].PolicyV1),
    ]
    tf_lossscale.uninstall()
    states["after"] = everything()
    states["names_after"] = names_of(parent)
    private = {"tensorflow." + name for name in _paths.PRIVATE}
    states["left"] = sorted(private.intersection(sys.modules) - modules)
    print(json.dumps(states))


main()
