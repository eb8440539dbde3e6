"""Programs with a place that `migrate` leaves to a person, and what the message there says to do.

`tests/codemods/rules/test_followed_messages.py` migrates each of them, does literally what the
message says, and runs the result. `test_followed.py` runs the originals where TensorFlow has their
symbols, so the expected results are TensorFlow's own.
"""

import json
import os
import re
from typing import Any, Dict, List, Mapping, NamedTuple, Tuple

import processes

__all__ = ["FOLLOWED", "Followed", "done", "executed"]

ALL = ("shim", "2", "3")
TF = "import json\nimport tensorflow as tf\n"
MP = "tf.keras.mixed_precision"
EXPERIMENTAL = "tensorflow.keras.mixed_precision.experimental"
OLD = f"{MP}.experimental.LossScaleOptimizer"
TFLS = "tf_lossscale.keras.mixed_precision"
IMPORT = "import tf_lossscale as tfls\n"
LOOP = """
v = tf.Variable(1.0)


def train(opt):
    for factor in (1.0, float("inf"), 1.0):
        with tf.GradientTape() as tape:
            loss = opt.get_scaled_loss(v * v * factor)
        grads = opt.get_unscaled_gradients(tape.gradient(loss, [v]))
        opt.apply_gradients(zip(grads, [v]))
    return {"v": float(v), "scale": float(opt.loss_scale)}
"""
"""The scale is halved once, and the step with an infinite gradient is skipped."""
SGD = "tf.keras.optimizers.SGD(0.25)"
DATA = os.path.join(os.path.dirname(__file__), "..", "..", "data", "fixtures", "half_trained")
RESUMED = f"""
import json
import os
import tarfile
import tempfile

import half_trained
import numpy as np
import tensorflow as tf

run = tempfile.mkdtemp()
with tarfile.open({os.path.join(os.path.abspath(DATA), "2.4-legacy.tar.gz")!r}) as archive:
    archive.extractall(run)
with open(os.path.join(run, "expected.json")) as file:
    expected = json.load(file)["cases"]


def report(name, net):
    difference = np.subtract(half_trained.outputs(net), expected[name]["outputs"])
    print(json.dumps({{"restored": bool(np.abs(difference).max() < 1e-5)}}))


"""
"""The beginning of a program that goes on with a run of TensorFlow 2.4."""
TRAIN = "\nprint(json.dumps(train(opt)))\n"
HALVED = {"v": 0.25, "scale": 16384.0}


class Followed(NamedTuple):
    """A program, and what to do about the finding in it.

    Attributes:
      code: the code of the finding.
      message: a part of its message: what to do.
      files: the sources by their paths.
      edits: what is done: a file, what stands there after the run of `migrate`, and what replaces
        it. `{old}` and the other words of `NAMES` stand for what the run has made of a name.
      expected: what the program prints, with TensorFlow's own classes and in the end.
      targets: the targets for which there is the finding.
      original: the TensorFlow versions that run the original; empty if none does as it stands.
      left: codes of findings that stay, because they cannot see what was done elsewhere.
      patches: whether the program replaces a part of TensorFlow, for all that its process runs.
    """

    code: str
    message: str
    files: Dict[str, str]
    edits: Tuple[Tuple[str, str, str], ...]
    expected: Dict[str, Any]
    targets: Tuple[str, ...] = ALL
    original: Tuple[str, ...] = ("2.4",)
    left: Tuple[str, ...] = ()
    patches: bool = False


NAMES = {
    "{old}": r"(?P<old>[\w.]+\.LossScaleOptimizer)",
    "{policy}": r"(?P<policy>[\w.]+\.Policy)",
    "{setter}": r"(?P<setter>[\w.]+\.set_\w*policy)",
    "{rest}": r"(?P<rest>.*\n.*)",
    "{module}": r"(?P<module>[\w.]+\.experimental)",
}
"""Names that depend on the target, and how they are found where they first stand."""
FINAL = "tfls.keras.mixed_precision.LossScaleOptimizer"


def done(text: str, before: str, after: str) -> str:
    """A text with an edit of `Followed`."""
    pattern = re.escape(before).replace(re.escape("{"), "{").replace(re.escape("}"), "}")
    for name, expression in NAMES.items():
        pattern = pattern.replace(name, expression, 1)
        pattern = pattern.replace(name, f"(?P={name[1:-1]})")
    assert re.search(pattern, text), (before, text)
    after = after.replace("{final}", FINAL)

    def edited(match: Any) -> str:
        words = match.groupdict()
        return re.sub(r"\{(\w+)\}", lambda name: words.get(name[1], name[0]), after)

    return re.sub(pattern, edited, text)


def executed(programs: Mapping[str, Dict[str, str]], folder: str) -> Dict[str, Any]:
    """What programs print, by their cases: all from one process, but for those that patch."""
    apart = [case for case in programs if FOLLOWED[case].patches]
    together = [case for case in programs if case not in apart]
    found: Dict[str, Any] = {}
    for cases in [together, *([case] for case in apart)]:
        found.update(zip(cases, _executed([programs[case] for case in cases], folder)))
    return found


def _executed(programs: List[Dict[str, str]], folder: str) -> List[Any]:
    """What programs print in one process, each in a new folder of its own."""
    start = len(os.listdir(folder))
    folders = [os.path.join(folder, str(start + index)) for index in range(len(programs))]
    for made in folders:
        os.mkdir(made)
    listed = os.path.join(folder, f"{start}.json")
    with open(listed, "w", encoding="utf-8") as file:
        json.dump(list(zip(programs, folders)), file)
    results: List[Any] = processes.run_program("programs/execute_files.py", listed)
    return results


def _one(code: str, message: str, source: str, before: str, after: str, **more: Any) -> Followed:
    """A program of one file, in which one text is replaced."""
    expected = more.pop("expected", HALVED)
    edits = (("main.py", before, after),)
    return Followed(code, message, {"main.py": source}, edits, expected, **more)


FOLLOWED = {
    "names of a star import": _one(
        "LS901",
        "import them by name, TensorFlow's from TensorFlow itself, then migrate again",
        f"{TF}from {EXPERIMENTAL} import *\n{LOOP}\nopt = LossScaleOptimizer({SGD}, 'dynamic')"
        + TRAIN,
        "import *",
        "import LossScaleOptimizer",
    ),
    "a module from a call": _one(
        "LS902",
        "import `LossScaleOptimizer` by name from TensorFlow",
        f"import importlib\n{TF}\n\ndef keras():\n    return importlib.import_module('keras'[:0] + "
        f"'tensorflow.keras')\n\n{LOOP}\n"
        f"opt = keras().mixed_precision.experimental.LossScaleOptimizer({SGD}, 'dynamic')" + TRAIN,
        "opt = keras().mixed_precision.experimental.",
        f"from {EXPERIMENTAL} import LossScaleOptimizer\nopt = ",
    ),
    "a module by its name": _one(
        "LS902",
        "or import the name with a statement",
        f"{TF}{LOOP}\nmp = getattr({MP}, 'experimental')\n"
        f"opt = mp.LossScaleOptimizer({SGD}, 'dynamic')" + TRAIN,
        f"mp = getattr({MP}, 'experimental')",
        "from tensorflow.keras.mixed_precision import experimental as mp",
    ),
    "a module by its name, if there is one": _one(
        "LS902",
        f"write {TFLS}.experimental in place of this expression",
        f"{TF}{LOOP}\nmp = getattr({MP}, 'experimental', None)\nif mp is None:\n"
        f"    opt = {MP}.LossScaleOptimizer({SGD})\nelse:\n"
        f"    opt = mp.LossScaleOptimizer({SGD}, 'dynamic')" + TRAIN,
        f"mp = getattr({MP}, 'experimental', None)",
        f"import tf_lossscale\nmp = {TFLS}.experimental",
    ),
    "a module that a name leads to": _one(
        "LS902",
        f"write {TFLS}.experimental where it is read",
        f"{TF}{LOOP}\nmp = getattr(tf.keras, 'mixed_precision', None)\n"
        f"opt = mp.experimental.LossScaleOptimizer({SGD}, 'dynamic')" + TRAIN,
        "opt = mp.experimental.",
        f"import tf_lossscale\nopt = {TFLS}.experimental.",
    ),
    "a name of the shim that a string leads to": _one(
        "LS902",
        f"import it with `from {TFLS}.experimental import LossScaleOptimizer`, then migrate again",
        f"import importlib\n{TF}{LOOP}\nmp = importlib.import_module('{TFLS}.experimental')\n"
        f"opt = mp.LossScaleOptimizer({SGD}, 'dynamic')" + TRAIN,
        f"mp = importlib.import_module('{TFLS}.experimental')\nopt = mp.",
        f"from {TFLS}.experimental import LossScaleOptimizer\nopt = ",
        targets=("2", "3"),
        original=(),
    ),
    "attributes of TensorFlow in a string": _one(
        "LS912",
        f"import {TFLS}.experimental.LossScaleOptimizer with a statement, and use it",
        f"{TF}{LOOP}\nimport operator\n"
        "get = operator.attrgetter('keras.mixed_precision.experimental.LossScaleOptimizer')\n"
        f"opt = get(tf)({SGD}, 'dynamic')" + TRAIN,
        "get = operator.attrgetter('keras.mixed_precision.experimental.LossScaleOptimizer')\n"
        "opt = get(tf)",
        f"from {TFLS}.experimental import LossScaleOptimizer\nopt = LossScaleOptimizer",
    ),
    "an attribute that a test replaces": _one(
        "LS902",
        f"write {TFLS} for the object that has this name",
        f"{TF}from unittest import mock\n\n\nclass Fake:\n    Policy = 8\n\n\n"
        f"with mock.patch.object({MP}, 'experimental', Fake):\n"
        f"    print(json.dumps({{'scale': {MP}.experimental.Policy}}))\n",
        f"with mock.patch.object({MP}, ",
        f"import tf_lossscale\n\nwith mock.patch.object({TFLS}, ",
        expected={"scale": 8},
        patches=True,
    ),
    "a name of a silenced module": Followed(
        "LS903",
        "if it is TensorFlow's, import it from TensorFlow here, then migrate again",
        {
            "compat.py": f"from {EXPERIMENTAL} import LossScaleOptimizer  # lossscale: ignore\n",
            "main.py": f"{TF}from compat import LossScaleOptimizer\n{LOOP}\n"
            f"opt = LossScaleOptimizer({SGD}, 'dynamic')" + TRAIN,
        },
        (("main.py", "from compat", f"from {EXPERIMENTAL}"),),
        HALVED,
    ),
    "a type that is compared in another file": Followed(
        "LS903",
        "use isinstance",
        {
            "compat.py": f"from {EXPERIMENTAL} import LossScaleOptimizer\n",
            "main.py": f"{TF}from compat import LossScaleOptimizer\n\n"
            f"opt = LossScaleOptimizer({SGD}, 8)\n"
            "print(json.dumps({'scaled': type(opt) is LossScaleOptimizer}))\n",
        },
        (("main.py", "type(opt) is LossScaleOptimizer", "isinstance(opt, LossScaleOptimizer)"),),
        {"scaled": True},
    ),
    "a type that is compared": _one(
        "LS301",
        "use isinstance",
        f"{TF}from {EXPERIMENTAL} import LossScaleOptimizer\n"
        f"opt = LossScaleOptimizer({SGD}, 8)\n"
        "print(json.dumps({'scaled': type(opt) is LossScaleOptimizer}))\n",
        "type(opt) is LossScaleOptimizer",
        "isinstance(opt, LossScaleOptimizer)",
        expected={"scaled": True},
    ),
    "a table of types": _one(
        "LS301",
        "use isinstance",
        f"{TF}from {EXPERIMENTAL} import LossScaleOptimizer\n"
        "WORDS = {LossScaleOptimizer: 'amp'}\n"
        f"opt = LossScaleOptimizer({SGD}, 8)\n"
        "print(json.dumps({'word': WORDS.get(type(opt), 'plain')}))\n",
        "WORDS.get(type(opt), 'plain')",
        "next((w for c, w in WORDS.items() if isinstance(opt, c)), 'plain')",
        expected={"word": "amp"},
        left=("LS301", "LS401"),
    ),
    "a method that is replaced in the class": _one(
        "LS301",
        "write a subclass, and wrap the optimizer in it",
        f"{TF}{LOOP}\nseen = []\nscaled = {OLD}.get_scaled_loss\n\n\n"
        "def logged(self, loss):\n    seen.append(float(loss))\n    return scaled(self, loss)\n\n\n"
        f"{OLD}.get_scaled_loss = logged\nopt = {OLD}({SGD}, 8)\ntrain(opt)\n"
        "print(json.dumps({'seen': len(seen)}))\n",
        "{old}.get_scaled_loss = logged\nopt = {old}(",
        "class Logged({old}):\n    get_scaled_loss = logged\n\n\nopt = Logged(",
        expected={"seen": 3},
        left=("LS405",),
        patches=True,
    ),
    "a member of the loss scale": _one(
        "LS302",
        "write opt._loss_scale.increment_period, which",
        f"{TF}scale = tf.mixed_precision.experimental.DynamicLossScale(16.0, 5)\n"
        f"opt = {OLD}({SGD}, scale)\n"
        "first = int(opt.loss_scale.increment_period)\n"
        "others = [opt.loss_scale.initial_loss_scale, opt.loss_scale.multiplier]\n"
        "others += [opt.loss_scale._current_loss_scale, opt.loss_scale._num_good_steps]\n"
        "others += [opt.loss_scale.get_config()['increment_period']]\n"
        "print(json.dumps({'period': first, 'others': [float(other) for other in others]}))\n",
        "opt.loss_scale.",
        "opt._loss_scale.",
        expected={"period": 5, "others": [16.0, 2.0, 16.0, 0.0, 5.0]},
        original=("2.3",),
    ),
    "a loss scale of the final class": _one(
        "LS304",
        "write LossScaleOptimizer(optimizer, dynamic=..., initial_scale=...)",
        f"{TF}{LOOP}\nopt = {MP}.LossScaleOptimizer({SGD}, loss_scale='dynamic')" + TRAIN,
        "loss_scale='dynamic'",
        "dynamic=True, initial_scale=2.0**15",
        targets=("shim",),
        original=(),
    ),
    "the dictionary of an optimizer": _one(
        "LS305",
        "read the attributes of the optimizer itself",
        f"{TF}opt = {OLD}({SGD}, 8)\n"
        "print(json.dumps({'rate': float(opt.__dict__['_optimizer'].learning_rate)}))\n",
        "opt.__dict__['_optimizer']",
        "opt._optimizer",
        expected={"rate": 0.25},
        original=("2.3",),
    ),
    "a test for a method": Followed(
        "LS404",
        "use tf_lossscale's class, and test with isinstance",
        {
            "main.py": f"{TF}import step\n\nv = tf.Variable(1.0)\nopt = {SGD}\n"
            "step.step(opt, v)\nprint(json.dumps({'v': float(v)}))\n",
            "step.py": "import tensorflow as tf\n\n\ndef step(opt, v):\n"
            "    with tf.GradientTape() as tape:\n        loss = v * v\n"
            "        if hasattr(opt, 'get_scaled_loss'):\n"
            "            loss = opt.get_scaled_loss(loss)\n"
            "    grads = tape.gradient(loss, [v])\n"
            "    if hasattr(opt, 'get_scaled_loss'):\n"
            "        grads = opt.get_unscaled_gradients(grads)\n"
            "    opt.apply_gradients(zip(grads, [v]))\n",
        },
        (
            ("main.py", f"opt = {SGD}", f"import tf_lossscale as tfls\nopt = {{final}}({SGD})"),
            ("step.py", "import tensorflow as tf\n", f"import tensorflow as tf\n{IMPORT}"),
            ("step.py", "hasattr(opt, 'get_scaled_loss')", "isinstance(opt, {final})"),
        ),
        {"v": 0.5},
        targets=("shim", "3"),
    ),
    "a method that a subclass overrides": _one(
        "LS405",
        "train in a loop that calls the methods itself",
        f"{TF}{LOOP}\n\nclass Doubled({OLD}):\n    def get_scaled_loss(self, loss):\n"
        "        return 2.0 * super().get_scaled_loss(loss)\n\n"
        f"    def get_unscaled_gradients(self, grads):\n"
        "        return [g / 2.0 for g in super().get_unscaled_gradients(grads)]\n\n\n"
        f"opt = Doubled({SGD}, 'dynamic')" + TRAIN,
        "print(json.dumps(train(opt)))",
        "print(json.dumps(train(opt)))",
        targets=("shim", "3"),
        left=("LS405",),
    ),
    "a method of an optimizer from elsewhere": _one(
        "LS407",
        "wrap the optimizer where it is made, in tfls.keras.mixed_precision.LossScaleOptimizer",
        f"{TF}{LOOP}\nmake = tf.keras.optimizers.SGD\nopt = make(0.25)\n"
        "try:\n    print(json.dumps(train(opt)))\nexcept AttributeError:\n    print('{}')\n",
        "make(0.25)\n",
        "make(0.25)\nimport tf_lossscale as tfls\nopt = {final}(opt)\n",
        targets=("shim", "3"),
        original=(),
    ),
    "the learning rate of an inner optimizer": _one(
        "LS408",
        "write opt.inner_optimizer.learning_rate = ...",
        f"{TF}{LOOP}\nopt = {MP}.LossScaleOptimizer(tf.keras.optimizers.SGD(1.0))\n"
        "opt.inner_optimizer.lr = 0.25" + TRAIN,
        ".lr = ",
        ".learning_rate = ",
        targets=("3",),
    ),
    "a policy that was removed": _one(
        "LS601",
        "use float32, mixed_float16 or mixed_bfloat16",
        f"{TF}{MP}.experimental.set_policy('infer')\n"
        "print(json.dumps({'dtype': tf.keras.layers.Dense(1).dtype or 'float32'}))\n",
        "'infer'",
        "'float32'",
        expected={"dtype": "float32"},
        original=(),
    ),
    "no policy": _one(
        "LS601",
        'write "float32"',
        f"{TF}{MP}.set_global_policy(None)\n"
        f"print(json.dumps({{'policy': {MP}.global_policy().name}}))\n",
        "None",
        '"float32"',
        expected={"policy": "float32"},
        targets=("3",),
        original=("2.4",),
    ),
    "a final policy with a loss scale": _one(
        "LS602",
        ".experimental.Policy('mixed_float16', loss_scale=args.scale), and set the policy",
        f"import argparse\n{TF}args = argparse.Namespace(scale=8)\n"
        f"p = {MP}.Policy('mixed_float16', loss_scale=args.scale)\n{MP}.set_global_policy(p)\n"
        f"print(json.dumps({{'policy': p.name}}))\n",
        "p = {policy}('mixed_float16', loss_scale=args.scale)\n{setter}(p)",
        f"{IMPORT}p = tfls.keras.mixed_precision.experimental.Policy('mixed_float16', "
        "loss_scale=args.scale)\ntfls.keras.mixed_precision.experimental.set_policy(p)",
        expected={"policy": "mixed_float16"},
        original=(),
    ),
    "the loss scale of a final policy": _one(
        "LS605",
        "leave the argument out",
        f"{TF}{LOOP}\nopt = {MP}.LossScaleOptimizer({SGD}, {MP}.global_policy().loss_scale)"
        + TRAIN,
        ", tf.keras.mixed_precision.global_policy().loss_scale",
        "",
        original=(),
    ),
    "the name of a class": _one(
        "LS906",
        "use isinstance",
        f"{TF}opt = {OLD}({SGD}, 8)\n"
        "print(json.dumps({'scaled': type(opt).__name__ == 'LossScaleOptimizer'}))\n",
        "opt = {old}({rest}type(opt).__name__ == 'LossScaleOptimizer'",
        "opt = {old}({rest}isinstance(opt, {old})",
        expected={"scaled": True},
        original=("2.3",),
    ),
    "a branch that is not taken": _one(
        "LS908",
        "write tfls.keras.mixed_precision.LossScaleOptimizer(optimizer) in the branch that the new",
        f"{TF}{LOOP}\nopt = {SGD}\nif hasattr({MP}, 'experimental'):\n"
        f"    opt = {OLD}(opt, 'dynamic')\nelse:\n    pass" + TRAIN,
        "    pass",
        "    opt = {final}(opt)",
    ),
    "a branch that the version may decide": _one(
        "LS908",
        "write tfls.keras.mixed_precision.LossScaleOptimizer(optimizer) in the branch that the new",
        f"from tensorflow.python.keras.optimizer_v2 import optimizer_v2\n{TF}{LOOP}\nopt = {SGD}\n"
        f"if isinstance(opt, optimizer_v2.OptimizerV2):\n    opt = {OLD}(opt, 'dynamic')\n" + TRAIN,
        "\nprint(",
        "else:\n    opt = {final}(opt)\n\nprint(",
    ),
    "a branch beside an error": _one(
        "LS908",
        "the other one raises an error: write",
        f"{TF}{LOOP}\nopt = {SGD}\nif hasattr({MP}, 'experimental'):\n"
        f"    opt = {OLD}(opt, 'dynamic')\nelse:\n    raise RuntimeError('too new')" + TRAIN,
        "raise RuntimeError('too new')",
        "opt = {final}(opt)",
    ),
    "another test beside an import that is tried": _one(
        "LS908",
        "keep one of the imports, and the use that fits it",
        f"{TF}{LOOP}\nopt = {SGD}\ntry:\n    from {EXPERIMENTAL} import LossScaleOptimizer\n"
        "except ImportError:\n    from tensorflow.keras.mixed_precision import LossScaleOptimizer\n"
        f"if hasattr({MP}, 'experimental'):\n    opt = LossScaleOptimizer(opt, 'dynamic')\n"
        "else:\n    opt = LossScaleOptimizer(opt)" + TRAIN,
        f"try:\n    from {TFLS}.experimental import LossScaleOptimizer\nexcept ImportError:\n"
        f"    from {TFLS} import LossScaleOptimizer\nif hasattr({MP}, 'experimental'):\n"
        "    opt = LossScaleOptimizer(opt, 'dynamic')\nelse:\n    opt = LossScaleOptimizer(opt)",
        f"from {TFLS} import LossScaleOptimizer\nopt = LossScaleOptimizer(opt)",
    ),
    "a function that only old versions call": _one(
        "LS908",
        "write tfls.keras.mixed_precision.LossScaleOptimizer(optimizer) where the new TensorFlow",
        f"{TF}{LOOP}\n\ndef wrap(opt):\n    return {OLD}(opt, 'dynamic')\n\n\nopt = {SGD}\n"
        f"if hasattr({MP}, 'experimental'):\n    opt = wrap(opt)\n" + TRAIN,
        "\nprint(",
        "else:\n    opt = {final}(opt)\n\nprint(",
    ),
    "the dictionary of a module": _one(
        "LS909",
        "name) for name in dir(",
        f"{TF}{LOOP}\nnames = vars({MP}.experimental)\n"
        f"opt = names['LossScaleOptimizer']({SGD}, 'dynamic')" + TRAIN,
        "vars({module})",
        "{name: getattr({module}, name) for name in dir({module})}",
        left=("LS407",),
    ),
    "a module that an import names, and nothing reads": _one(
        "LS909",
        "nothing replaces it: remove this use",
        f"{TF}import {EXPERIMENTAL}.loss_scale_optimizer\n{LOOP}\n"
        f"opt = {MP}.LossScaleOptimizer({SGD})" + TRAIN,
        f"import {EXPERIMENTAL}.loss_scale_optimizer\n",
        "",
        original=(),
    ),
    "a path in a string": _one(
        "LS912",
        f"write {TFLS}.experimental.LossScaleOptimizer in its place",
        f"import pydoc\n{TF}{LOOP}\n"
        f"opt = pydoc.locate('{EXPERIMENTAL}.LossScaleOptimizer')({SGD}, 'dynamic')" + TRAIN,
        EXPERIMENTAL,
        f"{TFLS}.experimental",
        left=("LS407",),
        original=(),  # `locate` does not import what TensorFlow 2.4 loads late
    ),
    "a path in a configuration": Followed(
        "LS912",
        f"write {TFLS}.experimental.LossScaleOptimizer, which needs tf-lossscale",
        {
            "config.json": f'{{"wrapper": "{EXPERIMENTAL}.LossScaleOptimizer"}}\n',
            "main.py": f"import importlib\nimport os\n{TF}{LOOP}\n"
            "here = os.path.dirname(__file__)\n"
            "with open(os.path.join(here, 'config.json')) as file:\n    config = json.load(file)\n"
            "module, _, name = config['wrapper'].rpartition('.')\n"
            f"opt = getattr(importlib.import_module(module), name)({SGD}, 'dynamic')" + TRAIN,
        },
        (("config.json", EXPERIMENTAL, f"{TFLS}.experimental"),),
        HALVED,
        left=("LS407",),
    ),
    "versions that are compared as text": _one(
        "LS913",
        'write version.parse(tf.__version__) < version.parse("2.4"), with `from packaging import',
        f"{TF}{LOOP}\nif tf.__version__ < '2.4':\n    opt = {OLD}({SGD}, 'dynamic')\nelse:\n"
        f"    opt = {MP}.LossScaleOptimizer({SGD})" + TRAIN,
        "if tf.__version__ < '2.4'",
        'from packaging import version\nif version.parse(tf.__version__) < version.parse("2.4")',
    ),
    "a name with two meanings": _one(
        "LS904",
        "use a name of its own for each, then migrate again",
        f"{TF}{LOOP}\namp = True\n"
        f"space = {MP}.experimental if amp else tf.keras.optimizers\n"
        f"opt = space.LossScaleOptimizer({SGD}, 'dynamic')" + TRAIN,
        "space = {module} if amp else tf.keras.optimizers\nopt = space.",
        "mp = {module}\nopt = mp.",
    ),
    "a module that also has other names": _one(
        "LS909",
        "import by name what is read from it, then migrate again",
        f"{TF}\n\ndef make(space):\n    return space.DynamicLossScale(16.0)\n\n\n"
        "scale = make(tf.train.experimental)\nprint(json.dumps({'scale': float(scale())}))\n",
        "def make(space):\n    return space.DynamicLossScale(16.0)\n\n\n"
        "scale = make(tf.train.experimental)\n",
        "from tensorflow.train.experimental import DynamicLossScale\n\n"
        "scale = DynamicLossScale(16.0)\n",
        expected={"scale": 16.0},
    ),
    "an import that an error handles": _one(
        "LS908",
        "check that it is the branch to take after the upgrade",
        f"{TF}{LOOP}\ntry:\n    from {EXPERIMENTAL} import LossScaleOptimizer\n\n"
        f"    opt = LossScaleOptimizer({SGD}, 'dynamic')\nexcept ImportError:\n    opt = {SGD}\n"
        + TRAIN,
        "except ImportError:",
        "except ImportError:",
        left=("LS908",),
    ),
    "tf.gradients beside an optimizer": _one(
        "LS907",
        "use optimizer.compute_gradients(loss, variables)",
        "import json\nimport tensorflow.compat.v1 as tf\n\ngraph = tf.Graph().as_default()\n"
        "graph.__enter__()\nv = tf.get_variable('v', initializer=1.0)\n"
        "opt = tf.train.experimental.MixedPrecisionLossScaleOptimizer(\n"
        "    tf.train.GradientDescentOptimizer(0.25), 4.0\n)\n"
        "pairs = list(zip(tf.gradients(4.0 * v * v, [v]), [v]))\n"
        "train = opt.apply_gradients(pairs)\nwith tf.Session() as session:\n"
        "    session.run(tf.global_variables_initializer())\n    session.run(train)\n"
        "    print(json.dumps({'v': float(session.run(v))}))\ngraph.__exit__(None, None, None)\n",
        "list(zip(tf.gradients(4.0 * v * v, [v]), [v]))",
        "opt.compute_gradients(4.0 * v * v, [v])",
        # TensorFlow divides by the scale although nothing was scaled: with 4.0 the original gives
        # 0.5, and the loss that was meant gives -1.0.
        expected={"v": -1.0},
        original=(),
    ),
    "a module that is assigned": _one(
        "LS909",
        "so pass it to that code directly",
        f"{TF}\n\nclass Old:\n    scale = 8\n\n\ndef read(mp):\n    return mp.scale\n\n\n"
        f"{MP}.experimental = Old\nprint(json.dumps({{'scale': read({MP}.experimental)}}))\n",
        "read({module})",
        "read(Old)",
        expected={"scale": 8},
        left=("LS909",),
        patches=True,
    ),
    "a method of a compiled optimizer": _one(
        "LS406",
        "set the policy with tfls.keras.mixed_precision.set_global_policy",
        f"{TF}getattr(tf.keras, 'mixed_' + 'precision').set_global_policy('mixed_float16')\n\n\n"
        "class Scaled(tf.keras.Model):\n    def __init__(self):\n        super().__init__()\n"
        "        self.factor = tf.Variable(1.0)\n\n    def train_step(self, data):\n"
        "        with tf.GradientTape() as tape:\n            loss = self.factor * self.factor\n"
        "            scaled = self.optimizer.get_scaled_loss(loss)\n"
        "        grads = tape.gradient(scaled, [self.factor])\n"
        "        grads = self.optimizer.get_unscaled_gradients(grads)\n"
        "        self.optimizer.apply_gradients(zip(grads, [self.factor]))\n"
        "        return {'loss': loss}\n\n\n"
        f"model = Scaled()\nmodel.compile({SGD}, run_eagerly=True)\n"
        "model.fit(tf.zeros((1, 1)), tf.zeros((1, 1)), verbose=0)\n"
        "print(json.dumps({'factor': float(model.factor)}))\n",
        "getattr(tf.keras, 'mixed_' + 'precision')",
        f"{IMPORT}tfls.keras.mixed_precision",
        expected={"factor": 0.5},
        targets=("shim", "3"),
    ),
    "a final policy with the default loss scale": _one(
        "LS602",
        "leave the argument out, because compile scales dynamically",
        f"{TF}p = {MP}.Policy('mixed_float16', loss_scale='dynamic')\n"
        "print(json.dumps({'policy': p.name}))\n",
        ", loss_scale='dynamic'",
        "",
        expected={"policy": "mixed_float16"},
        targets=("shim",),
        original=(),
    ),
    "the loss scale of a final policy for the old class": _one(
        "LS605",
        'write "dynamic" for the loss scale',
        f"{TF}{LOOP}\nopt = {OLD}({SGD}, {MP}.global_policy().loss_scale)" + TRAIN,
        "tf.keras.mixed_precision.global_policy().loss_scale",
        '"dynamic"',
        original=(),
    ),
    "the loss scale of a final policy under a name": _one(
        "LS605",
        'write "dynamic" for the loss scale',
        f"{TF}{LOOP}\nscale = {MP}.Policy('mixed_float16').loss_scale\n"
        f"opt = {OLD}({SGD}, loss_scale=scale)" + TRAIN,
        "tf.keras.mixed_precision.Policy('mixed_float16').loss_scale",
        '"dynamic"',
        original=(),
    ),
    "the loss scale of a final policy that is printed": _one(
        "LS605",
        "read the loss_scale of the optimizer where it is made",
        f"{TF}{MP}.set_global_policy('mixed_float16')\nopt = {MP}.LossScaleOptimizer({SGD})\n"
        f"scale = {MP}.global_policy().loss_scale\nprint(json.dumps({{'scale': float(scale)}}))\n",
        "scale = tf.keras.mixed_precision.global_policy().loss_scale",
        "scale = opt.loss_scale",
        expected={"scale": 32768.0},
        original=(),
    ),
    "a tensor by its name": _one(
        "LS905",
        "fetch the tensor (manager.get_loss_scale())",
        "import json\nimport tensorflow.compat.v1 as tf\nfrom tensorflow.contrib import "
        "mixed_precision\n\ngraph = tf.Graph().as_default()\ngraph.__enter__()\n"
        "manager = mixed_precision.ExponentialUpdateLossScaleManager(8.0, 9)\n"
        "with tf.Session() as session:\n"
        "    session.run(tf.global_variables_initializer())\n"
        "    print(json.dumps({'scale': float(session.run('loss_scale:0'))}))\n"
        "graph.__exit__(None, None, None)\n",
        "'loss_scale:0'",
        "manager.get_loss_scale()",
        expected={"scale": 8.0},
        original=("1.15",),
    ),
    "a name of a private module": _one(
        "LS909",
        "is private, and no current TensorFlow has it: remove this use",
        f"{TF}from tensorflow.python.keras.mixed_precision import policy\n{LOOP}\n"
        f"print(policy.policy_defaults_to_floatx())\nopt = {MP}.LossScaleOptimizer({SGD})" + TRAIN,
        "print(policy.policy_defaults_to_floatx())\n",
        "",
        original=(),
    ),
    "a name that a module of the shim lacks": _one(
        "LS909",
        "has no such name: remove this use",
        f"{TF}{IMPORT}{LOOP}\nlist(map(tfls.contrib.mixed_precision.abc, []))\n"
        f"opt = {MP}.LossScaleOptimizer({SGD})" + TRAIN,
        "list(map(tfls.contrib.mixed_precision.abc, []))\n",
        "",
        original=(),
    ),
    "an import that only tests": _one(
        "LS909",
        "remove it, or move it to the branch for older",
        f"{TF}\ntry:\n    import {EXPERIMENTAL}\nexcept ImportError:\n    pass\n{LOOP}\n"
        f"opt = {MP}.LossScaleOptimizer({SGD})" + TRAIN,
        f"    import {EXPERIMENTAL}\n",
        "    pass\n",
    ),
    "a name that is deleted": _one(
        "LS909",
        "remove the `del`, then migrate again",
        f"{TF}{LOOP}\nmp = {MP}.experimental\nopt = mp.LossScaleOptimizer({SGD}, 'dynamic')\n"
        "del mp\n" + TRAIN,
        "del mp\n",
        "",
    ),
    "a name that the module never had": _one(
        "LS909",
        "nothing replaces it: remove this use",
        f"{TF}from tensorflow.contrib.mixed_precision import LossScaleOptimizers\n{LOOP}\n"
        f"opt = {MP}.LossScaleOptimizer({SGD})" + TRAIN,
        "from tensorflow.contrib.mixed_precision import LossScaleOptimizers\n",
        "",
        original=(),
    ),
    "a magic line": Followed(
        "LS910",
        "migrate this line by hand",
        {
            "train.ipynb": '{"cells": [{"cell_type": "code", "metadata": {}, "outputs": [], '
            '"execution_count": null, "source": ["import tensorflow as tf\\n", '
            f'"%time opt = {OLD}({SGD}, 8)\\n", "scale = float(opt.loss_scale())"]}}], '
            '"metadata": {}, "nbformat": 4, "nbformat_minor": 5}\n',
            "main.py": "import json\nimport os\n\n"
            "path = os.path.join(os.path.dirname(__file__), 'train.ipynb')\n"
            "with open(path) as file:\n    (cell,) = json.load(file)['cells']\n"
            "names = {}\nexec(''.join(cell['source']).replace('%time ', ''), names)\n"
            "print(json.dumps({'scale': names['scale']}))\n",
        },
        (
            (
                "train.ipynb",
                f"%time opt = {OLD}",
                "import tf_lossscale as tfls\\n%time opt = "
                "tfls.keras.mixed_precision.experimental.LossScaleOptimizer",
            ),
        ),
        {"scale": 8.0},
        original=("2.3",),
    ),
    "a comment that silences nothing": _one(
        "LS900",
        "remove it or fix its codes",
        f"{TF}{LOOP}\nopt = {OLD}({SGD}, 'dynamic')\nopt = opt  # lossscale: ignore[LS907]" + TRAIN,
        "  # lossscale: ignore[LS907]",
        "",
    ),
    "apply_gradients of a subclass": _one(
        "LS405",
        "gives apply_gradients gradients that are still scaled: override scale_loss, and apply of "
        "the inner optimizer, which gets unscaled gradients",
        f"{TF}seen = []\n\n\ndef note(grads):\n"
        "    seen.extend(float(tf.reduce_sum(g)) for g in grads)\n\n\n"
        f"class Noting({OLD}):\n    def apply_gradients(self, grads_and_vars, **options):\n"
        "        pairs = list(grads_and_vars)\n        note(g for g, _ in pairs)\n"
        "        return super().apply_gradients(pairs, **options)\n\n\n"
        f"opt = Noting({SGD}, 'dynamic')\nlayer = tf.keras.layers.Dense(\n"
        "    1, use_bias=False, kernel_initializer='ones'\n)\n"
        "model = tf.keras.Sequential([layer])\nmodel.compile(opt, 'mse', run_eagerly=True)\n"
        "model.fit(tf.ones((1, 1)), tf.zeros((1, 1)), verbose=0)\n"
        "print(json.dumps({'seen': seen}))\n",
        "class Noting({old}):\n    def apply_gradients(self, grads_and_vars, **options):\n"
        "        pairs = list(grads_and_vars)\n        note(g for g, _ in pairs)\n"
        "        return super().apply_gradients(pairs, **options)\n\n\n"
        f"opt = Noting({SGD}, 'dynamic')\n",
        "class Noting(tf.keras.optimizers.SGD):\n"
        "    def apply(self, grads, trainable_variables=None):\n        note(grads)\n"
        "        return super().apply(grads, trainable_variables)\n\n\n"
        "opt = {old}(Noting(0.25), 'dynamic')\n",
        expected={"seen": [2.0]},
        targets=("shim", "3"),
    ),
    "a branch that can go": _one(
        "LS908",
        "this one can go once the older TensorFlow versions are no longer supported",
        f"{TF}{LOOP}\nif hasattr({MP}, 'experimental'):\n    opt = {OLD}({SGD}, 'dynamic')\n"
        f"else:\n    opt = {MP}.LossScaleOptimizer({SGD})" + TRAIN,
        f"if hasattr({MP}, 'experimental'):\n    opt = {{old}}({SGD}, 'dynamic')\nelse:\n    opt",
        "opt",
    ),
    "a flag of another file that is made of text": Followed(
        "LS913",
        "write a comparison of version.parse(tf.__version__) where this is made, with `from "
        "packaging import version`",
        {
            "flags.py": "import tensorflow as tf\n\nIS_OLD = tf.__version__ < '2.4'\n",
            "main.py": f"{TF}import flags\n{LOOP}\nif flags.IS_OLD:\n    opt = {OLD}({SGD}, "
            f"'dynamic')\nelse:\n    opt = {MP}.LossScaleOptimizer({SGD})" + TRAIN,
        },
        (
            (
                "flags.py",
                "IS_OLD = tf.__version__ < '2.4'",
                "from packaging import version\n\n"
                "IS_OLD = version.parse(tf.__version__) < version.parse('2.4')",
            ),
        ),
        HALVED,
    ),
    "a checkpoint": _one(
        "LS409",
        "write tfls.checkpoints.restore(path, checkpoint)",
        f"{RESUMED}path = os.path.join(run, 'nested-adam-checkpoint')\n"
        "net = half_trained.built(tf.keras, 'nested')\n"
        f"opt = {MP}.LossScaleOptimizer(tf.keras.optimizers.Adam())\n"
        "checkpoint = tf.train.Checkpoint(model=net, optimizer=opt)\n"
        "checkpoint.restore(path)\nreport('nested-adam-checkpoint', net)\n",
        "checkpoint.restore(path)\n",
        f"{IMPORT}tfls.checkpoints.restore(path, checkpoint)\n",
        expected={"restored": True},
        targets=("3",),
    ),
    "the newest checkpoint of a manager": _one(
        "LS409",
        "write tfls.checkpoints.restore(manager.latest_checkpoint, manager.checkpoint)",
        f"{RESUMED}net = half_trained.built(tf.keras, 'embedded')\n"
        f"opt = {MP}.LossScaleOptimizer(tf.keras.optimizers.Ftrl())\n"
        "made = tf.train.Checkpoint(model=net, optimizer=opt)\n"
        "path = os.path.join(run, 'embedded-ftrl-manager')\n"
        "manager = tf.train.CheckpointManager(made, path, 2)\n"
        "manager.restore_or_initialize()\nreport('embedded-ftrl-manager', net)\n",
        "manager.restore_or_initialize()\n",
        f"{IMPORT}tfls.checkpoints.restore(manager.latest_checkpoint, manager.checkpoint)\n",
        expected={"restored": True},
        targets=("3",),
    ),
    "weights": _one(
        "LS409",
        "write tfls.checkpoints.restore(path, net)",
        f"{RESUMED}path = os.path.join(run, 'nested-adadelta-weights')\n"
        "net = half_trained.built(tf.keras, 'nested')\n"
        f"opt = {MP}.LossScaleOptimizer(tf.keras.optimizers.Adadelta())\n"
        "net.compile(opt, 'mse')\nnet.load_weights(path)\nreport('nested-adadelta-weights', net)\n",
        "net.load_weights(path)\n",
        f"{IMPORT}tfls.checkpoints.restore(path, net)\n",
        expected={"restored": True},
        targets=("3",),
    ),
    "a model": _one(
        "LS409",
        "build the model, and write tfls.checkpoints.restore(path, model, optimizer)",
        f"{RESUMED}path = os.path.join(run, 'sequential-adagrad-model.h5')\n"
        f"opt = {MP}.LossScaleOptimizer(tf.keras.optimizers.Adagrad())\n"
        "model = tf.keras.models.load_model(path, compile=False)\n"
        "report('sequential-adagrad-model.h5', model)\n",
        "model = tf.keras.models.load_model(path, compile=False)\n",
        f"{IMPORT}model = half_trained.built(tf.keras, 'sequential')\n"
        "tfls.checkpoints.restore(path, model, opt)\n",
        expected={"restored": True},
        targets=("3",),
    ),
    "a Saver": _one(
        "LS409",
        "assign tf.train.load_checkpoint(path).get_tensor(name)",
        f"import os\nimport tempfile\n{TF}path = os.path.join(tempfile.mkdtemp(), 'model')\n"
        "tf.raw_ops.SaveV2(\n    prefix=path, tensor_names=['dense/kernel'], "
        "shape_and_slices=[''], tensors=[tf.fill((1, 1), 2.0)]\n)\n"
        "layer = tf.keras.layers.Dense(1, use_bias=False)\nlayer.build((None, 1))\n"
        f"opt = {MP}.LossScaleOptimizer({SGD})\n"
        "tf.compat.v1.train.Saver({'dense/kernel': layer.kernel}).restore(None, path)\n"
        "print(json.dumps({'kernel': float(layer(tf.ones((1, 1)))[0, 0])}))\n",
        "tf.compat.v1.train.Saver({'dense/kernel': layer.kernel}).restore(None, path)\n",
        "layer.kernel.assign(tf.train.load_checkpoint(path).get_tensor('dense/kernel'))\n",
        expected={"kernel": 2.0},
        targets=("3",),
    ),
    "a backup": _one(
        "LS409",
        "save a tf.train.Checkpoint of it there, and write tfls.checkpoints.restore(path, "
        "checkpoint)",
        f"{RESUMED}path = os.path.join(run, 'nested-adam-checkpoint')\n"
        "net = half_trained.built(tf.keras, 'nested')\n"
        f"opt = {MP}.LossScaleOptimizer(tf.keras.optimizers.Adam())\n"
        "callback = tf.keras.callbacks.experimental.BackupAndRestore(run)\n"
        "report('nested-adam-checkpoint', net)\n",
        "callback = tf.keras.callbacks.experimental.BackupAndRestore(run)\n",
        f"{IMPORT}checkpoint = tf.train.Checkpoint(model=net, optimizer=opt)\n"
        "tfls.checkpoints.restore(path, checkpoint)\n",
        expected={"restored": True},
        targets=("3",),
        original=(),
    ),
    "a checkpoint that another file restores": Followed(
        "LS409",
        "write tfls.checkpoints.restore(path, checkpoint) there",
        {
            "optim.py": "import half_trained\nimport tensorflow as tf\n\n"
            "net = half_trained.built(tf.keras, 'nested')\n"
            f"opt = {MP}.LossScaleOptimizer(tf.keras.optimizers.Adam())\n",
            "main.py": f"{RESUMED}from optim import net, opt\n\n"
            "path = os.path.join(run, 'nested-adam-checkpoint')\n"
            "checkpoint = tf.train.Checkpoint(model=net, optimizer=opt)\n"
            "checkpoint.restore(path)\nreport('nested-adam-checkpoint', net)\n",
        },
        (
            (
                "main.py",
                "checkpoint.restore(path)\n",
                f"{IMPORT}tfls.checkpoints.restore(path, checkpoint)\n",
            ),
        ),
        {"restored": True},
        targets=("3",),
    ),
    "a loop that clips": _one(
        "LS402",
        "with nothing between unscaling and applying (clip with global_clipnorm= of the inner "
        "optimizer), and no state of it is read; after that, write "
        "tf.keras.mixed_precision.LossScaleOptimizer for the shim's class, and migrate again",
        f"{TF}{IMPORT}v = tf.Variable(1.0)\n"
        "opt = tfls.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD(0.25))\n"
        "with tf.GradientTape() as tape:\n    loss = opt.get_scaled_loss(v * v)\n"
        "grads = opt.get_unscaled_gradients(tape.gradient(loss, [v]))\n"
        "grads, _ = tf.clip_by_global_norm(grads, 1.0)\nopt.apply_gradients(zip(grads, [v]))\n"
        "print(json.dumps({'v': float(v)}))\n",
        "tfls.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD(0.25))\n"
        "with tf.GradientTape() as tape:\n    loss = opt.get_scaled_loss(v * v)\n"
        "grads = opt.get_unscaled_gradients(tape.gradient(loss, [v]))\n"
        "grads, _ = tf.clip_by_global_norm(grads, 1.0)\n",
        "tf.keras.mixed_precision.LossScaleOptimizer(\n"
        "    tf.keras.optimizers.SGD(0.25, global_clipnorm=1.0)\n)\n"
        "with tf.GradientTape() as tape:\n    loss = opt.get_scaled_loss(v * v)\n"
        "grads = opt.get_unscaled_gradients(tape.gradient(loss, [v]))\n",
        expected={"v": 0.75},
        targets=("unsafe",),
        original=(),
    ),
    "a policy of tf.keras that tf_keras does not use": _one(
        "LS606",
        "or write tf_keras.mixed_precision.set_global_policy",
        f"{TF}import tf_keras\n\n{MP}.experimental.set_policy('mixed_float16')\n"
        "model = tf_keras.Sequential([tf_keras.layers.Dense(1)])\n"
        "model.compile(tf_keras.optimizers.SGD(0.25), 'mse')\n"
        "scales = hasattr(model.optimizer, 'loss_scale')\n"
        "print(json.dumps({'dtype': model.layers[0].compute_dtype, 'scales': scales}))\n",
        "{setter}(",
        "tf_keras.mixed_precision.set_global_policy(",
        expected={"dtype": "float16", "scales": True},
        original=(),
        patches=True,
    ),
    "a policy with a loss scale that tf_keras does not use": _one(
        "LS606",
        "set the variable before TensorFlow is imported",
        "import json\nimport os\n\nimport tensorflow as tf\nimport tf_keras\n\n"
        f"policy = {MP}.experimental.Policy('mixed_float16', loss_scale=128)\n"
        f"{MP}.experimental.set_policy(policy)\n"
        "model = tf_keras.Sequential([tf_keras.layers.Dense(1)])\n"
        "model.compile(tf_keras.optimizers.SGD(0.25), 'mse')\n"
        "print(json.dumps({'scale': float(model.optimizer.loss_scale)}))\n",
        "import os\n",
        "import os\n\nos.environ['TF_USE_LEGACY_KERAS'] = '1'\n",
        expected={"scale": 128.0},
        original=(),
        patches=True,
    ),
    "a class under a name of its own that another file compares": Followed(
        "LS301",
        "compares types of objects",
        {
            "compat.py": f"from {EXPERIMENTAL} import LossScaleOptimizer as Wrap\n",
            "main.py": f"{TF}from compat import Wrap\n\n"
            f"opt = Wrap({SGD}, 8)\n"
            "print(json.dumps({'scaled': type(opt) is Wrap}))\n",
        },
        (("main.py", "type(opt) is Wrap", "isinstance(opt, Wrap)"),),
        {"scaled": True},
    ),
    "a loop of several files": Followed(
        "LS402",
        "it can move if one file makes and uses the optimizer",
        {
            "checks.py": "import tensorflow as tf\n\n\ndef scales(opt):\n"
            f"    return isinstance(opt, {MP}.LossScaleOptimizer)\n",
            "main.py": f"{TF}from checks import scales\n\nv = tf.Variable(1.0)\n"
            f"opt = {MP}.LossScaleOptimizer({SGD})\nassert scales(opt)\n"
            "with tf.GradientTape() as tape:\n    loss = opt.get_scaled_loss(v * v)\n"
            "grads = opt.get_unscaled_gradients(tape.gradient(loss, [v]))\n"
            "opt.apply_gradients(zip(grads, [v]))\nprint(json.dumps({'v': float(v)}))\n",
        },
        (
            ("checks.py", f"isinstance(opt, {FINAL})", "opt is not None"),
            ("main.py", f"opt = {FINAL}", f"opt = {MP}.LossScaleOptimizer"),
        ),
        {"v": 0.5},
        targets=("unsafe",),
    ),
}
