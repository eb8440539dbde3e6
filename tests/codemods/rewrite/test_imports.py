"""Import statements: left alone without a change, else retargeted, dropped or added."""

import textwrap

import libcst as cst
import pytest
from tf_lossscale_codemods.model import Options, Target
from tf_lossscale_codemods.resolve.places import NamespaceUse
from tf_lossscale_codemods.resolve.program import Program
from tf_lossscale_codemods.resolve.tree import rebuilt
from tf_lossscale_codemods.rewrite.imports import ImportEdits
from verbs import transformed


class Imports:
    """The imports of one source, with what is done to them."""

    def __init__(self, source: str) -> None:
        self.module = cst.parse_module(textwrap.dedent(source))
        self.program = Program([self.module], Options())
        self.edits = ImportEdits(self.program)
        self.scope = self.program.scopes.module_scope
        root = cst.Name("root")
        new = cst.Attribute(root, cst.Name("new"))  # as if it stood at the end
        self.end = NamespaceUse(new, self.scope, "", root)
        self.end_by_name = NamespaceUse(root, self.scope, "", root)

    def variable(self, name: str):
        return self.scope, name

    def uses(self, name: str) -> list:
        return [node for node in self.program.scopes.loads if node.value == name]

    @property
    def source(self) -> str:
        module = rebuilt(self.module, self.edits.edits(), self.program.parents)
        return self.module.code if module is None else module.code


class TestLeftAlone:
    @pytest.mark.parametrize("source", ["", "x = 1\n", "import a, b.c as d\nfrom e import *\n"])
    def test_without_a_change(self, source):
        assert Imports(source).source == source

    @pytest.mark.parametrize(
        "source",
        [
            "from a import b\n__all__ = ['b']\n",
            '__all__ = [u"b"]\nfrom a import b\n',
            "from a import b\ndef f(x: 'list[b]'): pass\n",
            "if x:\n    from a import b\nelse:\n    b = None\n",
        ],
    )
    def test_a_name_that_is_used_in_another_way_is_not_dropped(self, source):
        imports = Imports(source)
        imports.edits.drop(imports.variable("b"))
        assert imports.source == source

    def test_another_name_in_a_string_is_no_use(self):
        imports = Imports("from a import b\n__all__ = ['bb', 'B']\n")
        imports.edits.drop(imports.variable("b"))
        assert imports.source == "__all__ = ['bb', 'B']\n"

    def test_a_name_that_is_needed_is_not_dropped(self):
        imports = Imports("import tensorflow as tf\n")
        name = imports.edits.name_for("tensorflow.a.b", imports.end, imports.variable("tf"))
        assert name == "tf.a.b"
        imports.edits.drop(imports.variable("tf"))
        assert imports.source == "import tensorflow as tf\n"

    def test_a_module_that_is_still_read_is_not_dropped(self):
        source = "import tensorflow.contrib.mixed_precision\n"
        imports = Imports(source)
        imports.edits.drop_dotted(
            imports.variable("tensorflow"), {"tensorflow.contrib.mixed_precision.X"}
        )
        assert imports.source == source


class TestDrop:
    @pytest.mark.parametrize(
        ("source", "left"),
        [
            ("import b\nx\n", "x\n"),
            ("from a import b, c\n", "from a import c\n"),
            ("import a, b\n", "import a\n"),
            ("from a import (\n    b,\n    c,\n)\n", "from a import (\n    c,\n)\n"),
        ],
    )
    def test_a_name(self, source, left):
        imports = Imports(source)
        imports.edits.drop(imports.variable("b"))
        assert imports.source == left

    def test_a_module(self):
        imports = Imports("import tensorflow as tf\nimport tensorflow.contrib.mixed_precision\n")
        imports.edits.drop_dotted(imports.variable("tensorflow"), set())
        assert "contrib" not in imports.source


@pytest.mark.parametrize(
    ("source", "bound", "name", "line"),
    [
        ("from a import B\nB()\n", "B", "E", "from c.d import E"),
        # The name stays if it is an alias, or if the new one is taken.
        ("from a import B as C\nC()\n", "C", "C", "from c.d import E as C"),
        ("from a import B\nB()\nE = 1\n", "B", "B", "from c.d import E as B"),
        ("from a import B\nB()\nE()\n", "B", "B", "from c.d import E as B"),
        ("from a import B\nB()\ndef f(E): pass\nE\n", "B", "B", "from c.d import E as B"),
    ],
)
def test_retarget(source, bound, name, line):
    imports = Imports(source)
    found = imports.edits.retarget(imports.variable(bound), "c.d.E", imports.uses(bound))
    assert (found, imports.source.splitlines()[0]) == (name, line)


@pytest.mark.parametrize(
    ("source", "names", "after"),
    [
        # What is imported already is used.
        ("import a\nimport tf_lossscale as s\n", {"tf_lossscale.x.Y": "s.x.Y"}, None),
        (
            "import a\nx\n",
            {"tf_lossscale.x.Y": "tfls.x.Y", "tf_lossscale.x.Z": "tfls.x.Z"},
            "import a\nimport tf_lossscale as tfls\nx\n",
        ),
        # The short name is taken.
        (
            "import a\ntfls = 1\n",
            {"tf_lossscale.x.Y": "tf_lossscale.x.Y"},
            "import a\nimport tf_lossscale\ntfls = 1\n",
        ),
    ],
)
def test_name_for(source, names, after):
    imports = Imports(source)
    for path, name in names.items():
        assert imports.edits.name_for(path, imports.end, imports.variable("a")) == name
    assert imports.source == (after or source)


@pytest.mark.parametrize("source", ["import a\nfrom c import D\n", "import a\n"])
def test_name_for_a_class_by_its_name(source):
    imports = Imports(source)
    assert imports.edits.name_for("c.D", imports.end_by_name, imports.variable("a")) == "D"
    assert imports.source == "import a\nfrom c import D\n"


COMMENTED = """\
from tensorflow.keras.mixed_precision import (  # both
    # the wrapper
    LossScaleOptimizer,  # scales
    # the policy
    Policy,  # of a layer
    # the end
)  # noqa
import tensorflow.keras.mixed_precision.experimental as mp;
opt = mp.LossScaleOptimizer(LossScaleOptimizer, Policy)
"""


def test_comments_of_names_that_go_stand_above_and_semicolons_stay():
    result = transformed(COMMENTED, Options(keras=3))
    lines = result.source.decode().splitlines()
    assert lines[:-1] == [
        "# scales",
        "# the policy",
        "from tensorflow.keras.mixed_precision import (  # both",
        "    # the wrapper",
        "    Policy,  # of a layer",
        "    # the end",
        ")  # noqa",
        "from tf_lossscale.keras.mixed_precision import LossScaleOptimizer",
        "import tf_lossscale.keras.mixed_precision as mp;",
    ]


def test_comment_of_a_name_that_goes_stands_above_its_import():
    source = """\
        from tensorflow.train.experimental import (
            DynamicLossScale,  # dynamic
            FixedLossScale,
        )
        from tensorflow.keras.mixed_precision.experimental import LossScaleOptimizer
        opt = LossScaleOptimizer(opt, DynamicLossScale(8))
        print(FixedLossScale(2))
        """
    result = transformed(textwrap.dedent(source), Options())
    assert "# dynamic\nfrom tensorflow.compat.v1.mixed_precision import (" in result.source.decode()


ANNOTATED = """\
from tensorflow.keras.mixed_precision.experimental import LossScaleOptimizer
from tensorflow.train.experimental import DynamicLossScale

def wrap(opt, scale):
    x: 'DynamicLossScale' = scale
    return LossScaleOptimizer(opt, DynamicLossScale(8)), LossScaleOptimizer(opt, scale)
"""


def test_name_in_an_annotation_that_is_text_keeps_an_import_that_works():
    result = transformed(ANNOTATED, Options())
    text = result.source.decode()
    assert "import DynamicLossScale\n" in text
    assert "tensorflow.train.experimental" not in text
    assert "tensorflow.keras.mixed_precision.experimental" not in text


# A rewritten place never reads an import of TensorFlow that stands below it.

BELOW = """\
from tensorflow.contrib import tpu as contrib_tpu

{use}
import tensorflow as tf

print(contrib_tpu, tf)
"""
AT_ONCE = {
    "a statement": "opt = contrib_tpu.CrossShardOptimizer(opt)\n",
    "a class": "class Settings:\n    opt = contrib_tpu.CrossShardOptimizer(opt)\n",
    "a comprehension": "opts = [contrib_tpu.CrossShardOptimizer(one) for one in opts]\n",
    "a default": "def f(kind=contrib_tpu.CrossShardOptimizer):\n    pass\n",
}
LATER = {
    "a function": "def wrap(opt):\n    return contrib_tpu.CrossShardOptimizer(opt)\n",
    "a lambda": "wrap = lambda opt: contrib_tpu.CrossShardOptimizer(opt)\n",
    "a method": "class A:\n    def f(self):\n        return contrib_tpu.CrossShardOptimizer(1)\n",
}


@pytest.mark.parametrize("use", AT_ONCE)
def test_what_runs_at_once_gets_an_import_above_it(use):
    after = transformed(BELOW.format(use=AT_ONCE[use]), Options()).source.decode()
    assert "tf.compat" not in after
    assert after.index("import tensorflow\n") < after.index("tensorflow.compat.v1.tpu.CrossShard")
    assert transformed(after, Options()).source.decode() == after


@pytest.mark.parametrize("use", LATER)
def test_what_runs_later_uses_the_import_that_is_there(use):
    after = transformed(BELOW.format(use=LATER[use]), Options()).source.decode()
    assert "tf.compat.v1.tpu.CrossShardOptimizer" in after
    assert "import tensorflow\n" not in after


def test_import_of_the_shim_below_the_use():
    source = BELOW.format(use=AT_ONCE["a statement"]).replace(
        "tensorflow as tf", "tf_lossscale as tfls"
    )
    source = source.replace(", tf)", ", tfls)")
    after = transformed(source, Options(target=Target.SHIM)).source.decode()
    assert after.index("import tf_lossscale\n") < after.index("tf_lossscale.contrib.tpu.CrossShard")
