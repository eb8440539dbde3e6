"""Random packages: two to four files with legacy names, which reach each other in different ways.

A package is made of fragments by a seed, so a failure is repeated by its number.
"""

import random

EXPERIMENTAL = "tf.keras.mixed_precision.experimental"
FRAGMENTS = {
    "keras": [
        f"def wrap(opt):\n    return {EXPERIMENTAL}.LossScaleOptimizer(opt, 'dynamic')\n",
        f"def wrap(opt, scale):\n    return {EXPERIMENTAL}.LossScaleOptimizer(opt, scale)\n",
        f"def is_scaled(opt):\n    return isinstance(opt, {EXPERIMENTAL}.LossScaleOptimizer)\n",
        f"class Mine({EXPERIMENTAL}.LossScaleOptimizer):\n    pass\n",
        f"KINDS = {{'amp': {EXPERIMENTAL}.LossScaleOptimizer}}\n",
        f"def scale_of(opt: {EXPERIMENTAL}.LossScaleOptimizer):\n    return opt.loss_scale()\n",
    ],
    "policies": [
        f"{EXPERIMENTAL}.set_policy('mixed_float16')\n",
        f"policy = {EXPERIMENTAL}.Policy('mixed_float16', loss_scale=128)\n",
        f"def name():\n    return {EXPERIMENTAL}.global_policy().name\n",
        f"def scale():\n    return {EXPERIMENTAL}.global_policy().loss_scale\n",
    ],
    "v1": [
        "scale = tf.mixed_precision.experimental.DynamicLossScale()\n",
        "def is_fixed(x):\n    return isinstance(x, tf.train.experimental.FixedLossScale)\n",
        "class Scale(tf.train.experimental.LossScale):\n    pass\n",
        "made = tf.train.experimental.enable_mixed_precision_graph_rewrite("
        "tf.keras.optimizers.Adam())\n",
    ],
    "contrib": [
        "manager = tf.contrib.mixed_precision.FixedLossScaleManager(8.0)\n",
        "def wrap_v1(o, m):\n    return tf.contrib.mixed_precision.LossScaleOptimizer(o, m)\n",
    ],
    "cross-shard": [
        "def shard(opt):\n    return tf.contrib.tpu.CrossShardOptimizer(opt)\n",
        "def total(x):\n    return tf.contrib.tpu.cross_replica_sum(x)\n",
    ],
    "other": ["def fit(model):\n    model.compile('sgd')\n", "VALUE = 1\n"],
}
LOADS = [
    "import {0}\n",
    "from {0} import *\n",
    "import importlib\n\nother = importlib.import_module('{0}')\n",
    "import runpy\n\nnames = runpy.run_path('{0}.py')\n",
    "import pydoc\n\nother = pydoc.locate('{0}')\n",
    "exec(open('{0}.py').read())\n",
    "import importlib\nimport os\n\nfor file in os.listdir('.'):\n"
    "    importlib.import_module(file[:-3])\n",
]


def package(seed: int) -> dict:
    """The sources of a package by the names of their files, which no other package has."""
    chooser = random.Random(seed)
    stems = [f"p{seed}_{letter}" for letter in "abcd"[: chooser.randint(2, 4)]]
    files = {}
    for number, stem in enumerate(stems):
        parts = ["import tensorflow as tf\n"]
        if number:
            loaded = stems[chooser.randrange(number)]
            parts.append(chooser.choice(LOADS).format(loaded))
        groups = chooser.sample(sorted(FRAGMENTS), chooser.randint(1, len(FRAGMENTS)))
        parts += [chooser.choice(FRAGMENTS[group]) for group in groups]
        files[f"{stem}.py"] = "\n\n".join(parts)
    return files
