"""Programs of several files that failed after their migration, without a finding.

And a `loss_scale()` of an optimizer that another file may make; only the shim reads it both ways.
"""

import pytest
from several_files import migrate

MP = "tf.keras.mixed_precision.experimental"


SHIM = "tfls.keras.mixed_precision.experimental"
TF = "import tensorflow as tf\n"
CHECKS = f"{TF}\n\ndef is_scaled(opt):\n    return isinstance(opt, {MP}.LossScaleOptimizer)\n"
ALIAS = f"{TF}\nLSO = {MP}.LossScaleOptimizer\nKINDS = (LSO, int)\n"
OLD_OR_NEW = (
    f"{TF}\nif tf.__version__ < '2.4':\n"
    f"    from tensorflow{MP[2:]} import LossScaleOptimizer\nelse:\n"
    "    from tensorflow.keras.mixed_precision import LossScaleOptimizer\n"
)
PROGRAMS = {
    "a module that only another file reads goes to the shim": (
        {
            "compat.py": f"{TF}\nmp = {MP}\n",
            "main.py": "from compat import mp\n\nprint(mp.global_policy())\n",
        },
        {"compat.py": f"mp = {SHIM}\n", "main.py": "mp.global_policy()"},
        ["compat.py:3 LS909 safe"],
    ),
    "a class of the project is not reported where it is imported": (
        {
            "losses.py": "class FixedLossScaleManager:\n    pass\n",
            "main.py": "from losses import FixedLossScaleManager as Fixed\n\nmanager = Fixed()\n",
            "train.py": f"import main\n{TF}\no = {MP}.LossScaleOptimizer(o, 8)\n",
        },
        {},
        ["train.py:4 LS301 safe"],
    ),
    "a class that another file calls goes to the shim": (
        {
            "compat.py": f"{TF}\nLossScaleOptimizer = {MP}.LossScaleOptimizer\n",
            "amp.py": "from compat import LossScaleOptimizer\n\n\ndef made(cls, opt):\n"
            "    return cls(opt, 'dynamic')\n\n\ndef wrap(opt):\n"
            "    return made(LossScaleOptimizer, opt)\n",
        },
        {"compat.py": f"LossScaleOptimizer = {SHIM}.Loss", "amp.py": "cls(opt, 'dynamic')"},
        ["compat.py:3 LS301 safe"],
    ),
    "a policy follows the optimizers that compile makes": (
        {
            "checks.py": CHECKS,
            "main.py": f"{TF}import checks\n\n{MP}.set_policy('mixed_float16')\n"
            "model.compile('sgd', 'mse')\nprint(checks.is_scaled(model.optimizer))\n",
        },
        {"checks.py": f"{SHIM}.Loss", "main.py": f"{SHIM}.set_policy"},
        ["checks.py:5 LS301 safe"],
    ),
    "a class test of a program with both classes goes to the shim": (
        {
            "a.py": f"{TF}\n\ndef final(opt):\n"
            "    return tf.keras.mixed_precision.LossScaleOptimizer(opt)\n",
            "main.py": f"import a\n{CHECKS}\n\nprint(is_scaled(a.final(opt)))\n",
        },
        {"a.py": "tfls.keras.mixed_precision.LossScaleOptimizer", "main.py": f"{SHIM}.Loss"},
        [],
    ),
    "modules that a computed name imports are part of the program": (
        {
            "main.py": f"{TF}from plugins import load\n\n"
            f"opt = {MP}.LossScaleOptimizer(inner, 'dynamic')\nprint(load('check').test(opt))\n",
            "plugins/__init__.py": "import importlib\n\n\ndef load(name):\n"
            "    return importlib.import_module(__name__ + '.' + name)\n",
            "plugins/check.py": f"{CHECKS}\n\nkinds = {{'lso': {MP}.LossScaleOptimizer}}\n",
        },
        {"main.py": f"{SHIM}.Loss", "plugins/check.py": f"isinstance(opt, {SHIM}.Loss"},
        [],
    ),
    "an old branch goes to the shim where other files read the name": (
        {"a.py": OLD_OR_NEW, "b.py": "import a\n\nopt = a.LossScaleOptimizer(opt)\n"},
        {"a.py": f"from tf_lossscale{MP[2:]} import LossScaleOptimizer"},
        ["a.py:4 LS908 safe"],
    ),
    "a class test goes to the final class if no file sets a policy": (
        {
            "checks.py": CHECKS,
            "main.py": "import checks\n\nmodel.compile('sgd', 'mse')\nchecks.is_scaled(opt)\n",
        },
        {"checks.py": ".keras.mixed_precision.LossScaleOptimizer"},
        [],
    ),
    # On TensorFlow 2.4 to 2.8, its test of an object of the final class is False.
    "a class test keeps its class if a guard chooses the other": (
        {
            "compat.py": OLD_OR_NEW,
            "main.py": f"import compat\n{CHECKS}\n\nis_scaled(compat.LossScaleOptimizer(opt))\n",
        },
        {"main.py": f"isinstance(opt, {SHIM}."},
        [],
    ),
}
"""Files; a part of what becomes of some; some findings."""


@pytest.mark.sampled(2, each="program")
@pytest.mark.parametrize("keras", ["2", "3"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_program_of_several_files(command_line, program, keras):
    files, after, findings = PROGRAMS[program]
    result = migrate(command_line, files, "--keras", keras)
    for name, part in after.items():
        assert part in result.sources[name]
    assert set(findings) <= set(result.findings)


FLAGS = f"""\
{TF}
PRE_24 = LooseVersion(tf.__version__) < LooseVersion("2.4")
MODERN = (
    tf.__version__ >= "2.4"
)
OTHER: str = "2.4"
MAJOR, minor = map(int, tf.__version__.split(".")[:2])
HAS_CONTRIB: bool = hasattr(tf, "contrib")
if PRE_24:
    pass
elif tf.__version__ < "2.9":
    mode = "some"
try:
    from tensorflow.contrib import training
    has_training = True
except ImportError:
    pass

def fp16():
    return OTHER

def is_old():
    current = tf.__version__
    return current < "2.4"
"""


@pytest.mark.parametrize(
    ("test", "depends"),
    [
        ("OLD", True),
        ("not compat.MODERN", True),
        ("compat.is_old()", True),
        ("PRE_24", True),
        ("gpu and minor > 3", True),
        ("HAS_CONTRIB", True),
        ("mode == 'some'", True),
        ("compat.has_training", True),
        ("OTHER", False),
        ("compat.OTHER", False),
        ("compat.fp16()", False),
    ],
)
def test_flag_that_another_file_makes_of_the_version(command_line, test, depends):
    main = (
        f"{TF}import compat\nfrom compat import PRE_24 as OLD\nfrom flags import *\nif {test}:\n"
        f"    opt = {MP}.LossScaleOptimizer(opt, 'dynamic')\n"
    )
    files = {"compat.py": FLAGS, "flags.py": "from compat import *\n", "main.py": main}
    result = migrate(command_line, files, "--to", "shim")
    assert ("main.py:6 LS908 manual" in result.findings) == depends


def test_function_that_another_file_reads_from_the_file_that_imports_it(command_line):
    files = {
        "compat.py": f"import tensorflow\nfrom tensorflow{MP[2:]} import set_policy\n",
        "main.py": "import compat\n\ncompat.set_policy('mixed_float16')\n",
    }
    result = migrate(command_line, files)
    name = result.sources["main.py"].split("\n")[2].partition("(")[0].rpartition(".")[2]
    is_moved = "compat." not in result.sources["main.py"]
    assert is_moved or name in result.sources["compat.py"]


def test_name_that_a_package_re_exports_is_not_reported(command_line):
    files = {
        "amp/wrap.py": f"from tensorflow{MP[2:]} import LossScaleOptimizer\n",
        "amp/__init__.py": "from .wrap import LossScaleOptimizer\n",
        "amp/loop.py": "from . import LossScaleOptimizer\n\nLossScaleOptimizer(opt, 8)\n",
        "amp/steps/one.py": "from .. import LossScaleOptimizer\n\nLossScaleOptimizer(opt, 8)\n",
    }
    result = migrate(command_line, files, "--to", "shim")
    assert result.findings == ["amp/wrap.py:1 LS301 safe"]


@pytest.mark.sampled(3, each="main")
@pytest.mark.parametrize(
    ("main", "line"),
    [
        ("from losses import LSO\n\nprint(type(opt) is LSO)\n", 3),
        ("import losses\n\nprint(type(opt) == losses.LSO)\n", 3),
        ("from losses import LSO as L\n\nprint(opt.__class__ in (int, L))\n", 3),
    ],
)
@pytest.mark.parametrize("to", [("--to", "shim"), ("--keras", "2"), ("--keras", "3")])
def test_class_that_another_file_tests_under_a_name_of_its_own_is_reported(
    command_line, main, line, to
):
    files = {"losses.py": ALIAS, "main.py": main, "setup.py": f"{MP}.set_policy('mixed_float16')"}
    result = migrate(command_line, files, *to)
    assert result.findings.count(f"losses.py:{line} LS301 manual") == 1


OPTIM = """\
import tensorflow as tf


def build(fp16=True):
    opt = tf.keras.optimizers.SGD()
    if fp16:
        opt = tf.keras.mixed_precision.experimental.LossScaleOptimizer(opt, "dynamic")
    return opt
"""
LOG = "def show(opt, step=0):\n    print(step, opt.loss_scale())\n"
MAIN = (
    "from log import show\nfrom optim import build\n\nopt = build()\nshow(opt)\nshow(opt, step=1)\n"
)
FILES = {
    "the result of a function": {
        "use.py": "from optim import build\n\nprint(build().loss_scale())\n",
    },
    "an argument": {"log.py": LOG, "use.py": MAIN},
    "a function that nothing calls": {"log.py": LOG, "use.py": "import optim\nimport log\n"},
}
"""The files beside the one that makes the optimizer; one of them calls `loss_scale()`."""


@pytest.mark.sampled(3, each="case")
@pytest.mark.parametrize("options", [("--to", "shim"), ("--keras", "2"), ("--keras", "3")])
@pytest.mark.parametrize("case", FILES)
def test_an_optimizer_of_another_file(case, options, command_line):
    """The program goes to the shim, which reads the loss scale both ways."""
    done = migrate(command_line, {"optim.py": OPTIM, **FILES[case]}, *options)
    assert sum("loss_scale()" in text for text in done.sources.values()) == 1
    assert f"{SHIM}.LossScaleOptimizer" in done.sources["optim.py"]
    assert not [finding for finding in done.findings if finding.endswith("manual")]


def test_without_a_loss_scale_optimizer_nothing_is_reported(command_line):
    optim = "import tensorflow as tf\n\n\ndef build():\n    return tf.keras.optimizers.SGD()\n"
    done = migrate(command_line, {"optim.py": optim, "log.py": LOG, "use.py": MAIN})
    assert done.findings == []
