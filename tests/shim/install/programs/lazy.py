"""Prints which modules `install()` loaded that `import tensorflow` alone does not."""

import json
import sys

import tensorflow  # noqa: F401  the import is what is measured

before = set(sys.modules)
import tf_lossscale  # noqa: E402  measured as well

tf_lossscale.install()
lazy = ("keras.", "tf_keras.", "tensorflow_estimator.", "tensorflow.keras.", "tensorflow.contrib.")
loaded = [
    name
    for name in set(sys.modules) - before
    if name.startswith(lazy)
    # The supplied namespaces have such names; they are ours.
    and not type(sys.modules[name]).__module__.startswith("tf_lossscale")
]
print(json.dumps(sorted(loaded)))
