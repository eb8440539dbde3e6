"""Random packages: two to four files with legacy names, which reach each other in different ways.

A package is made of fragments by a seed, so a failure is repeated by its number:

    PYTHONPATH=tests/shim python -m programs.packages 17

prints package 17. `main.py` loads the other files, directly or through each other, and prints what
they compute. The files register what they define in a module called `shared`, which has no
legacy name.

A comment `# expect CODE` marks a line at which, or right below which, the command must report that;
`# expect CODE below` one for which a finding anywhere below will do.
"""

import json
import posixpath
import random
import sys
from typing import Any, Dict, List, NamedTuple

EXPERIMENTAL = "tensorflow.keras.mixed_precision.experimental"


class Style(NamedTuple):
    """How a file reaches the experimental Keras symbols.

    Attributes:
      lines: its imports, after `import tensorflow as tf`.
      prefix: what stands before the name of a symbol.
      names: what other files can import from it instead; empty if it binds no name.
    """

    lines: str
    prefix: str
    names: str = ""


STYLES = [
    Style("", "tf.keras.mixed_precision.experimental."),
    Style("", "tf.compat.v2.keras.mixed_precision.experimental."),
    Style("from tensorflow.keras.mixed_precision import experimental as mp", "mp.", "mp"),
    Style("from tensorflow.keras.mixed_precision import experimental", "experimental."),
    Style("import tensorflow.keras.mixed_precision.experimental as mp", "mp.", "mp"),
    Style("from tensorflow.keras import mixed_precision", "mixed_precision.experimental."),
    Style("mp = tf.keras.mixed_precision.experimental", "mp.", "mp"),
    Style(
        "from tensorflow.keras.mixed_precision.experimental import (\n"
        "    LossScaleOptimizer, Policy, global_policy, set_policy\n)",
        "",
        "LossScaleOptimizer, Policy, global_policy, set_policy",
    ),
]

# In the fragments, {mp} stands for the prefix of the experimental symbols, {x} for a suffix of the
# file. `make` takes an optimizer, `test` one and tells whether it is a loss-scale optimizer, `read`
# takes one and reads something of it.
KERAS = [
    "def make_{x}(opt):\n    return {mp}LossScaleOptimizer(opt, 'dynamic')",
    "def make_{x}(opt):\n    return {mp}LossScaleOptimizer(opt, 128.0)",
    "def make_{x}(opt, scale='dynamic'):\n    return {mp}LossScaleOptimizer(opt, scale)",
    "def make_{x}(opt):\n"
    "    scale = tf.mixed_precision.experimental.DynamicLossScale(16.0, 2)\n"
    "    return {mp}LossScaleOptimizer(opt, scale)",
    "class Scaled_{x}({mp}LossScaleOptimizer):\n    pass\n\n\n"
    "def make_{x}(opt):\n    return Scaled_{x}(opt, 'dynamic')",
    "KINDS_{x} = {{'amp': {mp}LossScaleOptimizer}}\n\n\n"
    "def make_{x}(opt):\n    return KINDS_{x}['amp'](opt, 'dynamic')",
    "def make_{x}(opt):\n    return tf.keras.mixed_precision.LossScaleOptimizer(opt)",
    "def test_{x}(opt):\n    return isinstance(opt, {mp}LossScaleOptimizer)",
    "def test_{x}(opt):\n    return issubclass(type(opt), {mp}LossScaleOptimizer)",
    "def test_{x}(opt):\n    return isinstance(opt, (str, {mp}LossScaleOptimizer))",
    "SCALED_{x} = ({mp}LossScaleOptimizer,)\n\n\n"
    "def test_{x}(opt):\n    return isinstance(opt, SCALED_{x})",
    "def test_{x}(opt):\n    return isinstance(opt, tf.keras.mixed_precision.LossScaleOptimizer)",
    "def read_{x}(opt: {mp}LossScaleOptimizer):\n    return float(opt.loss_scale)",
    "def read_{x}(opt):\n    return type(opt._optimizer).__name__",
]
V1 = [
    "scale_{x} = tf.mixed_precision.experimental.DynamicLossScale()",
    "def test_{x}(opt):\n    scale = getattr(opt, '_loss_scale', None)\n"
    "    return isinstance(scale, tf.mixed_precision.experimental.FixedLossScale)",
    "class Scale_{x}(tf.mixed_precision.experimental.FixedLossScale):\n    pass",
    "def read_{x}(opt):\n"
    "    return tf.mixed_precision.experimental.FixedLossScale(4.0).get_config()",
    "def make_{x}(opt):\n"
    "    return tf.train.experimental.enable_mixed_precision_graph_rewrite(opt, 64.0)",
]
POLICIES = [
    "{mp}set_policy('float32')",
    "policy_{x} = {mp}Policy('mixed_float16')",
    "policy_{x} = {mp}Policy('mixed_float16', loss_scale=128)",
    "def read_{x}(opt):\n    return {mp}global_policy().name",
    "def read_{x}(opt):\n    return getattr({mp}global_policy(), 'loss_scale', None)",
    "def read_{x}(opt):\n    {mp}set_policy({mp}Policy('mixed_float16'))\n"
    "    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])\n"
    "    model.compile(tf.keras.optimizers.SGD(0.5), 'mse')\n"
    "    {mp}set_policy('float32')\n"
    "    return [test(model.optimizer) for _, test in sorted(shared.TESTS.items())]",
]
CROSS_SHARD = [
    "def is_sharded_{x}(opt):\n    return isinstance(opt, tf.compat.v1.tpu.CrossShardOptimizer)",
    "def shard_{x}(opt):\n    return tf.contrib.tpu.CrossShardOptimizer(opt)",
    "def total_{x}(value):\n    return tf.tpu.cross_replica_sum(value)",
]
CONTRIB = [
    "def manager_{x}():\n    return tf.contrib.mixed_precision.FixedLossScaleManager(8.0)",
    "def wrap_{x}(opt, manager):\n"
    "    return tf.contrib.mixed_precision.LossScaleOptimizer(opt, manager)",
]
OTHER = ["VALUE_{x} = 1"]
GROUPS = [KERAS, KERAS, KERAS, POLICIES, V1, CROSS_SHARD, CONTRIB, OTHER]

FLAGS = {
    "OLD": "OLD = tf.__version__.startswith(('1.', '2.3'))",
    "MAJOR < 2": "MAJOR, MINOR = (int(part) for part in tf.__version__.split('.')[:2])",
    "NUMBERS < (2, 4)": "NUMBERS = tuple(int(part) for part in tf.VERSION.split('.')[:2])",
    "IS_OLD": "numbers = tf.__version__.split('.')\nmajor = int(numbers[0])\nIS_OLD = major < 2",
    "Env.old": "class Env:\n    old = int(tf.__version__.split('.')[1]) < 4",
    "HAS_CONTRIB": "HAS_CONTRIB = hasattr(tf, 'contrib')",
    "IN_DIR": "names = dir(tf.keras.mixed_precision)\nIN_DIR = 'experimental' in names",
    "FOUND": "try:\n    import tensorflow.contrib\n\n    FOUND = True\n"
    "except ImportError:\n    FOUND = False",
    "PARSED < version.parse('2.4')": "from packaging import version\n\n"
    "PARSED = version.parse(tf.__version__)",
    "INSTALLED[0] == '1'": "from importlib import metadata\n\n"
    "INSTALLED = metadata.version('tensorflow')",
    "is_old()": "def is_old():\n    return tf.__version__.startswith('1.')",
    "MODULE is not None": "MODULE = getattr(tf.keras.mixed_precision, 'experimental', None)",
}
"""Conditions that are true on old TensorFlows, with what `flags.py` has for them."""
CONDITIONS = [
    (
        "from tensorflow.python.keras.optimizer_v2 import optimizer_v2",
        "isinstance(opt, optimizer_v2.OptimizerV2)",
    ),
    ("", "hasattr(opt, '_hyper')"),
    ("", "tf.__version__.startswith('1.')"),
]  # fmt: skip
GUARD = (
    "def make_{x}(opt):\n    if {test}:  # expect LS908\n"
    "        return {mp}LossScaleOptimizer(opt, 'dynamic')\n    return opt"
)

LOADS = {
    "import": "import {module}",
    "alias": "import {module} as other_{x}",
    "star": "from {module} import *",
    "from": "from {package} import {stem}",
    "relative": "from {dots} import {stem}",
    "relative star": "from {dots}{stem} import *",
    "function": "def load_{x}():\n    import {module}\n\n\nload_{x}()",
    "__import__": "__import__('{module}')",
    "import_module": "import importlib\n\nother_{x} = importlib.import_module('{module}')",
    "computed": "import importlib\n\nother_{x} = importlib.import_module(shared.NAMES['{stem}'])",
    "locate": "import pydoc\n\nother_{x} = pydoc.locate('{module}')",
    "run_path": "import os\nimport runpy\n\nhere = os.path.dirname(__file__)\n"
    "runpy.run_path(os.path.join(here, '{file}'))",
    "run_module": "import runpy\n\nrunpy.run_module('{module}')",
    "exec": "import os\n\nwith open(os.path.join(os.path.dirname(__file__), '{file}')) as file:\n"
    "    exec(file.read())",
}
REGISTRY = """\
import importlib
import os

folder = os.path.join(os.path.dirname(__file__), {folder!r})
for name in sorted(os.listdir(folder)):
    if name.endswith('.py') and name[:-3] in shared.NAMES:
        importlib.import_module(shared.NAMES[name[:-3]])"""
CONFIGURED = """\
import importlib
import json
import os

with open(os.path.join(os.path.dirname(__file__), 'modules.json')) as file:
    for path in json.load(file)['modules']:
        importlib.import_module(path.partition(':')[0])"""
ENTRY_POINTS = """\
from importlib.metadata import entry_points

for entry in entry_points(group='plugins'):
    entry.load()"""
BY_NAME = ("run_path", "exec")
"""Ways to run a file that is then in no package."""
SHARED = "MAKERS, TESTS, READS = {{}}, {{}}, {{}}\nNAMES = {names!r}\n"
MAIN = """\
record = {{"errors": []}}
for make_name, make in sorted(shared.MAKERS.items()):
    for test_name, test in sorted(shared.TESTS.items()):
        record[make_name + test_name] = test(make(tf.keras.optimizers.SGD(0.25)))
    for read_name, read in sorted(shared.READS.items()):
        try:
            record[make_name + read_name] = read(make(tf.keras.optimizers.SGD(0.25)))
        except (AttributeError, TypeError):
            record["errors"].append(make_name + read_name)
print(json.dumps(record))
"""
KEPT = "  # expect LS90 below"
"""Marks an import from a file where the name keeps its legacy meaning."""
SILENCE = "  # lossscale: ignore"


class Package(NamedTuple):
    """A package.

    Attributes:
      files: the sources by their paths, without `main.py` if pytest runs the files.
      runs: whether it runs on TensorFlow 2.4, which has all of its symbols.
    """

    files: Dict[str, str]
    runs: bool


class File(NamedTuple):
    """A file with legacy names.

    Attributes:
      path: its path in the package.
      style: how it reaches the symbols.
      text: its source.
      is_relative: whether it has a relative import.
      is_silenced: whether the line that binds the names of its style is silenced.
    """

    path: str
    style: Style
    text: str
    is_relative: bool
    is_silenced: bool

    @property
    def module(self) -> str:
        """The dotted name of the module."""
        return self.path[: -len(".py")].replace("/", ".")


class Maker:
    """Makes one package.

    Args:
      seed: its number.
      executable: whether it must run on TensorFlow 2.4.
    """

    def __init__(self, seed: int, executable: bool = False):
        self._chooser = random.Random(f"{seed} {executable}")
        self._executable = executable
        self._extra = {}  # type: Dict[str, str]
        self._flags = []  # type: List[str]
        self._unloaded = set()  # type: Set[str]
        layouts = ["", "pkg", "pkg/sub"] + ([] if executable else ["tests"])
        self._folder = self._chooser.choice(layouts)

    def package(self) -> Package:
        """The package."""
        files = []  # type: List[File]
        for stem in "abcd"[: self._chooser.randint(2, 4)]:
            files.append(self._file(stem, files))
            self._unloaded.add(files[-1].path)
        names = {posixpath.basename(file.path)[: -len(".py")]: file.module for file in files}
        sources = {file.path: file.text for file in files}
        folder = self._folder
        while folder and folder != "tests":
            self._extra[folder + "/__init__.py"] = ""
            folder = posixpath.dirname(folder)
        if self._folder != "tests":
            sources["main.py"] = self._main(files)
        sources.update(self._extra)
        sources["shared.py"] = SHARED.format(names=names)
        if self._flags:
            sources["flags.py"] = "import tensorflow as tf\n\n" + "\n\n".join(self._flags) + "\n"
        return Package(dict(sorted(sources.items())), self._executable)

    def _file(self, stem: str, before: List[File]) -> File:
        is_conftest = self._folder == "tests" and not before
        name = "conftest.py" if is_conftest else stem + ".py"
        path = posixpath.join(self._folder, name)
        parts = ["import tensorflow as tf", "import shared"]
        loads = self._loads(path, before) if before else []
        parts += [text for _, text in loads]
        is_relative = any(way.startswith("relative") for way, _ in loads)
        style, is_silenced = self._style(path, before)
        binding = style.lines + (SILENCE if is_silenced else "")
        parts += [binding]
        for group in self._chooser.sample(GROUPS, self._chooser.randint(2, 4)):
            fragment = self._chooser.choice(group)
            if self._executable and "contrib" in fragment:
                continue
            parts.append(self._silenced(fragment.format(x=stem, mp=style.prefix)))
        if self._chooser.random() < 0.3 and not self._executable:
            parts.append(self._guard(stem, style))
        text = "\n\n".join(filter(None, parts))
        if not style.prefix or style.prefix not in text:
            text = text.replace(KEPT, "")
        text += "".join(
            f"\nshared.{table}['{stem}'] = {function}_{stem}"
            for table, function in (("MAKERS", "make"), ("TESTS", "test"), ("READS", "read"))
            if f"def {function}_{stem}(" in text
        )
        return File(path, style, text + "\n", is_relative, is_silenced)

    def _silenced(self, fragment: str) -> str:
        """A fragment, in some cases with a comment that silences its last legacy line."""
        if self._executable or self._chooser.random() > 0.05:
            return fragment
        lines = fragment.split("\n")
        places = [number for number, line in enumerate(lines) if "LossScaleOptimizer(" in line]
        for number in places[-1:]:
            lines[number] += SILENCE
        return "\n".join(lines)

    def _style(self, path: str, before: List[File]) -> Any:
        """How the file reaches the experimental symbols, and whether that line is silenced."""
        sources = [file for file in before if file.style.names]
        if sources and self._chooser.random() < 0.3:
            source = self._chooser.choice(sources)
            names = source.style.names
            if posixpath.basename(source.path) != "conftest.py":
                self._unloaded.discard(source.path)
                line = f"from {source.module} import {names}"
                if source.is_silenced:
                    line += KEPT
                return Style(line, source.style.prefix, names), False
        style = self._chooser.choice(STYLES)
        can_be_silenced = style.lines and "\n" not in style.lines and not self._executable
        return style, bool(can_be_silenced) and self._chooser.random() < 0.05

    def _loads(self, path: str, before: List[File]) -> List[Any]:
        """How the file loads an earlier one; a test loads none through `conftest.py`."""
        if self._chooser.random() < 0.4:
            return []
        file = self._chooser.choice(before)
        if posixpath.basename(file.path) == "conftest.py":
            return []
        self._unloaded.discard(file.path)
        return [self._load(path, file)]

    def _load(self, path: str, file: File) -> Any:
        """A way to load a file, and its source."""
        ways = sorted(LOADS)
        folder = posixpath.dirname(file.path)
        if not folder:
            ways.remove("from")
        if not folder or posixpath.dirname(path) != folder or folder == "tests":
            ways = [way for way in ways if not way.startswith("relative")]
        if file.is_relative:
            ways = [way for way in ways if way not in BY_NAME]
        way = self._chooser.choice(ways)
        name = posixpath.basename(file.path)
        text = LOADS[way].format(
            module=file.module,
            package=folder.replace("/", "."),
            stem=name[: -len(".py")],
            dots=".",
            file=posixpath.relpath(file.path, posixpath.dirname(path) or "."),
            x=posixpath.basename(path)[: -len(".py")],
        )
        return way, text

    def _guard(self, stem: str, style: Style) -> str:
        """A branch that only an old TensorFlow takes, by a flag of another file or a test."""
        if self._chooser.random() < 0.7:
            test = self._chooser.choice(sorted(FLAGS))
            name = test.split(".")[0].split("(")[0].split("[")[0].split(" ")[0]
            self._flags.append(FLAGS[test])
            lines = f"from flags import {name}"
            if "version.parse" in test:
                lines += "\nfrom packaging import version"
        else:
            lines, test = self._chooser.choice(CONDITIONS)
        guard = GUARD.format(x=stem, test=test, mp=style.prefix)
        return "\n\n".join(filter(None, [lines, guard]))

    def _main(self, files: List[File]) -> str:
        """Loads the files that no other one loads, and prints what the package computes."""
        parts = ["import json", "import shared\nimport tensorflow as tf"]
        left = [file for file in files if file.path in self._unloaded]
        others = ["registry", "configured"] + ([] if self._executable else ["entry points"])
        way = self._chooser.choice(others + ["each"] * 3)
        if way == "registry":
            parts.append(REGISTRY.format(folder=self._folder))
        elif way == "configured":
            parts.append(CONFIGURED)
            modules = [file.module + ":make" for file in left]
            self._extra["modules.json"] = json.dumps({"modules": modules})
        elif way == "entry points":
            parts.append(ENTRY_POINTS)
        else:
            parts += [self._load("main.py", file)[1] for file in left]
        return "\n".join(parts) + "\n\n" + MAIN.format()


def package(seed: int, executable: bool = False) -> Package:
    """A package by its number."""
    return Maker(seed, executable).package()


def programs(count: int = 40) -> List[Dict[str, Any]]:
    """Packages that run on TensorFlow 2.4, as programs of several files."""
    return [
        {
            "name": f"package-{seed}",
            "family": "packages",
            "originals": ["2.4"],
            "files": package(seed, executable=True).files,
        }
        for seed in range(count)
    ]


if __name__ == "__main__":
    for path, text in package(int(sys.argv[1]), "--runs" in sys.argv).files.items():
        print("--- " + path)
        print(text)
