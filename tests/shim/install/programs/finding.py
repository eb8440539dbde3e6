"""Finds, star-imports and reloads a namespace that `install()` supplies; prints JSON."""

import importlib
import importlib.util
import json

import tf_lossscale

NAME = "tensorflow.contrib.mixed_precision"

tf_lossscale.install()
found = {"before": importlib.util.find_spec(NAME).name}
module = importlib.import_module(NAME)
found["after"] = importlib.util.find_spec(NAME).name
names: dict = {}
exec("from tensorflow.contrib.mixed_precision import *", names)
found["star"] = sorted(name for name in names if "LossScale" in name)
found["reloaded"] = importlib.reload(module).LossScaleOptimizer is names["LossScaleOptimizer"]
tf_lossscale.uninstall()
print(json.dumps(found))
