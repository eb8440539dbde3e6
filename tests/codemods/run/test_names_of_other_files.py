"""What a file gets from another one: modules that a function returns, flags of the version."""

import pytest
from several_files import migrate

CONTRIB = """\
import tensorflow as tf


def mixed_precision():
    from tensorflow.contrib import mixed_precision as module
    return module{silence}


def tpu():
    from tensorflow.contrib import tpu as module
    return module
"""
MANAGER = """\
import contrib

manager = contrib.mixed_precision().FixedLossScaleManager(8)
optimizer = contrib.mixed_precision().LossScaleOptimizer(opt, manager)
"""
SHARD = "from contrib import tpu\n\nopt = tpu().CrossShardOptimizer(opt)\n"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("options", [["--to", "shim"], ["--keras", "2"], ["--keras", "3"]])
def test_a_module_that_a_function_returns_is_followed_if_it_is_renamed_whole(command_line, options):
    """As in tensorflow/tensor2tensor; `contrib.tpu` has other names, too, and keeps its own."""
    files = {"contrib.py": CONTRIB.format(silence=""), "wrap.py": MANAGER, "shard.py": SHARD}
    result = migrate(command_line, files, *options)
    assert "from tf_lossscale.contrib import mixed_precision" in result.sources["contrib.py"]
    manual = [text for text in result.findings if text.endswith("manual")]
    assert manual == ["contrib.py:11 LS909 manual", "shard.py:3 LS902 manual"]


def test_a_module_that_stays_is_reported_where_it_is_read(command_line):
    silence = "  # lossscale: ignore[LS909] for 1.15"
    source = CONTRIB.format(silence="").replace("as module\n    return module", "as module", 1)
    source = source.replace("mixed_precision as module\n", f"mixed_precision as module{silence}\n")
    source = source.replace(silence + "\n", f"{silence}\n    return module\n")
    result = migrate(command_line, {"contrib.py": source, "wrap.py": MANAGER})
    assert "from tensorflow.contrib import mixed_precision" in result.sources["contrib.py"]
    assert "wrap.py:3 LS902 manual" in result.findings


@pytest.mark.parametrize(
    ("text", "is_on_shim"),
    [("", True), ("x = eval(args.x)\n", False), ("x = eval('f(mp)')\n", True)],
    ids=["no text", "a text that may read it", "a text that reads it"],
)
def test_a_module_that_is_only_imported(command_line, text, is_on_shim):
    """A second run, which finds the module of the shim, decides as the first one."""
    module = "from tensorflow.keras.mixed_precision import experimental as mp\n"
    files = {
        "a.py": f"{module}\npolicy = mp.Policy('mixed_float16')\n",
        "b.py": f"import a\n{module}\n{text}",
    }
    after = migrate(command_line, files, "--keras", "2").sources
    assert ("tf_lossscale" in after["a.py"]) is is_on_shim


def test_a_module_that_only_another_file_reads(command_line):
    """A file that imports the final module for others is a part of their program."""
    used = (
        "import tensorflow as tf\nfrom compat import mixed_precision\n\n"
        "opt = mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD())\n"
        "opt.get_scaled_loss(loss)\n"
    )
    files = {"compat.py": "from tensorflow.keras import mixed_precision\n", "train.py": used}
    result = migrate(command_line, files, "--keras", "3")
    assert result.sources["compat.py"] == "from tf_lossscale.keras import mixed_precision\n"


@pytest.mark.parametrize(
    ("folder", "reader"),
    [("keras", "from keras import wrap\n"), (".", "from keras.utils import wrap\n")],
    ids=["a folder called keras", "a module of the same name"],
)
def test_names_that_are_read_through_a_path_of_keras(command_line, folder, reader):
    made = (
        "import tensorflow as tf\n\nmp = tf.keras.mixed_precision.experimental\n"
        "opt = mp.LossScaleOptimizer(tf.keras.optimizers.SGD(1.0), 'dynamic')\n"
    )
    files = {f"{folder}/wrap.py": made, "main.py": f"{reader}print(wrap.mp.Policy)\n"}
    result = migrate(command_line, files, "--keras", "2")
    assert "mp = tfls.keras" in result.sources[f"{folder}/wrap.py"]


def test_a_class_in_a_file_without_a_place(command_line):
    own = "CONFIG = {'mixed_precision': True}\n\n\nclass LossScaleOptimizer:\n    pass\n"
    used = "from own import LossScaleOptimizer\n\nopt = LossScaleOptimizer(1)\n"
    assert migrate(command_line, {"own.py": own, "use.py": used}).findings == []


def test_a_file_that_names_no_class_is_not_searched_for_what_it_does_to_an_optimizer(command_line):
    made = "import tensorflow as tf\n\nopt = tf.keras.mixed_precision.experimental."
    made += "LossScaleOptimizer(tf.keras.optimizers.SGD(), 'dynamic')\n"
    uses = "opt.momentum = 0.5\n"
    found = migrate(command_line, {"made.py": made + uses}).findings
    assert any("LS305" in finding for finding in found)
    files = {"made.py": made, "uses.py": "from made import opt\n\n" + uses}
    assert not any("LS305" in finding for finding in migrate(command_line, files).findings)


FLAG = """\
import tensorflow as tf
{imports}
if {flag}:
    tf.keras.mixed_precision.experimental.set_policy("mixed_float16")
else:
    tf.keras.mixed_precision.set_global_policy("mixed_float16")
"""


@pytest.mark.parametrize(
    ("made", "is_text"),
    [
        ("tf.__version__ < '2.4'", True),
        ("(lambda v: v)(tf.__version__ < '2.4')", True),
        ("tf.__version__[:3] in ('2.1', '2.2', '2.3')", True),
        ("int(tf.__version__.split('.')[1]) < 4", False),
    ],
)
@pytest.mark.parametrize("way", ["import compat", "from compat import OLD", "import through"])
def test_a_flag_elsewhere_that_compares_text_is_noted(command_line, made, is_text, way):
    flag = {"import compat": "compat.OLD", "import through": "through.old"}.get(way, "OLD")
    files = {
        "compat.py": f"import tensorflow as tf\n\nOLD = {made}\n",
        "through.py": "import compat\n\nold = not (not compat.OLD)\n",
        "main.py": FLAG.format(imports=way, flag=flag),
    }
    result = migrate(command_line, files)
    assert ("main.py:3 LS913 manual" in result.findings) is is_text
    assert ("where this is made" in result.messages) is is_text


OLD = "import tensorflow as tf\n\nOLD = int(tf.__version__.split('.')[1]) < 4\n"
BRANCH = """\
{imports}
import tensorflow as tf

if {flag}:
    opt = tf.keras.mixed_precision.experimental.LossScaleOptimizer(opt, "dynamic")
"""
PASSED = """\
import tensorflow as tf
{imports}

class Trainer:
    def __init__(self, opt, old):
        self.opt = opt
        if old:
            self.opt = tf.keras.mixed_precision.experimental.LossScaleOptimizer(opt, "dynamic")

    def plain(self, is_old):
        if is_old:
            self.opt = tf.keras.mixed_precision.experimental.LossScaleOptimizer(self.opt, 8)


{call}
"""
FLAGS_ELSEWHERE = {
    "the package around": ("pkg/__init__.py", "", "from . import OLD", "OLD"),
    "all of the package around": ("pkg/__init__.py", "", "from .  import *", "OLD"),
    "the package of another module": ("pkg/__init__.py", "", "import pkg", "pkg.OLD"),
    "another name in a file": ("flags.py", "import flags as it", "from middle import it", "it.OLD"),
    "its name in a file": ("flags.py", "import flags", "import middle", "middle.flags.OLD"),
    "all names in a file": ("flags.py", "from flags import *", "import middle", "middle.OLD"),
    "a module of all names": ("flags.py", "import flags", "from middle import *", "flags.OLD"),
    "TensorFlow in a file": ("flags.py", "", "import flags", "flags.tf.__version__ < '2.04'"),
    "getattr": ("flags.py", "", "import flags", "getattr(flags, 'OLD', True)"),
    "getattr of a name": ("flags.py", "", "import flags\nname = 'OLD'", "getattr(flags, name)"),
    "hasattr": ("flags.py", "", "import flags", "hasattr(flags, 'OLD')"),
    "import_module": (
        "flags.py", "", "import importlib\nit = importlib.import_module('flags')", "it.OLD"
    ),
    "sys.modules": ("flags.py", "", "import sys, flags", "sys.modules['flags'].OLD"),
}  # fmt: skip


@pytest.mark.sampled(6)
@pytest.mark.parametrize("options", [["--to", "shim"], ["--keras", "2"], ["--keras", "3"]])
@pytest.mark.parametrize("way", FLAGS_ELSEWHERE)
def test_a_flag_is_followed_in_every_way_to_read_it(command_line, options, way):
    """Without a finding, nobody sees that nothing scales the loss after the upgrade."""
    place, middle, imports, flag = FLAGS_ELSEWHERE[way]
    main = "pkg/main.py" if imports.startswith("from .") else "main.py"
    files = {
        place: OLD,
        "middle.py": f"{middle}\n",
        main: BRANCH.format(imports=imports, flag=flag),
    }
    assert "LS908 manual" in str(migrate(command_line, files, *options).findings)
    files[place] = OLD.replace("int(tf.__version__.split('.')[1]) < 4", "False")
    is_made_of_version = "__version__" in flag
    found = str(migrate(command_line, files, *options).findings)
    assert ("LS908 manual" in found) is is_made_of_version


NEW = "int(tf.__version__.split('.')[1]) < 4"
READ = """\
import tensorflow as tf
{imports}

def run(opt, old=None, others=()):
    if {flag}:
        opt = tf.keras.mixed_precision.experimental.LossScaleOptimizer(opt, "dynamic")


class Trainer:
    old = None

    def __init__(self, opt, old=None):
        self.optimizer, self.flag = opt, old

    def run(self):
        if self.flag or self.old:
            return tf.keras.mixed_precision.experimental.LossScaleOptimizer(self.optimizer, 8)
"""
HANDED_ON = {
    "a keyword": ("import read\nread.run(opt, old={})", "", "old"),
    "an argument": ("from read import run\nrun(opt, {})", "", "old"),
    "a keyword of a constructor": ("from read import Trainer\nTrainer(opt, old={})", "", "False"),
    "an argument of a constructor": ("from read import Trainer\nTrainer(opt, {})", "", "False"),
    "a subclass": ("from read import Trainer\nclass T(Trainer):\n    old = {}", "", "False"),
    "a module": ("import config\nconfig.old = {}", "import config", "config.old"),
    "an object": ("import config\nconfig.c.old = {}", "from config import c", "c.old"),
    "setattr": ("import config\nsetattr(config, 'old', {})", "import config", "config.old"),
    "a key": ("import config\nconfig.c['old'] = {}", "from config import c", "c['old']"),
    "a dictionary": ("import read\nread.run({{'old': {}}})", "", "opt.get('old')"),
    "a variable before": ("import config\nx = {}\nconfig.old = x", "import config", "config.old"),
    "a function before": (
        "import config\ndef f():\n    return {}\nconfig.old = f()", "import config", "config.old"
    ),
    "the environment": (
        "import os, read\nos.environ['OLD'] = str({})", "import os", "os.environ.get('OLD')"
    ),
    "an option": (
        "import argparse, read\nargparse.ArgumentParser().add_argument('--my-old', default={})",
        "from main import args", "args.my_old",
    ),
}  # fmt: skip


@pytest.mark.sampled(6)
@pytest.mark.parametrize("options", [["--to", "shim"], ["--keras", "2"], ["--keras", "3"]])
@pytest.mark.parametrize("way", HANDED_ON)
def test_a_flag_is_found_where_another_file_hands_it_on(command_line, options, way):
    """Only its name tells where it is read."""
    giver, imports, flag = HANDED_ON[way]
    files = {"config.py": "old = c = None\n", "read.py": READ.format(imports=imports, flag=flag)}
    for value in ("False", NEW):
        files["main.py"] = f"import tensorflow as tf\n{giver.format(value)}\n"
        found = str(migrate(command_line, files, *options).findings)
        assert ("LS908 manual" in found) is (value == NEW)


IN_ONE_FILE = {
    "an option": "import argparse\np = argparse.ArgumentParser()\n"
    "p.add_argument('--old', default={})\nold = p.parse_args().old",
    "setattr": "class C:\n    pass\nsetattr(C, 'old', {})\nold = C.old",
    "a key": "c = {{}}\nc.update(old={})\nold = c['old']",
    "a loop": "for old in [{}]:\n    pass",
    "a with": "with contextlib.nullcontext({}) as old:\n    pass",
    "a function in a branch": "if {}:\n    def f():\n        return True\nelse:\n"
    "    def f():\n        return False\nold = f()",
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("options", [["--to", "shim"], ["--keras", "2"], ["--keras", "3"]])
@pytest.mark.parametrize("way", IN_ONE_FILE)
def test_a_flag_is_found_in_one_file(command_line, options, way):
    for value in ("False", NEW):
        main = BRANCH.format(imports="import tensorflow as tf", flag="old").replace(
            "\n\nif", f"\n{IN_ONE_FILE[way].format(value)}\nif"
        )
        found = str(migrate(command_line, {"main.py": main}, *options).findings)
        assert ("LS908 manual" in found) is (value == NEW)


@pytest.mark.sampled(3, each="call")
@pytest.mark.parametrize("options", [["--to", "shim"], ["--keras", "2"], ["--keras", "3"]])
@pytest.mark.parametrize(
    ("call", "lines"),
    [
        ("Trainer(opt, flags.OLD)", [9]),
        ("Trainer(old=flags.OLD, opt=opt)", [9]),
        ("Trainer(opt, False).plain(flags.OLD)", [13]),
        ("Trainer(opt, False).plain(is_old=flags.OLD)", [13]),
        ("if flags.OLD:\n    Trainer(opt, True)", [9, 13]),
        ("Trainer(*flags.OLD)", []),
        ("Trainer(flags.OLD, False).plain(False)", []),
    ],
)
def test_a_flag_is_followed_into_a_parameter(command_line, options, call, lines):
    files = {"flags.py": OLD, "main.py": PASSED.format(imports="import flags\n", call=call)}
    found = [text for text in migrate(command_line, files, *options).findings if "LS908" in text]
    assert found == [f"main.py:{line} LS908 manual" for line in lines]


STAR = "from compat import *\n\nopt = {}(opt, 'dynamic')\n"


@pytest.mark.sampled(3, each="use")
@pytest.mark.parametrize("options", [["--to", "shim"], ["--keras", "2"], ["--keras", "3"]])
@pytest.mark.parametrize(
    "use", ["LossScaleOptimizer", "mp.LossScaleOptimizer", "keras.mixed_precision.experimental.X"]
)
def test_a_name_of_a_star_import_is_followed_into_its_file(command_line, options, use):
    compat = (
        "from tensorflow.keras.mixed_precision import experimental as mp\n"
        "from tensorflow.keras.mixed_precision.experimental import LossScaleOptimizer\n"
    )
    use = use.replace(".X", ".LossScaleOptimizer")
    result = migrate(command_line, {"compat.py": compat, "main.py": STAR.format(use)}, *options)
    is_bound = not use.startswith("keras")
    assert ("main.py:3 LS901 manual" in result.findings) is not is_bound
    assert "tf_lossscale" in result.sources["compat.py"]


MODULE = "from tensorflow.keras.mixed_precision import experimental as mp\n"
NAMES = """\
from tensorflow.keras.mixed_precision.experimental import LossScaleOptimizer, set_policy
"""
TARGETS = [["--to", "shim"], ["--keras", "2"], ["--keras", "3"]]


@pytest.mark.sampled(3, each="imports")
@pytest.mark.parametrize("options", TARGETS)
@pytest.mark.parametrize(
    ("compat", "imports", "use"),
    [
        (MODULE, "from compat import mp", "mp.LossScaleOptimizer(opt, 'dynamic')"),
        (MODULE, "import compat", "compat.mp.set_policy('mixed_float16')"),
        (NAMES, "from compat import LossScaleOptimizer", "LossScaleOptimizer(opt, 'dynamic')"),
        (NAMES, "from compat import set_policy as start", "start('mixed_float16')"),
        (NAMES, "from compat import *", "set_policy('mixed_float16')"),
    ],
)
@pytest.mark.parametrize("test", ["tf.__version__.startswith('1.')", "hasattr(opt, '_hyper')"])
def test_a_branch_with_a_name_of_another_file_is_reported(
    command_line, options, compat, imports, use, test
):
    """Once the name is the shim's, nothing else shows that nothing scales the loss any more."""
    main = f"import tensorflow as tf\n{imports}\n\nif {test}:\n    opt = {use}\n"
    result = migrate(command_line, {"compat.py": compat, "main.py": main}, *options)
    assert "main.py:5 LS908 manual" in result.findings


@pytest.mark.sampled(3, each="name")
@pytest.mark.parametrize("options", TARGETS)
@pytest.mark.parametrize("name", ["LossScaleOptimizer", "Policy"])
def test_a_class_that_the_project_defines_needs_no_finding_in_a_branch(command_line, options, name):
    files = {
        "compat.py": f"class {name}:\n    pass\n",
        "main.py": f"import tensorflow as tf\nfrom compat import {name}\n\n"
        f"if tf.__version__.startswith('1.'):\n    opt = {name}(opt)\n",
    }
    assert "LS908" not in str(migrate(command_line, files, *options).findings)


@pytest.mark.sampled(3, each="imports")
@pytest.mark.parametrize("options", TARGETS)
@pytest.mark.parametrize(
    ("compat", "imports", "use"),
    [
        (f"{MODULE[:-1]}  # lossscale: ignore\n", "from compat import mp", "mp.set_policy"),
        (f"{NAMES[:-1]}  # lossscale: ignore\n", "import compat", "compat.set_policy"),
        (f"{NAMES[:-1]}  # lossscale: ignore\n", "from compat import set_policy", "set_policy"),
        (
            f"{MODULE}\n\ndef policy():\n    return mp.Policy('float32')  # lossscale: ignore\n",
            "from compat import mp",
            "mp.LossScaleOptimizer",
        ),
    ],
)
def test_a_name_that_keeps_its_legacy_meaning_is_reported_where_it_is_read(
    command_line, options, compat, imports, use
):
    """Common names such as `set_policy`, too; one silenced use keeps the import of all others."""
    main = f"{imports}\n\nvalue = {use}\n"
    result = migrate(command_line, {"compat.py": compat, "main.py": main}, *options)
    assert result.sources["compat.py"] == compat
    expected = {"main.py:1 LS903 manual", "main.py:3 LS903 manual"}
    assert not expected.isdisjoint(result.findings)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("options", TARGETS)
def test_a_silenced_import_decides_in_the_first_run_as_in_the_second(command_line, options):
    """Its uses move to the shim, and then nothing in the file reads it; found by package 692."""
    files = {
        "a.py": f"{MODULE}\nmp.set_policy('float32')\n",
        "c.py": f"import a\n{MODULE[:-1]}  # lossscale: ignore\n\n"
        "class Mine(mp.LossScaleOptimizer):\n    pass\n",
    }
    after = migrate(command_line, files, *options).sources["a.py"]
    assert "tf_lossscale.keras.mixed_precision import experimental" in after


@pytest.mark.parametrize("options", TARGETS)
@pytest.mark.parametrize(
    "use", ["print(a.mixed_precision.global_policy())", "print getattr(a, name)  # Python 2"]
)
def test_an_import_that_others_read_keeps_its_module(command_line, options, use):
    """`from tensorflow import keras as mixed_precision` would be another module for `main`."""
    files = {
        "a.py": "from tensorflow.keras import mixed_precision\n\n"
        "policy = mixed_precision.experimental.Policy('float32')\n",
        "main.py": f"import a\n\n{use}\n",
    }
    after = migrate(command_line, files, *options).sources["a.py"]
    assert ".keras import mixed_precision\n" in after


V1_MODULE = "from tensorflow.compat.v1.train import experimental\n"
READING_V1_MODULE = f"{V1_MODULE}\nscale = experimental.DynamicLossScale()\n"
"""The current loss scale is in another module."""


@pytest.mark.parametrize(
    "use", ["print(a.experimental.StepCounter)", "print getattr(a, name)  # Python 2"]
)
def test_a_module_that_others_read_keeps_its_name(command_line, use):
    files = {"a.py": READING_V1_MODULE, "main.py": f"import a\n\n{use}\n"}
    after = migrate(command_line, files, "--keras", "2").sources["a.py"]
    assert after.startswith(V1_MODULE)
    assert "mixed_precision.DynamicLossScale" in after


@pytest.mark.parametrize(
    "statement", ["from pkg import (  # )\n    a,\n)", "import pkg, \\\n    a"]
)
def test_the_imports_of_python_2_may_go_on_in_the_next_lines(command_line, statement):
    """A file that cannot be parsed may read each name of what it imports."""
    files = {
        "pkg/__init__.py": "",
        "pkg/a.py": READING_V1_MODULE,
        "main.py": f"{statement}\n\nprint getattr(a, name)\n",
    }
    after = migrate(command_line, files, "--keras", "2").sources["pkg/a.py"]
    assert after.startswith(V1_MODULE)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("options", TARGETS)
def test_the_entry_points_of_a_setup_belong_to_one_program(command_line, options):
    """What loads them is not in the run; one can make an optimizer, and another one test it."""
    path = "tf.keras.mixed_precision.experimental.LossScaleOptimizer"
    files = {
        "setup.py": "from setuptools import setup\n\nsetup(entry_points={'trainer': "
        "['amp = make:wrap', 'test = inspect_it:is_scaled']})\n",
        "make.py": "import tensorflow as tf\n\n\n"
        f"def wrap(opt, scale):\n    return {path}(opt, scale)\n",
        "inspect_it.py": f"import tensorflow as tf\n\n\nclass Mine({path}):\n    pass\n\n\n"
        f"def is_scaled(opt):\n    return isinstance(opt, {path})\n",
    }
    after = migrate(command_line, files, *options).sources
    assert "tfls.keras.mixed_precision.experimental.Loss" in after["inspect_it.py"]
    assert "tfls.keras.mixed_precision.experimental.Loss" in after["make.py"]


TPU = """\
from tensorflow.contrib import tpu


def wrap(opt):
    return tpu.CrossShardOptimizer(opt)
"""
READERS = {
    "the package around": {"pkg/__init__.py": TPU, "pkg/main.py": "from . import tpu"},
    "all of the package around": {"pkg/__init__.py": TPU, "pkg/main.py": "from . import *"},
    "two packages above": {
        "pkg/__init__.py": TPU,
        "pkg/sub/__init__.py": "",
        "pkg/sub/main.py": "from .. import tpu",
    },
    "the package around, in Python 2": {
        "pkg/__init__.py": TPU,
        "pkg/main.py": "from . import tpu\nprint tpu",
    },
    "a file that imports all of it": {
        "pkg/hidden.py": TPU,
        "pkg/__init__.py": "from .hidden import *",
        "main.py": "from pkg import tpu",
    },
    "two such files": {
        "pkg/hidden.py": TPU,
        "pkg/middle.py": "from .hidden import *",
        "pkg/__init__.py": "from .middle import *",
        "main.py": "import pkg\n\ntpu = pkg.tpu",
    },
    "another name in another file": {
        "hidden.py": TPU,
        "middle.py": "import hidden as it",
        "main.py": "from middle import it\n\ntpu = it.tpu",
    },
    "another name in a package": {
        "pkg/hidden.py": TPU,
        "pkg/__init__.py": "from . import hidden as it",
        "main.py": "import pkg as p\n\ntpu = p.it.tpu",
    },
    "two other names": {
        "hidden.py": TPU,
        "middle.py": "import hidden as it",
        "last.py": "from middle import it as that",
        "main.py": "import last\n\ntpu = last.that.tpu",
    },
    "many other names": {
        "hidden.py": TPU,
        "m0.py": "import hidden as a0",
        **{f"m{i}.py": f"from m{i - 1} import a{i - 1} as a{i}" for i in range(1, 9)},
        "main.py": "import m8\n\ntpu = m8.a8.tpu",
    },
    "its name in one of two files": {
        "a/hidden.py": TPU,
        "b/hidden.py": "",
        "a/middle.py": "from . import hidden",
        "main.py": "from a import middle\n\ntpu = middle.hidden.tpu",
    },
    "a line that goes on": {"hidden.py": TPU, "main.py": "from hidden \\\n  import tpu"},
    "a path with a comment": {
        "hidden.py": TPU,
        "main.py": "import hidden\n\ntpu = (hidden.  #\n  tpu)",
    },
    "a text": {"hidden.py": TPU, "main.py": "from mock import patch\n\ntpu = patch('hidden.tpu')"},
}


@pytest.mark.parametrize("way", READERS)
def test_a_name_that_is_read_in_any_way_keeps_it(command_line, way):
    """`tf_lossscale.contrib.tpu` has no TPUEstimator."""
    files = {name: text + "\n" for name, text in READERS[way].items()}
    main = next(name for name in files if name.endswith("main.py"))
    files[main] += "tpu.TPUEstimator()\n"
    hidden = next(name for name, text in files.items() if text.startswith(TPU))
    after = migrate(command_line, files, "--to", "shim").sources[hidden]
    assert "from tensorflow.contrib import tpu\n" in after
