"""Programs of several files that failed after their migration, without a finding.

And a `loss_scale()` of an optimizer that another file may make: it is reported, and left.
"""

import pytest
from several_files import migrate

MP = "tf.keras.mixed_precision.experimental"


def test_function_that_another_file_reads_from_the_file_that_imports_it(command_line):
    files = {
        "compat.py": f"import tensorflow\nfrom tensorflow{MP[2:]} import set_policy\n",
        "main.py": "import compat\n\ncompat.set_policy('mixed_float16')\n",
    }
    result = migrate(command_line, files)
    name = result.sources["main.py"].split("\n")[2].partition("(")[0].rpartition(".")[2]
    is_moved = "compat." not in result.sources["main.py"]
    assert is_moved or name in result.sources["compat.py"]


def test_module_that_only_another_file_reads_goes_to_the_shim(command_line):
    files = {
        "compat.py": f"import tensorflow as tf\n\nmp = {MP}\n",
        "main.py": "from compat import mp\n\nprint(mp.global_policy())\n",
    }
    result = migrate(command_line, files)
    assert "mp = tfls.keras.mixed_precision.experimental" in result.sources["compat.py"]
    assert result.sources["main.py"] == files["main.py"]
    assert result.findings == ["compat.py:3 LS909 safe"]


def test_class_of_the_project_itself_is_not_reported_where_it_is_imported(command_line):
    files = {
        "losses.py": "class FixedLossScaleManager:\n    pass\n",
        "main.py": "from losses import FixedLossScaleManager as Fixed\n\nmanager = Fixed()\n",
        "train.py": f"import main\nimport tensorflow as tf\n\no = {MP}.LossScaleOptimizer(o, 8)\n",
    }
    result = migrate(command_line, files)
    assert result.findings == ["train.py:4 LS301 safe"]


def test_class_that_another_file_calls_goes_to_the_shim(command_line):
    files = {
        "compat.py": f"import tensorflow as tf\n\nLossScaleOptimizer = {MP}.LossScaleOptimizer\n",
        "amp.py": (
            "from compat import LossScaleOptimizer\n\n\ndef made(cls, opt):\n"
            "    return cls(opt, 'dynamic')\n\n\ndef wrap(opt):\n"
            "    return made(LossScaleOptimizer, opt)\n"
        ),
    }
    result = migrate(command_line, files)
    assert "= tfls.keras.mixed_precision.experimental.Loss" in result.sources["compat.py"]
    assert result.sources["amp.py"] == files["amp.py"]
    assert result.findings == ["compat.py:3 LS301 safe"]


def test_policy_of_another_file_follows_the_optimizers_that_compile_makes(command_line):
    files = {
        "checks.py": f"import tensorflow as tf\n\n\ndef is_scaled(opt):\n"
        f"    return isinstance(opt, {MP}.LossScaleOptimizer)\n",
        "main.py": f"import tensorflow as tf\nimport checks\n\n{MP}.set_policy('mixed_float16')\n"
        "model.compile('sgd', 'mse')\nprint(checks.is_scaled(model.optimizer))\n",
    }
    result = migrate(command_line, files)
    assert "tfls.keras.mixed_precision.experimental.Loss" in result.sources["checks.py"]
    assert "tfls.keras.mixed_precision.experimental.set_policy" in result.sources["main.py"]
    assert "checks.py:5 LS301 manual" in result.findings


def test_class_test_of_a_program_with_both_classes_goes_to_the_shim(command_line):
    files = {
        "a.py": "import tensorflow as tf\n\n\ndef final(opt):\n"
        "    return tf.keras.mixed_precision.LossScaleOptimizer(opt)\n",
        "main.py": f"import tensorflow as tf\nimport a\n\n\ndef kind(opt):\n"
        f"    return isinstance(opt, {MP}.LossScaleOptimizer)\n\n\nprint(kind(a.final(opt)))\n",
    }
    result = migrate(command_line, files)
    assert "tfls.keras.mixed_precision.LossScaleOptimizer" in result.sources["a.py"]
    assert "tfls.keras.mixed_precision.experimental.Loss" in result.sources["main.py"]


def test_modules_that_a_computed_name_imports_are_part_of_the_program(command_line):
    (command_line.path("plugins")).mkdir()
    files = {
        "main.py": f"import tensorflow as tf\nfrom plugins import load\n\n"
        f"opt = {MP}.LossScaleOptimizer(inner, 'dynamic')\nprint(load('check').test(opt))\n",
        "plugins/__init__.py": "import importlib\n\n\ndef load(name):\n"
        "    return importlib.import_module(__name__ + '.' + name)\n",
        "plugins/check.py": "import tensorflow as tf\n\n"
        f"kinds = {{'lso': {MP}.LossScaleOptimizer}}\n\n\n"
        f"def test(opt):\n    return isinstance(opt, {MP}.LossScaleOptimizer)\n",
    }
    result = migrate(command_line, files)
    for name in ("main.py", "plugins/check.py"):
        assert "tfls.keras.mixed_precision.experimental.LossScaleOptimizer" in result.sources[name]


def test_old_branch_stays_where_other_files_read_the_name(command_line):
    files = {
        "a.py": "import tensorflow as tf\n\nif tf.__version__ < '2.4':\n"
        f"    from tensorflow{MP[2:]} import LossScaleOptimizer\nelse:\n"
        "    from tensorflow.keras.mixed_precision import LossScaleOptimizer\n",
        "b.py": "import a\n\nopt = a.LossScaleOptimizer(opt)\n",
    }
    result = migrate(command_line, files, "--keras", "3")
    assert f"from tensorflow{MP[2:]} import LossScaleOptimizer" in result.sources["a.py"]
    assert "a.py:4 LS908 manual" in result.findings


def test_attributes_of_tensorflow_are_not_read_from_another_file(command_line):
    final = "tensorflow.keras.mixed_precision"
    files = {
        "model.py": f"from {final} import experimental as mixed_precision\n\n"
        "mixed_precision.set_policy('mixed_float16')\n",
        "train.py": f"import tensorflow as tf\nfrom {final}.experimental import global_policy\n"
        "import model\n\nscale = tf.mixed_precision.experimental.DynamicLossScale()\n"
        "model.fit(scale, global_policy())\n",
    }
    result = migrate(command_line, files)
    assert "model.py:1 LS909 safe" not in result.findings
    assert "mixed_precision.set_global_policy" in result.sources["model.py"]


def test_class_test_goes_to_the_final_class_if_no_file_sets_a_policy(command_line):
    files = {
        "checks.py": f"import tensorflow as tf\n\n\ndef is_scaled(opt):\n"
        f"    return isinstance(opt, {MP}.LossScaleOptimizer)\n",
        "main.py": "import checks\n\nmodel.compile('sgd', 'mse')\nchecks.is_scaled(opt)\n",
    }
    result = migrate(command_line, files)
    assert "tf.keras.mixed_precision.LossScaleOptimizer" in result.sources["checks.py"]


ALIAS = f"import tensorflow as tf\n\nLSO = {MP}.LossScaleOptimizer\nKINDS = (LSO, int)\n"


@pytest.mark.parametrize(
    ("main", "line"),
    [
        ("from losses import LSO\n\nprint(type(opt) is LSO)\n", 3),
        ("import losses\n\nprint(type(opt) == losses.LSO)\n", 3),
        ("from losses import LSO as L\n\nprint(opt.__class__ in (int, L))\n", 3),
        ("from losses import LSO\n\nmodel.compile()\nprint(isinstance(opt, LSO))\n", 3),
        ("from losses import KINDS as K\n\nmodel.compile()\nprint(isinstance(opt, K))\n", 4),
    ],
)
@pytest.mark.parametrize("to", [("--to", "shim"), ("--keras", "2"), ("--keras", "3")])
def test_class_that_another_file_tests_under_a_name_of_its_own_is_reported(
    command_line, main, line, to
):
    files = {"losses.py": ALIAS, "main.py": main, "setup.py": f"{MP}.set_policy('mixed_float16')"}
    result = migrate(command_line, files, *to)
    # Its type may be compared; and a test may get what `compile` makes of the other class.
    expected = 2 if "compile" in main else 1
    assert result.findings.count(f"losses.py:{line} LS301 manual") == expected


def test_class_that_is_compared_through_a_package_is_reported(command_line):
    package = command_line.path("amp")
    package.mkdir()
    files = {
        "amp/wrap.py": ALIAS,
        "amp/__init__.py": "from .wrap import LSO\n",
        "main.py": "import amp\n\nprint(type(opt) is amp.LSO)\n",
    }
    result = migrate(command_line, files, "--to", "shim")
    assert "amp/wrap.py:3 LS301 manual" in result.findings


@pytest.mark.parametrize("keras", ["2", "3"])
def test_class_test_keeps_the_experimental_class_if_a_guard_chooses_the_other(command_line, keras):
    """On TensorFlow 2.4 to 2.8, its test of an object of the final class is False."""
    files = {
        "compat.py": "import tensorflow as tf\n\nif tf.__version__ < '2.4':\n"
        f"    from {MP.replace('tf', 'tensorflow', 1)} import LossScaleOptimizer\n"
        "else:\n    from tensorflow.keras.mixed_precision import LossScaleOptimizer\n",
        "main.py": "import tensorflow as tf\n\nimport compat\n\n"
        f"opt = compat.LossScaleOptimizer(opt)\nprint(isinstance(opt, {MP}.LossScaleOptimizer))\n",
    }
    main = migrate(command_line, files, "--keras", keras).sources["main.py"]
    assert "isinstance(opt, tfls.keras.mixed_precision.experimental." in main


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


@pytest.mark.parametrize("options", [("--to", "shim"), ("--keras", "2"), ("--keras", "3")])
@pytest.mark.parametrize("case", FILES)
def test_an_optimizer_of_another_file(case, options, command_line):
    done = migrate(command_line, {"optim.py": OPTIM, **FILES[case]}, *options)
    assert sum("loss_scale()" in text for text in done.sources.values()) == 1
    (left,) = [one for one in done.findings if "LS302" in one]
    assert left.endswith("manual")


def test_without_a_loss_scale_optimizer_nothing_is_reported(command_line):
    optim = "import tensorflow as tf\n\n\ndef build():\n    return tf.keras.optimizers.SGD()\n"
    done = migrate(command_line, {"optim.py": optim, "log.py": LOG, "use.py": MAIN})
    assert done.findings == []
