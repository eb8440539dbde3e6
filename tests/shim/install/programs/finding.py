"""Installs, finds, star-imports and reloads a namespace that `install()` supplies; prints JSON.

`lazy` has the modules that `install()` alone loaded and `import tensorflow` does not.
"""

import importlib
import importlib.util
import json
import sys

import tensorflow  # noqa: F401 - the import is what `lazy` is measured from

before = set(sys.modules)
import tf_lossscale  # noqa: E402 - measured as well

NAME = "tensorflow.contrib.mixed_precision"

tf_lossscale.install()
lazy = ("keras.", "tf_keras.", "tensorflow_estimator.", "tensorflow.keras.", "tensorflow.contrib.")
loaded = [
    name
    for name in set(sys.modules) - before
    if name.startswith(lazy)
    # The supplied namespaces have such names; they are ours.
    and not type(sys.modules[name]).__module__.startswith("tf_lossscale")
]
found = {"lazy": sorted(loaded), "before": importlib.util.find_spec(NAME).name}
module = importlib.import_module(NAME)
found["after"] = importlib.util.find_spec(NAME).name
names: dict = {}
exec("from tensorflow.contrib.mixed_precision import *", names)
found["star"] = sorted(name for name in names if "LossScale" in name)
found["reloaded"] = importlib.reload(module).LossScaleOptimizer is names["LossScaleOptimizer"]
tf_lossscale.uninstall()
print(json.dumps(found))
