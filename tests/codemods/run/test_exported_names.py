"""Files without a legacy name that use one through another file of the run.

Each program reads a name of `amp.py`. Either all that read it are rewritten as well, or the name
keeps its meaning there, and a finding says which file is the reason.
"""

import json

import pytest
from several_files import migrate
from tf_lossscale_codemods.run.import_words import ImportWords
from tf_lossscale_codemods.run.module_facts import facts_of

MODULE = "from tensorflow.keras.mixed_precision import experimental as mp\n"
ASSIGNED = "import tensorflow as tf\n\nmp = tf.keras.mixed_precision.experimental\n"
DOTTED = "import tensorflow.keras.mixed_precision.experimental as mp\n"
SYMBOL = "from tensorflow.keras.mixed_precision.experimental import LossScaleOptimizer as Wrap\n"
USE = "{mp}.set_policy('mixed_float16')\n"
FINAL = "mixed_precision.set_global_policy('mixed_float16')\n"
OWN = "\nmp.set_policy('float32')\n"

# Each: the files that read `mp` of `amp.py` (or of the package), and the one that uses it.
FOLLOWED = {
    "from": ({"train.py": "from amp import mp\n\n" + USE.format(mp="mp")}, "train.py"),
    "module": ({"train.py": "import amp\n\n" + USE.format(mp="amp.mp")}, "train.py"),
    "star": ({"train.py": "from amp import *\n\n" + USE.format(mp="mp")}, "train.py"),
    "renamed": ({"train.py": "from amp import mp as q\n\n" + USE.format(mp="q")}, "train.py"),
    "in a function": (
        {"train.py": "def f():\n    from amp import mp\n    " + USE.format(mp="mp")},
        "train.py",
    ),
    "from a package": (
        {
            "pkg/__init__.py": "from .amp import mp\n",
            "pkg/amp.py": MODULE,
            "train.py": "import pkg\n\n" + USE.format(mp="pkg.mp"),
        },
        "train.py",
    ),
    "of a package": (
        {
            "pkg/__init__.py": MODULE,
            "pkg/train.py": "from . import mp\n\n" + USE.format(mp="mp"),
        },
        "pkg/train.py",
    ),
    "an alias of a module": (
        {
            "pkg/__init__.py": "",
            "pkg/amp.py": MODULE,
            "train.py": "import pkg.amp as a\n\n" + USE.format(mp="a.mp"),
        },
        "train.py",
    ),
    "relative": (
        {
            "pkg/__init__.py": "",
            "pkg/amp.py": MODULE,
            "pkg/sub/train.py": "from ..amp import (\n    mp,\n)\n\n" + USE.format(mp="mp"),
        },
        "pkg/sub/train.py",
    ),
    "through a star import of another file": (
        {
            "mid.py": "from amp import *\n",
            "train.py": "from mid import mp\n\n" + USE.format(mp="mp"),
        },
        "train.py",
    ),
    "a module that imports the module": (
        {
            "mid.py": "import amp\n",
            "train.py": "import mid\n\n" + USE.format(mp="mid.amp.mp"),
        },
        "train.py",
    ),
    "conftest": (
        {
            "conftest.py": "from amp import mp\n",
            "test_it.py": "from conftest import mp\n\n" + USE.format(mp="mp"),
        },
        "test_it.py",
    ),
}  # fmt: skip
NOTEBOOK = {
    "cells": [{"cell_type": "code", "source": ["from amp import mp\n", "mp.set_policy('x')"]}],
    "nbformat": 4,
}

# Each: a file that may read `mp` of `amp.py`, in a way that cannot be resolved.
UNKNOWN = {
    "two star imports": ("train.py", "from amp import *\nfrom x import *\n\nmp.set_policy(1)\n"),
    "getattr": ("train.py", "import amp\n\ngetattr(amp, name).set_policy(1)\n"),
    "passed on": ("train.py", "import amp\n\nsetup(amp)\n"),
    "passed on through another module": ("train.py", "import mid\n\nsetup(mid.amp)\n"),
    "a string": ("train.py", "import importlib\n\nimportlib.import_module('amp').mp.f()\n"),
    "a patch": ("train.py", "from unittest import mock\n\nmock.patch('amp.mp.set_policy')\n"),
    "an assignment": ("train.py", "import amp\n\namp.mp = other\n"),
    "Python 2": ("train.py", "from amp import mp\nprint 'two'\nmp.set_policy(1)\n"),
    "a notebook": ("train.ipynb", json.dumps(NOTEBOOK)),
    "a directory that is not known": ("train.py", "from lib.amp import mp\n\nmp.set_policy(1)\n"),
}


@pytest.mark.parametrize("files", FOLLOWED.values(), ids=FOLLOWED)
def test_the_file_that_uses_it_is_rewritten(files, command_line):
    files, user = files
    files = {"amp.py": MODULE, **files}
    migrated = migrate(command_line, files)
    assert {one.split()[-1] for one in migrated.findings} == {"safe"}
    assert any(one.startswith(user + ":") for one in migrated.findings)
    assert migrated.sources[user].endswith(FINAL)
    assert not any("experimental" in text for text in migrated.sources.values())


@pytest.mark.parametrize("options", [("--to", "shim"), ("--keras", "3", "--unsafe")], ids=" ".join)
@pytest.mark.parametrize("amp", [MODULE, DOTTED, MODULE + OWN, ASSIGNED + OWN], ids=range(4))
def test_every_way_to_bind_it(amp, options, command_line):
    files = {"amp.py": amp, "train.py": FOLLOWED["module"][0]["train.py"]}
    migrated = migrate(command_line, files, *options)
    assert {one.split()[-1] for one in migrated.findings} == {"safe"}
    assert "tensorflow.keras.mixed_precision.experimental" not in migrated.sources["amp.py"]
    assert "amp.mp" not in migrated.sources["train.py"]


@pytest.mark.parametrize("own", ["", OWN], ids=["unread", "read"])
@pytest.mark.parametrize("case", UNKNOWN.values(), ids=UNKNOWN)
def test_what_may_be_read_keeps_its_meaning(case, own, command_line):
    name, text = case
    migrated = migrate(command_line, {"amp.py": MODULE + own, name: text, "mid.py": "import amp\n"})
    assert "amp.py:1 LS911 unsafe" in migrated.findings
    assert f"{name} may read `mp` from here" in migrated.messages
    assert migrated.sources["amp.py"].startswith(MODULE)
    assert migrated.sources[name] == text
    assert not own or "set_global_policy('float32')" in migrated.sources["amp.py"]


def test_unsafe_changes_what_may_be_read(command_line):
    name, text = UNKNOWN["passed on"]
    migrated = migrate(command_line, {"amp.py": MODULE + OWN, name: text}, "--unsafe")
    assert migrated.sources["amp.py"].startswith(
        "from tensorflow.keras import mixed_precision as mp"
    )


@pytest.mark.parametrize(
    "use",
    [
        pytest.param("mp.Policy('mixed_float16', loss_scale=None)\n", id="manual"),
        pytest.param("mp.set_policy('x')  # lossscale: ignore[LS601]\n", id="silenced"),
        pytest.param("def f():\n    return mp\n", id="returned"),
        pytest.param(
            "class T:\n    it = mp\n\n    def f(self):\n        self.it.f()\n", id="stored"
        ),
    ],
)
@pytest.mark.parametrize("unsafe", [(), ("--unsafe",)], ids=["", "unsafe"])
def test_what_is_still_read_keeps_its_meaning(use, unsafe, command_line):
    files = {"amp.py": MODULE + OWN, "train.py": "from amp import mp\n\n" + use}
    migrated = migrate(command_line, files, *unsafe)
    assert "amp.py:1 LS911 manual" in migrated.findings
    assert "resolve train.py first" in migrated.messages
    assert migrated.sources["amp.py"].startswith(MODULE)
    assert "mixed_precision.set_global_policy('float32')" in migrated.sources["amp.py"]
    assert migrated.sources["train.py"] == files["train.py"]


def test_a_class_under_another_name(command_line):
    """Its arguments change, so all its calls in all files change together, or none does."""
    use = "from amp import Wrap\n\nopt = Wrap(make(), {})\n"
    own = "\nopt = Wrap(make(), 'dynamic')\n"
    migrated = migrate(command_line, {"amp.py": SYMBOL + own, "train.py": use.format("128")})
    assert {one.split()[-1] for one in migrated.findings} == {"safe"}
    assert (
        "LossScaleOptimizer(make(), dynamic=False, initial_scale=128)"
        in (migrated.sources["train.py"])
    )
    files = {"amp.py": SYMBOL + own, "train.py": use.format("None")}
    migrated = migrate(command_line, files)
    assert {one.split()[-1] for one in migrated.findings} == {"manual"}
    assert migrated.sources == files


@pytest.mark.parametrize("options", [("--to", "shim"), ("--keras", "2")], ids=" ".join)
@pytest.mark.parametrize(
    ("name", "amp"),
    [
        (
            "contrib",
            "from tensorflow import contrib\n\n"
            "scale = contrib.mixed_precision.FixedLossScaleManager(8)\n",
        ),
        (
            "tf",
            "import tensorflow as tf\n\n"
            "scale = tf.contrib.mixed_precision.FixedLossScaleManager(8)\n",
        ),
    ],
)
def test_other_contents_of_a_module_stay_in_reach(name, amp, options, command_line):
    use = f"import amp\n\namp.{name}.layers.dense(amp.scale)\n"
    migrated = migrate(command_line, {"amp.py": amp, "train.py": use}, *options)
    first, last = amp.split("\n\n")
    assert first in migrated.sources["amp.py"]
    assert last not in migrated.sources["amp.py"]
    assert migrated.sources["train.py"] == use


class TestOneFile:
    """What other files do with its names is not known."""

    @pytest.mark.parametrize(
        ("source", "outcome"),
        [
            (MODULE, "unsafe"),
            (SYMBOL, "unsafe"),
            (MODULE.replace("mp\n", "_mp\n"), "safe"),
            ("def f():\n    " + MODULE, "safe"),
        ],
        ids=["module", "symbol", "private", "in a function"],
    )
    def test_a_name_that_it_does_not_read(self, source, outcome, command_line):
        migrated = migrate(command_line, {"amp.py": source})
        assert [one.split()[-1] for one in migrated.findings] == [outcome]
        ran = command_line.run("migrate", "-", "--keras", "2", stdin=source.encode())
        assert f" {outcome} " in ran.err

    def test_a_name_that_it_reads(self, command_line):
        migrated = migrate(command_line, {"amp.py": MODULE + OWN})
        assert {one.split()[-1] for one in migrated.findings} == {"safe"}

    def test_beside_another_file_that_does_not_import_it(self, command_line):
        migrated = migrate(command_line, {"amp.py": MODULE, "other.py": "import os\n"})
        assert migrated.findings == ["amp.py:1 LS911 safe"]


class TestValues:
    """An optimizer that another file binds to a name, and tests of it."""

    AMP = "import tensorflow as tf\n" + SYMBOL + "\nopt = Wrap(tf.keras.optimizers.SGD(), {})\n"
    USE = "from amp import Wrap, opt\n\nprint(isinstance(opt, Wrap))\n"
    OTHER = "tf.mixed_precision.experimental.DynamicLossScale(multiplier=3.0)"

    @pytest.mark.parametrize("options", [("--to", "shim"), ("--keras", "3")], ids=" ".join)
    def test_both_move(self, options, command_line):
        files = {"amp.py": self.AMP.format("'dynamic'"), "train.py": self.USE}
        migrated = migrate(command_line, files, *options)
        assert {one.split()[-1] for one in migrated.findings} == {"safe"}

    def test_neither_moves(self, command_line):
        files = {"amp.py": self.AMP.format(self.OTHER), "train.py": self.USE}
        migrated = migrate(command_line, files)
        assert "train.py:3 LS301 manual" in migrated.findings
        assert migrated.sources["train.py"] == files["train.py"]


def test_verbose_and_counts_include_the_file(command_line):
    files = {"amp.py": MODULE, "b.py": "", "train.py": FOLLOWED["from"][0]["train.py"]}
    for name, text in files.items():
        command_line.path(name).write_text(text)
    ran = command_line.run("migrate", ".", "--keras", "2", "--check", "-v")
    assert "3 files checked: 2 to change" in ran.out.decode()
    assert "b.py: unchanged" in ran.err
    assert "train.py: unchanged" not in ran.err


@pytest.mark.parametrize(
    "source",
    [
        "import amp",
        "import x; import pkg.amp as a",
        "from amp import mp",
        "from pkg import amp",
        "from pkg import (  # (all)\n    other,\n    amp,\n)",
        "from amp \\\n    import mp",
        "from amp \\\r\n    import mp\r\n",
        "from pkg import other, \\\n    amp",
        "importlib.import_module('pkg.amp')",
        "__import__('amp')",
        "@mock.patch('pkg.amp.mp')",
        '{"source": ["from amp import mp\\n"]}',
    ],
)
def test_words_of_imports(source):
    words = ImportWords()
    words.add("/p/user.py", ("x = 1\n" + source + "\ny = 2\n").encode())
    words.add("/p/other.py", b"import os\n\namp = 1\n")
    words.add("/p/amp.py", b"import amp\n")
    assert words.importers("/p/amp.py") == ["/p/user.py"]


def test_importers_of_a_package():
    words = ImportWords()
    words.add("/p/pkg/sub/a.py", b"from .. import mp\n")
    words.add("/p/pkg/b.py", b"from .c import mp\n")
    words.add("/p/d.py", b"from . import mp\n")
    words.add("/p/e.py", b"from pkg import mp\n")
    assert words.importers("/p/pkg/__init__.py") == ["/p/pkg/sub/a.py", "/p/e.py"]


@pytest.mark.parametrize(
    ("source", "reads"),
    [
        ("import a\na.b.c()", {"a.b.c"}),
        ("import a\nf(a)", {"a"}),
        ("import a\nb = a.m\nb.f()", {"a.m", "a.m.f"}),
        ("def f():\n    from .a import b\n    b[0].c", {".a.b"}),
        ("from a import *\nm.f()", {"a.m.f"}),
        ("from a import *\nfrom b import *\nm.f()", set()),
        ("import tensorflow as tf\ntf.a", set()),
        ("import a\na.b = 1", set()),
        ("import a\na.b.c = 1", {"a.b"}),
        ("from a import b", set()),
    ],
)
def test_reads(source, reads):
    assert facts_of(source.encode()).reads == reads


@pytest.mark.parametrize(
    ("source", "movable"),
    [
        ("import tensorflow as tf\ntf.contrib.mixed_precision.FixedLossScaleManager(8)", {"tf"}),
        ("import tensorflow as tf\ntf.tpu.CrossShardOptimizer(1)\ntf.zeros(1)", set()),
        ("import tensorflow as tf", set()),
        ("import tensorflow as tf\nf(tf)", set()),
        ("import other as tf\ntf.contrib.mixed_precision.FixedLossScaleManager(8)", set()),
    ],
)
def test_movable(source, movable):
    assert facts_of(source.encode()).movable == movable
