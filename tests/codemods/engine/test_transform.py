"""The guarantees of the engine: unchanged bytes, errors as results, marks, suppressions."""

import libcst as cst
import pytest
from tf_lossscale_codemods.engine import prefilter
from tf_lossscale_codemods.engine.prefilter import is_in_code, may_concern
from tf_lossscale_codemods.engine.python_tree import PythonSource
from tf_lossscale_codemods.engine.transform import transform
from tf_lossscale_codemods.model import Options
from tf_lossscale_codemods.resolve.vocabulary import DISTINCTIVE

BEFORE = "import tensorflow as tf\nopt = tf.contrib.tpu.CrossShardOptimizer(opt)\n"
AFTER = "import tensorflow as tf\nopt = tf.compat.v1.tpu.CrossShardOptimizer(opt)\n"
MANUAL = (
    "import tensorflow as tf\n"
    "mp = tf.keras.mixed_precision\n"
    "opt = type(opt).__name__ == 'LossScaleOptimizer'\n"
)


def edited(source: bytes, **options) -> bytes:
    result = transform(source, Options(**options))
    assert result.error is None
    return result.source


def test_a_comment_about_a_loss_scale_keeps_it():
    """Its values would become arguments; a comment on the line would have no place."""
    scale = b"scale = tf.train.experimental.DynamicLossScale()"
    source = b"import tensorflow as tf\n%s\nopt = %s(tf.keras.optimizers.SGD(), scale)\n"
    made = b"tf.keras.mixed_precision.experimental.LossScaleOptimizer"
    assert b"scale" not in edited(source % (scale, made))
    assert b"Scale()  # why\n" in edited(source % (scale + b"  # why", made))


@pytest.mark.parametrize(
    "line", [b"__all__ = ['DynamicLossScale']", b"def f(scale: 'DynamicLossScale'): ..."]
)
def test_an_import_that_only_a_string_names_stays(line):
    """The loss scale becomes arguments of the optimizer, so that no code reads the name."""
    source = (
        b"import tensorflow as tf\nfrom tensorflow.train.experimental import DynamicLossScale\n"
    )
    source += b"%s\nopt = tf.keras.mixed_precision.experimental.LossScaleOptimizer(" % line
    source += b"tf.keras.optimizers.SGD(), DynamicLossScale())\n"
    assert b"mixed_precision import DynamicLossScale\n" in edited(source)
    assert b"import Dynamic" not in edited(source.replace(line, b""))


@pytest.mark.parametrize(("length", "is_shown"), [(299, True), (300, False), (5000, False)])
def test_a_finding_has_its_line_unless_that_is_long(length, is_shown):
    line = BEFORE.splitlines()[1].ljust(length - 1) + "#"
    (finding,) = transform(f"import tensorflow as tf\n{line}\nx = 1\n".encode(), Options()).findings
    assert finding.text == (line if is_shown else "")


class TestErrors:
    def test_text_that_the_parser_loses_where_nothing_is_to_be_done(self):
        source = b"name = 'mixed_precision'\nif a:\n  b()\n # c\n # d\n"
        assert transform(source, Options()).error is None

    def test_brackets_in_a_string_are_not_nested(self):
        source = BEFORE + "x = '" + "(" * 2000 + "'\n"
        assert transform(source.encode(), Options()).error is None

    def test_a_file_that_the_prefilter_rules_out_is_not_parsed(self):
        result = transform(b"this is no Python (\n", Options())
        assert result.error is None
        assert result.note

    def test_results_name_the_file(self):
        findings = transform(BEFORE.encode(), Options(), "a.py").findings
        assert {finding.path for finding in findings} == {"a.py"}
        unused = transform(b"# lossscale: ignore\n", Options(), "b.py").findings
        assert {finding.path for finding in unused} == {"b.py"}
        error = transform(b"mixed_precision (\n", Options(), "c.py").error
        assert error is not None
        assert error.path == "c.py"


class TestChoices:
    def test_a_suppressed_place_stays_and_its_neighbour_moves(self):
        source = (
            BEFORE
            + "opt = tf.contrib.tpu.CrossShardOptimizer(opt)  # lossscale: ignore[LS501] 1.x\n"
        )
        result = transform(source.encode(), Options())
        assert result.source.decode() == AFTER + source.splitlines(True)[2]
        assert len(result.findings) == 1

    def test_marks_keep_the_indentation(self):
        source = MANUAL.replace("opt = type", "def f(opt):\n    return type")
        once = edited(source.encode(), mark=True).decode()
        assert "\n    # TODO(LS906): " in once
        assert edited(once.encode(), mark=True).decode() == once


@pytest.mark.parametrize("name", sorted(DISTINCTIVE))
def test_the_prefilter_lets_every_legacy_name_through(name):
    assert may_concern(f"from compat import {name} as it".encode())


@pytest.mark.parametrize(
    "source",
    [
        b"from tensorflow.keras import mixed_precision as mp",
        b"tf.keras.mixed_precision.set",
        b"f(mixed_precision=True)",
        b"mixed_precision",
        b'"use_mixed_precision"; name = "mixed_precision"',
        rb'["import tensorflow as tf\nmixed_precision = tf.keras"]',
        rb'["mp \u003dmixed_precision"]',
        b"enable_mixed_precision_graph_rewrite(opt)",
        b"cross_replica_sums = cross_replica_sum",
    ],
)
def test_the_prefilter_lets_whole_names_through(source):
    assert may_concern(source)


@pytest.mark.parametrize(
    "source",
    [
        b"parser.add_argument('--use_mixed_precision', action='store_true')",
        b"def mixed_precision_is_enabled(dtype):",
        b"cross_replica_sum_ops = []",
        b"class MyCrossShardOptimizer:",
        "mixed_precisionné = 1".encode(),
        b"mixed_precision2",
    ],
)
def test_a_part_of_a_longer_name_is_no_legacy_name(source):
    assert not may_concern(source)


def test_the_first_words_of_the_prefilter_let_all_others_through():
    for word in (*prefilter._WHOLE, *prefilter._PARTS):
        assert any(stem in word for stem in prefilter._STEMS), word


@pytest.mark.parametrize(
    "source",
    [
        b"# LossScale\nx = 1\n",
        b'"""See LossScaleOptimizer."""\nx = 1\n',
        b'class A:\n    """mixed_precision"""\n',
        b"def cross_replica_sum(x):\n    return x\n\n\ny = cross_replica_sum(1)\n",
    ],
)
def test_comments_docstrings_and_definitions_are_not_code(source):
    assert may_concern(source)
    assert not is_in_code(PythonSource(source))


@pytest.mark.parametrize(
    "source",
    [
        b"x = 1  # lossscale: ignore\n",
        b"from a import *\n\n\ndef LossScaleOptimizer():\n    pass\n\n\nLossScaleOptimizer(1)\n",
        b"import a.mixed_precision\n",
        b"from .mixed_precision import x\n",
        b"opt.get_scaled_loss(1)\n",
        b"class A:\n    def get_scaled_loss(self):\n        pass\n",
        b"f('Loss' 'Scale')\n",
        b"f(f'{x}.LossScale')\n",
        b"# LossScale\nx.optimizer.loss_scale\n",
        b"a.Policy('mixed_float16')\n",
        b"s.loss_scale()\n",
        b"print 'LossScale'\n",
        b"def f(x: 'LossScaleOptimizer'): pass\n",
    ],
)
def test_names_and_strings_are_code(source):
    assert is_in_code(PythonSource(source))


@pytest.mark.parametrize(
    "source",
    [
        "from apex.amp import LossScaleOptimizer",
        "def step(opt, loss):\n    return opt.get_scaled_loss(loss)",
    ],
)
def test_note_where_there_is_nothing_to_migrate(source):
    note = transform(source.encode() + b"\n", Options()).note
    assert note.startswith("no symbol to migrate in it: ")


def test_note_of_rules_that_are_not_selected():
    source = b"from tensorflow.contrib.mixed_precision import LossScaleOptimizer\n"
    assert "selected rules" in transform(source, Options(select=("LS5",))).note


def test_note_of_silenced_findings():
    source = b"""\
from tensorflow.contrib.mixed_precision import LossScaleOptimizer  # lossscale: ignore[LS1] later
"""
    result = transform(source, Options())
    assert not result.findings
    assert result.note == "comments silence all findings in it"


def test_one_finding_at_one_place():
    source = b"""\
import tensorflow as tf

if type(opt).__name__ in ["LossScaleOptimizer", "LossScaleOptimizerV1"]:
    opt = opt.inner_optimizer
"""
    (finding,) = transform(source, Options()).findings
    assert finding.code == "LS906"


def test_libcst_is_as_before():
    """The check of new nodes is disabled within a parse only, also if that fails."""
    before = cst.CSTNode.__post_init__
    for source in (b"import tensorflow as tf\ntf.train.experimental.FixedLossScale(8)\n", b"x ="):
        transform(source, Options())
        assert cst.CSTNode.__post_init__ is before
