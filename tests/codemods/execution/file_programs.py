"""Programs of two to five files: what each file does x how names pass between them.

A program makes, wraps, tests, steps and logs an optimizer in different files, and prints losses,
loss scales and weights. `tests/shim/programs/test_several_files.py` executes them.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple


class FileProgram(NamedTuple):
    """One program; `main.py` prints one JSON object.

    Attributes:
      name: its family and number.
      family: which grammar wrote it.
      files: the sources, by file name.
      originals: the TensorFlows that have what the program uses.
    """

    name: str
    family: str
    files: Mapping[str, str]
    originals: tuple[str, ...]


_EXPERIMENTAL = "keras.mixed_precision.experimental"
_FINAL = "keras.mixed_precision"
_SCALES_OF_EXPERIMENTAL = (
    "'dynamic'",
    "16.",
    "tf.mixed_precision.experimental.DynamicLossScale(8., 2)",
    "tf.mixed_precision.experimental.FixedLossScale(32.)",
    "tf.train.experimental.DynamicLossScale(initial_loss_scale=64., increment_period=1)",
    "SCALE",
    "make_scale()",
)
_SCALES_OF_FINAL = (
    "",
    "dynamic=False, initial_scale=16.",
    "initial_scale=8., dynamic_growth_steps=2",
)
_MAIN = """\
import json

import tensorflow as tf
{imports}

variables = [
    tf.Variable(1.5),
    tf.Variable([0.5, -2.0, 4.0]),
    tf.Variable([[1.0, 2.0], [3.0, -4.0]]),
]
INF = float("inf")
record = {{"losses": [], "scales": []}}
{body}
record["weights"] = [v.numpy().tolist() for v in variables]
print(json.dumps(record))
"""
_LOOP = """\
for x in [1.0, -0.5, INF, 2.0, 0.25, INF, 1.0]:
    record["losses"].append(float({step}))
    record["scales"].append({scale})
"""
_FIT = """\
import numpy as np

model = {model}()
data = np.array([[1.0, 2.0], [0.5, -1.0], [2.0, 0.0], [1.0, 1.0]], "float32")
model.compile({given}, loss="mse")
history = model.fit(data, data[:, :1], batch_size=2, epochs=2, shuffle=False, verbose=0)
record["losses"] = [round(loss, 3) for loss in history.history["loss"]]
variables = model.trainable_variables
record["scaled"] = is_scaled(model.optimizer)
"""
_MODEL = """\
class {name}(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = tf.keras.layers.Dense(1, kernel_initializer="ones", dtype="float32")

    def call(self, x):
        return self.dense(x)

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((self(x, training=True) - y) ** 2)
            scaled = loss
            if is_scaled(self.optimizer):
                scaled = self.optimizer.get_scaled_loss(loss)
        gradients = tape.gradient(scaled, self.trainable_variables)
        if is_scaled(self.optimizer):
            gradients = self.optimizer.get_unscaled_gradients(gradients)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        return {{"loss": loss}}
"""
_STEP = """\
    with tf.GradientTape() as tape:
        loss = tf.add_n([tf.reduce_sum(v * x) for v in variables])
        scaled = {opt}.get_scaled_loss(loss) if {test} else loss
    gradients = tape.gradient(scaled, variables)
    if {test}:
        gradients = {opt}.get_unscaled_gradients(gradients)
{clip}    {opt}.apply_gradients(zip(gradients, variables))
    return loss
"""
_GUARDS = (
    "try:\n    from tensorflow.{final} import {name}\n    IS_FINAL = True\nexcept ImportError:\n"
    "    from tensorflow.{old} import {name}\n    IS_FINAL = False\n",
    "IS_FINAL = hasattr(tf.{final}, 'LossScaleOptimizer')\n"
    "if IS_FINAL:\n    {name} = tf.{final}.{name}\nelse:\n    {name} = tf.{old}.{name}\n",
    "IS_FINAL = [int(n) for n in tf.__version__.split('.')[:2]] >= [2, 4]\n"
    "mp = tf.{final} if IS_FINAL else tf.{old}\n{name} = mp.{name}\n",
    "IS_FINAL = tf.__version__.split('.')[1] not in ('2', '3')\n"
    "if IS_FINAL:\n    import tensorflow.{final} as mp\nelse:\n    import tensorflow.{old} as mp\n"
    "{name} = mp.{name}\n",
)


class _Files:
    """The files of one program while they are written."""

    def __init__(self, rng: random.Random, module: str) -> None:
        self.rng = rng
        self.module = module
        self.files: dict[str, str] = {}
        self.compat: dict[str, None] = {}

    def names(self, name: str) -> tuple[str, str]:
        """Import statements, and how to write the symbol `name` after them."""
        module, _, last = self.module.rpartition(".")
        style = self.rng.choice(
            ["tf", "tf", "from module", "import as", "from name", "from as", "keras", "compat"]
        )
        if style == "keras" and not self.module.startswith("keras"):
            style = "tf"
        if style == "tf":
            return "import tensorflow as tf", f"tf.{self.module}.{name}"
        if style == "keras":
            return "from tensorflow import keras", f"{self.module}.{name}"
        if style == "from module":
            return f"from tensorflow.{module} import {last} as mp", f"mp.{name}"
        if style == "import as":
            return f"import tensorflow.{self.module} as prec", f"prec.{name}"
        if style == "from name":
            return f"from tensorflow.{self.module} import {name}", name
        if style == "from as":
            return f"from tensorflow.{self.module} import {name} as Known", "Known"
        return self.through_compat(name)

    def through_compat(self, name: str) -> tuple[str, str]:
        """The symbol through a file of the program that re-exports it."""
        form = self.rng.choice(["name", "module", "import", "alias"])
        if form == "name":
            self.compat[f"{name} = tf.{self.module}.{name}"] = None
            return f"from compat import {name}", name
        if form == "module":
            self.compat[f"mp = tf.{self.module}"] = None
            return "import compat", f"compat.mp.{name}"
        if form == "alias":
            self.compat[f"mp = tf.{self.module}"] = None
            return "from compat import mp as mixed", f"mixed.{name}"
        self.compat[f"from tensorflow.{self.module} import {name}"] = None
        return "import compat as c", f"c.{name}"

    def add(self, name: str, *parts: str) -> None:
        self.files[name] = "\n".join(part for part in parts if part) + "\n"

    def use(self, module: str, name: str) -> tuple[str, str]:
        """An import of a name from a file of the program, and how to write it."""
        style = self.rng.choice(["from", "from", "import", "import as", "from as", "api"])
        if style == "from":
            return f"from {module} import {name}", name
        if style == "from as":
            return f"from {module} import {name} as the_{name}", f"the_{name}"
        if style == "import":
            return f"import {module}", f"{module}.{name}"
        if style == "import as":
            return f"import {module} as m_{module}", f"m_{module}.{name}"
        api = self.files.get("api.py", "")
        line = f"from {module} import {name}"
        self.files["api.py"] = api if line in api else f"{api}{line}\n"
        return f"from api import {name}", name

    def finished(self) -> dict[str, str]:
        if self.compat:
            self.add("compat.py", "import tensorflow as tf", *self.compat)
        return self.files


def _once(*lines: str) -> str:
    return "\n".join(dict.fromkeys("\n".join(lines).split("\n")))


def _keras(rng: random.Random, number: int) -> FileProgram:
    kind = rng.choice(["2.3", "2.4", "2.4", "final", "final"])
    files = _Files(rng, _FINAL if kind == "final" else _EXPERIMENTAL)
    tf = "import tensorflow as tf"
    # the file that wraps
    imported, lso = files.names("LossScaleOptimizer")
    scale = rng.choice(_SCALES_OF_FINAL if kind == "final" else _SCALES_OF_EXPERIMENTAL)
    arguments = f"opt, {scale}" if scale else "opt"
    extra = ""
    if scale == "SCALE":
        files.add("settings.py", f"SCALE = {rng.choice(['16.', repr('dynamic'), '2.0 ** 5'])}")
        extra = "from settings import SCALE"
    elif scale == "make_scale()":
        files.add(
            "settings.py", tf, "", "def make_scale():",
            f"    return {rng.choice(_SCALES_OF_EXPERIMENTAL[2:4])}",
        )  # fmt: skip
        extra = "from settings import make_scale"
    call = f"{lso}({arguments})"
    wraps = rng.choice(
        [
            f"def wrap(opt, fp16=True):\n    return {call}",
            f"def wrap(opt, fp16=True):\n    if fp16:\n        opt = {call}\n    return opt",
            f"def wrap(opt, fp16=True):\n    return {call} if fp16 else opt",
            f"def wrap(opt, fp16=True):\n    if isinstance(opt, {lso}):\n        return opt\n"
            f"    return {call}",
            "def wrap(opt, fp16=True):\n"
            f"    return {{True: lambda: {call}, False: lambda: opt}}[fp16]()",
            f"def _made(cls, opt):\n    return {call.replace(lso, 'cls', 1)}\n\n\n"
            f"def wrap(opt, fp16=True):\n    return _made({lso}, opt)",
            f"class Own({lso}):\n    pass\n\n\ndef wrap(opt, fp16=True):\n"
            f"    return {call.replace(lso, 'Own', 1)}",
            f"class Maker:\n    kind = {lso}\n\n    def make(self, opt):\n"
            f"        return {call.replace(lso, 'self.kind', 1)}\n\n\n"
            "def wrap(opt, fp16=True):\n    return Maker().make(opt)",
        ]
    )
    files.add("amp.py", _once(tf, imported, extra), "\n", wraps)
    # the file that tests
    tester, imported, lso = "checks", *files.names("LossScaleOptimizer")
    test = rng.choice(
        [
            f"isinstance(opt, {lso})",
            f"isinstance(opt, {lso})",
            f"isinstance(opt, (int, {lso}))",
            f"issubclass(type(opt), {lso})",
            "hasattr(opt, 'get_scaled_loss')",
        ]
    )
    files.add("checks.py", _once(tf, imported), "\n", f"def is_scaled(opt):\n    return {test}")
    # the file that logs
    check_import, check = files.use(tester, "is_scaled")
    read = "opt.loss_scale()" if kind == "2.3" else "opt.loss_scale"
    files.add(
        "log.py", check_import, "\n",
        f"def scale_of(opt):\n    return float({read}) if {check}(opt) else 0.0",
    )  # fmt: skip
    # the file that steps
    clip = rng.choice(["", "", "    gradients, _ = tf.clip_by_global_norm(gradients, 8.0)\n"])
    fp16 = rng.choice(["True", "True", "False"])
    inner = rng.choice(["SGD(0.125)", "SGD(0.25, momentum=0.5)", "SGD(0.125, momentum=0.5)"])
    inner = f"tf.keras.optimizers.{inner}"
    wrap_import, wrap = files.use("amp", "wrap")
    log_import, log = files.use("log", "scale_of")
    shape = rng.choice(["function", "function", "class", "in class", "fit", "fit policy"])
    check_import, check = files.use(tester, "is_scaled")
    if shape.startswith("fit"):
        files.add(
            "model.py",
            tf,
            check_import,
            "\n",
            _MODEL.format(name="Net").replace("is_scaled", check),
        )
        del files.files["log.py"]
        model_import, model = files.use("model", "Net")
        test_import = f"from {tester} import is_scaled"
        given = f"{wrap}({inner}, {fp16})" if shape == "fit" else inner
        policy = ""
        if shape == "fit policy":
            setter = "set_global_policy" if kind == "final" else "set_policy"
            imported, setter = files.names(setter)
            files.add(
                "policies.py", _once(imported), "\n", f"def setup():\n    {setter}('mixed_float16')"
            )
            policy = "import policies\npolicies.setup()\n"
            wrap_import = ""
        imports = _once(wrap_import, model_import, test_import)
        main = _MAIN.format(imports=imports, body=policy + _FIT.format(model=model, given=given))
    elif shape == "function":
        body = _STEP.format(opt="opt", test=f"{check}(opt)", clip=clip)
        files.add("step.py", tf, check_import, "\n", f"def train_on(opt, variables, x):\n{body}")
        step_import, step = files.use("step", "train_on")
        loop = _LOOP.format(step=f"{step}(opt, variables, x)", scale=f"{log}(opt)")
        imports = _once(wrap_import, step_import, log_import)
        main = _MAIN.format(imports=imports, body=f"opt = {wrap}({inner}, {fp16})\n{loop}")
    else:
        body = _STEP.format(opt="self.opt", test=f"{check}(self.opt)", clip=clip)
        body = "\n".join(f"    {line}" if line else "" for line in body.split("\n"))
        passed = "opt" if shape == "class" else f"{wrap}(opt, {fp16})"
        more = wrap_import if shape != "class" else ""
        files.add(
            "step.py", _once(tf, check_import, more), "\n",
            f"class Trainer:\n    def __init__(self, opt):\n        self.opt = {passed}\n\n"
            f"    def train_on(self, variables, x):\n{body}",
        )  # fmt: skip
        step_import, trainer = files.use("step", "Trainer")
        made = inner if shape != "class" else f"{wrap}({inner}, {fp16})"
        loop = _LOOP.format(step="trainer.train_on(variables, x)", scale=f"{log}(trainer.opt)")
        imports = _once(wrap_import if shape == "class" else "", step_import, log_import)
        main = _MAIN.format(imports=imports, body=f"trainer = {trainer}({made})\n{loop}")
    files.add("main.py", main)
    if shape == "fit policy" and kind == "2.4":
        kind = "2.3"  # later, compile wraps in the final class, for which the tests are False
    if kind == "final" and "class Own" in wraps:
        kind = "2.4"  # from 2.11 on, the final class cannot be subclassed
    originals = {"2.3": ("2.3",), "2.4": ("2.4", "2.8"), "final": ("2.4", "2.8", "2.15", "k2")}
    return FileProgram(f"keras-{number:05}", "keras", files.finished(), originals[kind])


def _policies(rng: random.Random, number: int) -> FileProgram:
    """A policy that is made in one file, passed through others, and used by layers."""
    is_final = rng.random() < 0.3
    files = _Files(rng, _FINAL if is_final else _EXPERIMENTAL)
    setter_name = "set_global_policy" if is_final else "set_policy"
    imported, policy = files.names("Policy")
    extra = (
        "" if is_final else rng.choice(["", "", "", ", loss_scale=None", ", loss_scale='dynamic'"])
    )
    dtype = rng.choice(["mixed_float16", "mixed_bfloat16", "float64"])
    made = f"{policy}('{dtype}'{extra})"
    files.add(
        "policies.py", imported, "\n",
        rng.choice(
            [
                f"POLICY = {made}\n\n\ndef get():\n    return POLICY",
                f"def get():\n    return {made}",
                f"_table = {{'it': {made}}}\n\n\ndef get():\n    return _table['it']",
                f"class Holder:\n    policy = {made}\n\n\ndef get():\n    return Holder.policy",
            ]
        ),
    )  # fmt: skip
    imported, setter = files.names(setter_name)
    get_import, get = files.use("policies", "get")
    files.add(
        "setup_it.py", _once(imported, get_import), "\n", f"def setup():\n    {setter}({get}())"
    )
    imported, current = files.names("global_policy")
    files.add(
        "layers.py", _once("import tensorflow as tf", imported, get_import), "\n",
        "def layer():\n    return tf.keras.layers.Dense(1, kernel_initializer='ones')\n\n\n"
        f"def other():\n    return tf.keras.layers.Dense(1, dtype={get}())\n\n\n"
        f"def name():\n    return {current}().name",
    )  # fmt: skip
    setup_import, setup = files.use("setup_it", "setup")
    main = f"""\
import json

import tensorflow as tf
import layers
{setup_import}

record = {{}}
if {rng.choice(["True", "layers.name() == 'float32'"])}:
    {setup}()
record["name"] = layers.name()
record["types"] = [each(tf.ones([1, 2])).dtype.name for each in (layers.layer(), layers.other())]
print(json.dumps(record))
"""
    files.add("main.py", main)
    originals = ("2.4", "2.8", "2.15", "k2", "k3") if is_final else ("2.3", "2.4", "2.8")
    return FileProgram(f"policies-{number:05}", "policies", files.finished(), originals)


def _guards(rng: random.Random, number: int) -> FileProgram:
    """The class comes from a file with a version guard."""
    files = _Files(rng, _EXPERIMENTAL)
    name = "LossScaleOptimizer"
    guard = rng.choice(_GUARDS).format(final=_FINAL, old=_EXPERIMENTAL, name=name)
    files.add("compat.py", "import tensorflow as tf\n", guard)
    use, lso = files.use("compat", name)
    flag_use, flag = files.use("compat", "IS_FINAL")
    files.add(
        "amp.py", _once(use, flag_use), "\n",
        f"def wrap(opt):\n    if {flag}:\n        return {lso}(opt)\n"
        f"    return {lso}(opt, 'dynamic')",
    )  # fmt: skip
    use, lso = files.use("compat", name)
    test = f"isinstance(opt, {lso})"
    step = _STEP.format(opt="opt", test=test, clip="")
    files.add(
        "step.py", "import tensorflow as tf", use, "\n", f"def train_on(opt, variables, x):\n{step}"
    )
    wrap_import, wrap = files.use("amp", "wrap")
    step_import, step_name = files.use("step", "train_on")
    loop = _LOOP.format(step=f"{step_name}(opt, variables, x)", scale="0")
    body = f"opt = {wrap}(tf.keras.optimizers.SGD(0.125, momentum=0.5))\n{loop}"
    files.add("main.py", _MAIN.format(imports=_once(wrap_import, step_import), body=body))
    originals = ("2.3", "2.4", "2.8", "2.15", "k2")
    return FileProgram(f"guards-{number:05}", "guards", files.finished(), originals)


_GRAPH_MAIN = """\
import json

import tensorflow as tf
{imports}

record = {{"losses": [], "steps": []}}
with tf.Graph().as_default():
    v1 = tf.compat.v1
    x = v1.placeholder(tf.float32, [])
    variables = [
        v1.get_variable("a", initializer=1.5),
        v1.get_variable("b", initializer=tf.constant([0.5, -2.0, 4.0])),
        v1.get_variable("c", initializer=tf.constant([[1.0, 2.0], [3.0, -4.0]])),
    ]
    loss = tf.add_n([tf.reduce_sum(v * x) for v in variables])
    step = v1.train.get_or_create_global_step()
    opt = {make}
    record["wrapped"] = {test}
    train = opt.minimize(loss, global_step=step)
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        for value in [1.0, -0.5, float("inf"), 2.0, 0.25, float("inf"), 1.0]:
            record["losses"].append(float(session.run(loss, {{x: value}})))
            session.run(train, {{x: value}})
            record["steps"].append(int(session.run(step)))
        record["weights"] = [session.run(v).tolist() for v in variables]
print(json.dumps(record))
"""


def _graph(rng: random.Random, number: int) -> FileProgram:
    family = rng.choice(["contrib", "v1", "rewrite", "cross-shard", "cross-shard"])
    inner = rng.choice(["GradientDescentOptimizer(0.125)", "MomentumOptimizer(0.125, 0.5)"])
    inner = f"tf.compat.v1.train.{inner}"
    if family == "contrib":
        files = _Files(rng, "contrib.mixed_precision")
        manager = rng.choice(["FixedLossScaleManager", "ExponentialUpdateLossScaleManager"])
        given = "16." if manager.startswith("Fixed") else rng.choice(["8., 2", "8., 2, 1, 2., 0.5"])
        imported, made = files.names(manager)
        files.add(
            "managers.py",
            imported,
            "\n",
            f"def make():\n    return {made}({given})",
        )
        make_import, make = files.use("managers", "make")
        imported, lso = files.names("LossScaleOptimizer")
        code = f"def wrap(opt):\n    return {lso}(opt, {make}())"
        files.add("amp.py", _once(imported, make_import), "\n", code)
        kind, originals = "LossScaleOptimizer", ("1.15",)
    elif family == "v1":
        files = _Files(rng, "train.experimental")
        imported, scale = files.names(rng.choice(["DynamicLossScale", "FixedLossScale"]))
        files.add("scales.py", imported, "\n", f"def make():\n    return {scale}(8.)")
        make_import, make = files.use("scales", "make")
        imported, lso = files.names("MixedPrecisionLossScaleOptimizer")
        given = rng.choice([f"{make}()", "'dynamic'", "16."])
        code = f"def wrap(opt):\n    return {lso}(opt, {given})"
        files.add("amp.py", _once(imported, make_import), "\n", code)
        kind, originals = "MixedPrecisionLossScaleOptimizer", ("1.15",)
    elif family == "rewrite":
        files = _Files(rng, "train.experimental")
        imported, rewrite = files.names("enable_mixed_precision_graph_rewrite")
        files.add("amp.py", imported, "\n", f"def wrap(opt):\n    return {rewrite}(opt)")
        kind, originals = "", ("1.15", "2.3")
    else:
        files = _Files(rng, "contrib.tpu")
        use_tpu = rng.choice(["False", "False", "bool(0)"])
        files.add("settings.py", f"USE_TPU = {use_tpu}")
        imported, cross = files.names("CrossShardOptimizer")
        setting, flag = files.use("settings", "USE_TPU")
        code = rng.choice(
            [
                f"def wrap(opt):\n    if {flag}:\n        opt = {cross}(opt)\n    return opt",
                f"def wrap(opt):\n    if {flag} and not isinstance(opt, {cross}):\n"
                f"        return {cross}(opt)\n    return opt",
                f"def wrap(opt):\n    return {cross}(opt) if {flag} else opt",
            ]
        )
        files.add("amp.py", _once(imported, setting), "\n", code)
        kind, originals = "CrossShardOptimizer", ("1.15",)
    if kind and rng.random() < 0.5:
        imported, lso = files.names(kind)
        test = rng.choice(["isinstance(opt, {})", "type(opt) is {}", "isinstance(opt, (str, {}))"])
        code = f"def is_wrapped(opt):\n    return {test.format(lso)}"
        files.add("checks.py", imported, "\n", code)
        check_import, check = files.use("checks", "is_wrapped")
    else:
        check_import, check = "", "bool"
    wrap_import, wrap = files.use("amp", "wrap")
    main = _GRAPH_MAIN.format(
        imports=_once(wrap_import, check_import), make=f"{wrap}({inner})", test=f"{check}(opt)"
    )
    files.add("main.py", main)
    name = f"{family}-{number:05}"
    return FileProgram(name, family, files.finished(), originals)


_GRAMMARS = ((_keras, 60), (_policies, 12), (_guards, 8), (_graph, 20))
"""How many of a hundred programs each grammar writes."""


def file_programs(count: int, seed: int = 20261123) -> Iterator[FileProgram]:
    """The first `count` programs, always the same ones."""
    for number in range(count):
        rng = random.Random(f"{seed} {number}")
        grammar = rng.choices([one for one, _ in _GRAMMARS], [share for _, share in _GRAMMARS])[0]
        program = grammar(rng, number)
        files = {name: _numbered(text, number) for name, text in program.files.items()}
        yield program._replace(files=files)


_FUNCTIONS = re.compile(
    r"\b(is_scaled|is_wrapped|get|make|make_scale|scale_of|setup|train_on|wrap|Net|Trainer)\b"
)


def _numbered(source: str, number: int) -> str:
    """The source with functions of its own: a run looks for the callers of each by its name."""
    return _FUNCTIONS.sub(lambda match: f"{match[0]}_{number}", source)
