"""Names that one file of a run imports from another are followed to TensorFlow, or to their end."""

import ast
import os
import subprocess
import sys

import pytest
from several_files import migrate
from tf_lossscale_codemods.run.module_facts import LOCAL, UNKNOWN, facts_of
from tf_lossscale_codemods.run.modules import Modules

USE = "{head}\n\nopt = {name}(opt, 8)\n"
COMPAT = "import tensorflow as tf\n\ntpu = tf.tpu\n"

# Each: the files, of which `use.py` must stay as it is, and its findings.
LEFT = {
    "a class of the project": (
        {"amp.py": "class DynamicLossScale:\n    pass\n"},
        USE.format(head="from amp import DynamicLossScale", name="DynamicLossScale"),
        [],
    ),
    "a function of the project, through another module": (
        {
            "amp.py": "def cross_replica_sum(x):\n    return x\n",
            "compat.py": "from amp import *\n",
        },
        USE.format(head="import compat", name="compat.cross_replica_sum"),
        [],
    ),
    "a class of another library": (
        {"amp.py": "from npu_bridge.npu_init import FixedLossScaleManager\n"},
        USE.format(head="from amp import FixedLossScaleManager", name="FixedLossScaleManager"),
        [],
    ),
    "a name that the module does not have": (
        {"amp.py": "import tensorflow as tf\n"},
        USE.format(head="import amp", name="amp.DynamicLossScale"),
        ["use.py:1 LS903 manual"],
    ),
    "a module of the same name in two directories": (
        {"compat.py": COMPAT, "src/compat.py": COMPAT},
        USE.format(head="from compat import tpu", name="tpu.CrossShardOptimizer"),
        ["use.py:1 LS903 manual"],
    ),
    "a module and a package of the same name": (
        {"compat.py": COMPAT, "compat/__init__.py": COMPAT},
        USE.format(head="from compat import tpu", name="tpu.CrossShardOptimizer"),
        ["use.py:1 LS903 manual"],
    ),
    "a module that cannot be parsed": (
        {"compat.py": COMPAT + "print 'two'\n"},
        USE.format(head="from compat import tpu", name="tpu.CrossShardOptimizer"),
        ["use.py:1 LS903 manual"],
    ),
    "a name with two meanings": (
        {"compat.py": COMPAT + "if tpu.flag:\n    import other as tpu\n"},
        USE.format(head="from compat import tpu", name="tpu.CrossShardOptimizer"),
        ["use.py:1 LS903 manual"],
    ),
    "a name that a function binds": (
        {"compat.py": COMPAT + "def swap(other):\n    global tpu\n    tpu = other\n"},
        USE.format(head="from compat import tpu", name="tpu.CrossShardOptimizer"),
        ["use.py:1 LS903 manual"],
    ),
    "a name that another file binds": (
        {
            "compat.py": COMPAT,
            "patch.py": "import compat\nimport CrossShardOptimizer\n\ncompat.tpu = other\n",
        },
        USE.format(head="from compat import tpu", name="tpu.CrossShardOptimizer"),
        ["use.py:1 LS903 manual"],
    ),
    "a module with `__getattr__`": (
        {"compat.py": COMPAT + "def __getattr__(name):\n    return getattr(tf, name)\n"},
        USE.format(head="import compat", name="compat.tpu.CrossShardOptimizer"),
        ["use.py:1 LS903 manual"],
    ),
    "a module that replaces itself": (
        {"compat.py": COMPAT + "import sys\nsys.modules[__name__] = tf\n"},
        USE.format(head="import compat", name="compat.tpu.CrossShardOptimizer"),
        ["use.py:1 LS903 manual"],
    ),
    "a module that sets its names by their text": (
        {"compat.py": COMPAT + "globals().update(vars(tf))\n"},
        USE.format(head="import compat", name="compat.tpu.CrossShardOptimizer"),
        ["use.py:1 LS903 manual"],
    ),
    "what a function returns": (
        {"compat.py": "import tensorflow as tf\n\ntpu = getattr(tf, 'tpu')\n"},
        USE.format(head="from compat import tpu", name="tpu.CrossShardOptimizer"),
        ["use.py:1 LS903 manual"],
    ),
    "a name that two star imports can bind": (
        {
            "compat.py": "from first import *\nfrom second import *\n",
            "first.py": COMPAT,
            "second.py": COMPAT,
        },
        USE.format(head="from compat import tpu", name="tpu.CrossShardOptimizer"),
        ["use.py:1 LS903 manual"],
    ),
    "a name that `__all__` leaves out": (
        {"compat.py": "from first import *\n", "first.py": COMPAT + '__all__ = ["tf"]\n'},
        USE.format(head="from compat import tpu", name="tpu.CrossShardOptimizer"),
        ["use.py:1 LS903 manual"],
    ),
    "modules that import each other": (
        {"first.py": "from second import tpu\n", "second.py": "from first import tpu\n"},
        USE.format(head="from first import tpu", name="tpu.CrossShardOptimizer"),
        ["use.py:1 LS903 manual"],
    ),
    "a module that is not in the run": (
        {},
        USE.format(head="from compat import tpu", name="tpu.CrossShardOptimizer"),
        ["use.py:1 LS903 manual"],
    ),
}

# Each: the files, `use.py`, and `use.py` afterwards.
FOLLOWED = {
    "a module that is assigned": (
        {"compat.py": COMPAT},
        "from compat import tpu\n\nopt = tpu.CrossShardOptimizer(opt)\n",
        "from compat import tpu\nimport tensorflow as tf\n\n"
        "opt = tf.compat.v1.tpu.CrossShardOptimizer(opt)\n",
    ),
    "TensorFlow itself": (
        {"compat.py": COMPAT},
        "from compat import tf as tf1\n\nopt = tf1.tpu.CrossShardOptimizer(opt)\n",
        "from compat import tf as tf1\n\nopt = tf1.compat.v1.tpu.CrossShardOptimizer(opt)\n",
    ),
    "an attribute of the module": (
        {"compat.py": COMPAT},
        "import compat\n\nopt = compat.tf.tpu.CrossShardOptimizer(opt)\n",
        "import compat\n\nopt = compat.tf.compat.v1.tpu.CrossShardOptimizer(opt)\n",
    ),
    "a relative import": (
        {"pkg/__init__.py": "", "pkg/compat.py": COMPAT, "pkg/sub/__init__.py": ""},
        {
            "pkg/sub/use.py": (
                "from .. import compat\n\nopt = compat.tf.tpu.CrossShardOptimizer(opt)\n"
            )
        },
        "from .. import compat\n\nopt = compat.tf.compat.v1.tpu.CrossShardOptimizer(opt)\n",
    ),
    "a dotted import of a namespace package": (
        {"pkg/compat.py": COMPAT},
        "import pkg.compat\n\nopt = pkg.compat.tf.tpu.CrossShardOptimizer(opt)\n",
        "import pkg.compat\n\nopt = pkg.compat.tf.compat.v1.tpu.CrossShardOptimizer(opt)\n",
    ),
    "a dotted import of a package": (
        {"pkg/__init__.py": "", "pkg/compat.py": COMPAT},
        "import pkg.compat\n\nopt = pkg.compat.tf.tpu.CrossShardOptimizer(opt)\n",
        "import pkg.compat\n\nopt = pkg.compat.tf.compat.v1.tpu.CrossShardOptimizer(opt)\n",
    ),
    "a package in src": (
        {"src/pkg/__init__.py": "from .compat import tf\n", "src/pkg/compat.py": COMPAT},
        "from pkg import tf\n\nopt = tf.tpu.CrossShardOptimizer(opt)\n",
        "from pkg import tf\n\nopt = tf.compat.v1.tpu.CrossShardOptimizer(opt)\n",
    ),
    "through three modules and a star import": (
        {"a.py": "from b import tf\n", "b.py": "from c import *\n", "c.py": COMPAT},
        "from a import tf\n\nopt = tf.tpu.CrossShardOptimizer(opt)\n",
        "from a import tf\n\nopt = tf.compat.v1.tpu.CrossShardOptimizer(opt)\n",
    ),
    "the same in both arms": (
        {"compat.py": "try:\n    import tensorflow as tf\nexcept ImportError:\n    tf = None\n"},
        "from compat import tf\n\nopt = tf.tpu.CrossShardOptimizer(opt)\n",
        "from compat import tf\n\nopt = tf.compat.v1.tpu.CrossShardOptimizer(opt)\n",
    ),
    "modules that import each other": (
        {"a.py": "import b\nimport tensorflow as tf\n", "b.py": "from a import tf\n"},
        "from b import tf\n\nopt = tf.tpu.CrossShardOptimizer(opt)\n",
        "from b import tf\n\nopt = tf.compat.v1.tpu.CrossShardOptimizer(opt)\n",
    ),
    "a module of the experimental API": (
        {"amp.py": "from tensorflow.keras.mixed_precision import experimental as mp\n"},
        "from amp import mp\nimport tensorflow as tf\n\nopt = mp.LossScaleOptimizer(opt, 8)\n",
        "from amp import mp\nimport tensorflow as tf\n\n"
        "opt = tf.keras.mixed_precision.LossScaleOptimizer(opt, dynamic=False, initial_scale=8)\n",
    ),
}


@pytest.mark.parametrize("case", LEFT.values(), ids=LEFT)
def test_not_followed(case, command_line):
    files, use, findings = case
    migrated = migrate(command_line, {**files, "use.py": use})
    assert migrated.sources["use.py"] == use
    assert [one for one in migrated.findings if one.startswith("use.py")] == findings


@pytest.mark.parametrize("case", FOLLOWED.values(), ids=FOLLOWED)
def test_followed(case, command_line):
    files, use, after = case
    used = use if isinstance(use, dict) else {"use.py": use}
    (name,) = used
    migrated = migrate(command_line, {**files, **used})
    assert migrated.sources[name] == after
    assert {one.split()[-1] for one in migrated.findings} == {"safe"}


def test_a_file_alone_does_not_know_others(command_line):
    use = USE.format(head="from compat import tpu", name="tpu.CrossShardOptimizer")
    command_line.write(compat=COMPAT.encode(), use=use.encode())
    ran = command_line.run("migrate", "use.py", "--keras", "2")
    assert b"LS903" in ran.out
    ran = command_line.run("migrate", "-", "--keras", "2", stdin=use.encode())
    assert "LS903" in ran.err


def test_a_notebook_is_left_out(command_line):
    cell = {"cell_type": "code", "source": ["from compat import tpu\n", "tpu.CrossShardOptimizer"]}
    notebook = repr({"cells": [cell], "nbformat": 4}).replace("'", '"')
    command_line.write(compat=COMPAT.encode())
    command_line.path("use.ipynb").write_text(notebook)
    assert b"LS903" in command_line.run("migrate", ".", "--keras", "2").out


def test_names_that_others_import_stay(command_line):
    files = {
        "amp.py": "from tensorflow.keras.mixed_precision.experimental import set_policy\n",
        "compat.py": "import tensorflow as tf\n\nscale = tf.contrib.mixed_precision\n"
        "manager = scale.FixedLossScaleManager(8)\n",
        "use.py": "from amp import set_policy\nfrom compat import tf\n\nset_policy('float16')\n"
        "loss_scale = tf.contrib.mixed_precision.FixedLossScaleManager(8)\n",
    }
    migrated = migrate(command_line, files, "--to", "shim")
    names = {
        name: {
            alias.asname or alias.name
            for node in ast.walk(ast.parse(source))
            if isinstance(node, (ast.Import, ast.ImportFrom))
            for alias in node.names
        }
        for name, source in migrated.sources.items()
    }
    assert "set_policy" in names["amp.py"]
    assert "tf" in names["compat.py"]
    assert {"set_policy", "tf"} <= names["use.py"]


def test_the_migrated_program_runs(command_line):
    """The shim needs no TensorFlow to be imported."""
    files = {
        "compat.py": "import tf_lossscale as tf\n\nprint('imported once')\n",
        "use.py": "from compat import tf\nimport use2\n\nprint(tf.__name__)\n",
        "use2.py": "from compat import tf\n\nit = tf.contrib.mixed_precision\nprint(it.__name__)\n",
    }
    migrated = migrate(command_line, files, "--to", "shim")
    assert migrated.sources == files
    ran = subprocess.run(
        [sys.executable, "use.py"],
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(_shim()))},
    )
    assert ran.stdout.split() == [
        b"imported", b"once", b"tf_lossscale.contrib.mixed_precision", b"tf_lossscale",
    ]  # fmt: skip


def _shim() -> str:
    import tf_lossscale

    assert tf_lossscale.__file__ is not None
    return tf_lossscale.__file__


@pytest.mark.parametrize(
    ("source", "name", "meanings"),
    [
        ("import a.b", "a", {"a"}),
        ("import a.b as c", "c", {"a.b"}),
        ("from . import a", "a", {".a"}),
        ("from ..a import b as c", "c", {"..a.b"}),
        ("import a\nb = a.c.d", "b", {"a.c.d"}),
        ("import a\nb = a if a.c else None", "b", {"a"}),
        ("import a\nb = a if a.c else 1", "b", {"a", LOCAL}),
        ("import a\nb = a()", "b", {UNKNOWN}),
        ("import a\na = a.b", "a", {"a", UNKNOWN}),
        ("import a\ndel a", "a", {"a", UNKNOWN}),
        ("import a\nfor a in x: pass", "a", {"a", LOCAL}),
        ("import a\nwith x as a: pass", "a", {"a", LOCAL}),
        ("import a\ntry: pass\nexcept E as a: pass", "a", {"a", UNKNOWN}),
        ("import a\nprint(a := 1)", "a", {"a", UNKNOWN}),
        ("try:\n import a\nexcept E:\n import b as a", "a", {"a", "b"}),
        ("if x:\n import a\nelse:\n a = None", "a", {"a"}),
        ("import a\ndef f():\n global a\n a = 1", "a", {"a", UNKNOWN}),
        ("from x import *\nb = y", "b", {UNKNOWN}),
        ("import c\na, b = c", "a", set()),
        ("def a(): pass", "a", set()),
        ("class a: pass", "a", set()),
        ("a = 1", "a", set()),
    ],
)
def test_meanings_of_a_top_level_name(source, name, meanings):
    facts = facts_of(source.encode())
    assert set(facts.names.get(name, ())) == meanings
    assert (name in facts.defined) == (not meanings)


@pytest.mark.parametrize("source", [b"print 'two'", b"a" * 10 + b"\0", b"(" * 5000, b"\xff"])
def test_no_facts(source):
    assert facts_of(source) is None


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".a", "/p/pkg/a.py"),
        ("..pkg.a", "/p/pkg/a.py"),
        (".", "/p/pkg/__init__.py"),
        ("..top", "/p/top.py"),
        ("pkg", "/p/pkg/__init__.py"),
        ("pkg.a", "/p/pkg/a.py"),
        ("a", "/p/pkg/a.py"),
        ("top", "/p/top.py"),
        ("deep.b", "/p/src/deep/b.py"),
        ("deep", None),
        ("far", None),
        ("tensorflow", None),
        ("apex", None),
        (".none", None),
        ("twice", None),
    ],
)
def test_module_of_an_import(path, found):
    files = [
        "/p/pkg/__init__.py", "/p/pkg/a.py", "/p/pkg/user.py", "/p/top.py", "/p/src/deep/b.py",
        "/p/other/far.py", "/p/tensorflow.py", "/p/apex.py", "/p/twice.py", "/p/pkg/twice.py",
    ]  # fmt: skip
    assert Modules(files).find(path, "/p/pkg/user.py") == found


def test_many_modules_that_import_each_other(command_line):
    """Long chains, and modules that all import each other, take time in proportion."""
    files = {
        f"m{number}.py": "".join(
            [f"from m{number + 1} import *\n", *(f"import m{other}\n" for other in range(100))]
        )
        for number in range(100)
    }
    files["m100.py"] = COMPAT
    files["use.py"] = "from m80 import tf\nfrom m0 import tpu\n\ntf.tpu.cross_replica_sum(1)\n"
    migrated = migrate(command_line, files)
    assert "tf.compat.v1.tpu.cross_replica_sum(1)" in migrated.sources["use.py"]


def test_a_crash_while_reading_facts_makes_them_unknown(command_line, monkeypatch):
    from tf_lossscale_codemods.workers import process_file

    def ends(source, from_shim):
        if b"# bad" in source:
            os._exit(3)
        return facts_of(source, from_shim)

    monkeypatch.setattr(process_file, "facts_of", ends)
    use = USE.format(head="from compat import tpu", name="tpu.CrossShardOptimizer")
    migrated = migrate(command_line, {"compat.py": COMPAT + "# bad\n", "use.py": use})
    assert migrated.findings == ["use.py:1 LS903 manual"]
    migrated = migrate(command_line, {"compat.py": COMPAT, "use.py": use})
    assert migrated.findings == ["use.py:3 LS501 safe"]
