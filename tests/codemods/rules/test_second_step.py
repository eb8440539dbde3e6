"""`migrate` after `migrate --to shim` ends where `migrate` alone does, on every example of a rule.

So the two steps of a migration can follow each other. What the second one cannot do is a finding.
And a second run of one step changes nothing and reports the same.
"""

import collections
import itertools
import textwrap

import pytest
from tf_lossscale_codemods.model import Options, Target
from tf_lossscale_codemods.resolve.legacy_symbols import Family, legacy_of
from tf_lossscale_codemods.rules.rule import examples
from two_steps import both_ways, left, meaning
from verbs import check, transform_once as transform

from examples import all_examples

TARGETS = {
    f"{words}{', unsafe' if unsafe else ''}": Options(keras=keras, unsafe=unsafe)
    for words, keras in (("Keras 2", 2), ("Keras 3", 3), ("both", None))
    for unsafe in (False, True)
}
TO_SHIM = Options(target=Target.SHIM)
EXAMPLES = {
    f"{rule.code}: {example.id}": textwrap.dedent(example.before).encode()
    for rule, example in all_examples()
}
STAYS = {
    "tf_lossscale.keras.mixed_precision.LossScaleOptimizer": (
        "the shim's final class, which runs on Keras 2 and Keras 3"
    ),
    "tf_lossscale.compat.v1.tpu": "TensorFlow's own needs a TPU; the shim's also runs elsewhere",
    "tf_lossscale.contrib.tpu": "the same",
    "tf_lossscale.tpu": "the same",
}
"""What the second step leaves on the shim, though one step can end at TensorFlow's symbol."""
REPORTED_BY_FIRST_STEP = {
    "LS304: dynamic, and a number": "--to shim edits no arguments",
}
"""Programs of which two steps leave more: a call that fails in every TensorFlow."""


@pytest.mark.sampled(4)
@pytest.mark.parametrize("example", EXAMPLES)
@pytest.mark.parametrize("target", TARGETS)
def test_two_steps_end_where_one_does(example, target):
    options = TARGETS[target]
    ways = both_ways(EXAMPLES[example], options)
    one, two = meaning(ways.direct.source), meaning(ways.second.source)
    if options.unsafe:
        assert "tf_lossscale.tpu" not in two
        assert "tf_lossscale.compat" not in two
    if not any(path in two for path in STAYS):
        assert two == one
    if example in REPORTED_BY_FIRST_STEP:
        return
    assert left(ways.second) == left(ways.direct)
    again = transform(ways.second.source, options)
    assert again.source == ways.second.source
    assert left(again) == left(ways.second)


def test_every_exception_is_an_example():
    assert REPORTED_BY_FIRST_STEP.keys() <= EXAMPLES.keys()


@pytest.mark.parametrize("example", EXAMPLES)
def test_second_run_for_the_shim_changes_nothing(example):
    once = transform(EXAMPLES[example], TO_SHIM)
    again = transform(once.source, TO_SHIM)
    assert again.source == once.source
    assert not any(one.applied for one in again.findings)


RUNS = {**{words: TARGETS[words] for words in ("Keras 2", "Keras 3", "both")}, "shim": TO_SHIM}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("example", EXAMPLES)
@pytest.mark.parametrize("target", RUNS)
def test_second_run_changes_nothing_and_reports_the_same(example, target):
    for mark, unsafe in itertools.product([False, True], [False, True]):
        options = RUNS[target]._replace(mark=mark, unsafe=unsafe)
        first = transform(EXAMPLES[example], options)
        second = transform(first.source, options)
        assert second.source == first.source
        assert not any(one.applied for one in second.findings)
        assert codes(second) == codes(first)


def codes(result):
    return collections.Counter(one.code for one in result.findings if one.is_left)


def test_comment_of_mark_that_quotes_a_suppression_silences_nothing():
    source = b"""\
from project.lib import tf

opt = tf.keras.mixed_precision.experimental.LossScaleOptimizer(opt, 1)
"""
    marked = transform(source, Options(mark=True))
    assert b"# lossscale: ignore" in marked.source
    again = transform(marked.source, Options(mark=True))
    assert codes(again) == codes(marked)


def test_import_that_is_bound_again_below_changes_in_the_first_run():
    source = """\
        class Both:
            from tensorflow.contrib.tpu import CrossShardOptimizer

            opt = CrossShardOptimizer(opt)
            import tensorflow as tf

            CrossShardOptimizer = tf.contrib.tpu.CrossShardOptimizer

            def wrap(opt):
                return CrossShardOptimizer(opt)
        """
    first = transform(textwrap.dedent(source).encode(), Options())
    assert transform(first.source, Options()).source == first.source


SHIM = "import tf_lossscale as tfls\n\n"
OLD = "tfls.keras.mixed_precision.experimental"


@pytest.mark.parametrize(
    "body",
    [
        f"class Own(tfls.keras.mixed_precision.LossScaleOptimizer):\n    pass\n\n\n"
        f"opt = {OLD}.LossScaleOptimizer(opt, 'dynamic')\n",
        f"mp = {OLD}\nsetup(mp)\nmp.set_policy('mixed_float16')\n",
    ],
    ids=["beside the shim's final class", "where their module is passed on"],
)
def test_what_an_earlier_run_sent_to_the_shim_stays_there(body):
    result = transform((SHIM + body).encode(), Options(keras=2))
    assert result.source.decode() == SHIM + body


@pytest.mark.parametrize(
    ("path", "family"),
    [
        ("tf_lossscale.keras.mixed_precision.experimental.Policy", Family.EXPERIMENTAL),
        ("tf_lossscale.train.experimental.FixedLossScale", Family.V1),
        ("tf_lossscale.mixed_precision.experimental.LossScale", Family.V1),
        ("tf_lossscale.compat.v1.mixed_precision.DynamicLossScale", Family.V1),
        ("tf_lossscale.compat.v1.train.experimental.FixedLossScale", Family.V1),
        ("tf_lossscale.keras.mixed_precision.Policy", None),
        ("tf_lossscale.keras.mixed_precision.from_loss_scale", None),
        ("tf_lossscale.contrib.mixed_precision.LossScaleOptimizer", Family.CONTRIB),
        ("tf_lossscale.tpu.cross_replica_sum", Family.CROSS_SHARD),
        ("tf_lossscale.recording.start", None),
        ("tf_lossscale", None),
        ("project.tf_lossscale.train.experimental.FixedLossScale", None),
    ],
)
def test_names_of_the_shim(path, family):
    found = legacy_of(path)
    assert (found.family if found is not None else None) is family


IMPORTS = examples("""
    # from a module
    - from tf_lossscale.keras.mixed_precision import experimental as mp
    + from tensorflow.keras import mixed_precision as mp

    - mp.set_policy("mixed_float16")
    + mp.set_global_policy("mixed_float16")

    # one of two imports goes
    - import tf_lossscale as tfls
      import tensorflow as tf

    - opt = tfls.keras.mixed_precision.experimental.LossScaleOptimizer(opt, 8)
    + opt = tf.keras.mixed_precision.LossScaleOptimizer(opt, dynamic=False, initial_scale=8)
      print(opt.loss_scale)

    # beside what stays on the shim
      import tf_lossscale as tfls
    + import tensorflow as tf

      manager = tfls.contrib.mixed_precision.FixedLossScaleManager(8)
    - scale = tfls.train.experimental.FixedLossScale(8)
    + scale = tf.compat.v1.mixed_precision.FixedLossScale(8)

    # a dotted import
    - import tf_lossscale.keras.mixed_precision.experimental
    + import tensorflow as tf

    - tf_lossscale.keras.mixed_precision.experimental.set_policy("mixed_float16")
    + tf.keras.mixed_precision.set_global_policy("mixed_float16")
    """)


@pytest.mark.parametrize("example", IMPORTS, ids=lambda example: example.id)
def test_styles_of_imports(example):
    check(example)


def test_what_stays_on_the_shim_says_why():
    source = b"""\
import tf_lossscale as tfls

class Clipping(tfls.keras.mixed_precision.experimental.LossScaleOptimizer):
    pass
"""
    (finding,) = transform(source, Options()).findings
    assert not finding.is_left
    assert finding.message.startswith("stays on the shim; a subclass inherits")


CROSS_SHARD = b"""\
import tf_lossscale as tfls

opt = tfls.tpu.CrossShardOptimizer(opt)
"""


def test_cross_shard_optimizer_leaves_the_shim_with_unsafe_only():
    result = transform(CROSS_SHARD, Options())
    assert result.source == CROSS_SHARD
    (finding,) = result.findings
    assert not finding.is_left
    assert "needs a TPU" in finding.message
    result = transform(CROSS_SHARD, Options(unsafe=True))
    assert b"opt = tf.compat.v1.tpu.CrossShardOptimizer(opt)" in result.source
    (finding,) = result.findings
    assert "--to shim" not in finding.message


def test_final_class_of_the_shim_stays():
    source = b"""\
from tf_lossscale.keras.mixed_precision import LossScaleOptimizer

opt = LossScaleOptimizer(opt)
"""
    for options in (Options(), Options(keras=3), Options(target=Target.SHIM)):
        result = transform(source, options)
        assert result.source == source
        assert not result.findings


CONTRIB = b"""\
from tf_lossscale.contrib import mixed_precision as mp

manager = mp.FixedLossScaleManager(8)
opt = mp.LossScaleOptimizer(opt, manager)
"""


def test_contrib_classes_stay_without_a_finding_and_leave_with_unsafe():
    result = transform(CONTRIB, Options())
    assert result.source == CONTRIB
    assert not result.findings
    assert "migrated already" in result.note
    result = transform(CONTRIB, Options(unsafe=True))
    assert result.source.startswith(b"from tensorflow.compat.v1 import mixed_precision as mp\n")
    assert b"tf_lossscale" not in result.source
    assert [one.message.startswith("stays") for one in result.findings] == [False, False]


@pytest.mark.parametrize(
    "statement",
    [
        "from tf_lossscale.contrib import mixed_precision as _mp",
        "import tf_lossscale as tfls; setup(tfls.contrib.mixed_precision)",
    ],
)
def test_modules_that_stay_on_the_shim_are_not_reported(statement):
    assert not transform(f"{statement}\n".encode(), Options()).findings


def test_star_import_that_does_not_stay_is_reported():
    source = b"from tf_lossscale.keras.mixed_precision.experimental import *\n"
    (finding,) = transform(source, Options()).findings
    assert finding.code == "LS901"
    assert "missing in newer" not in finding.message


@pytest.mark.parametrize(
    "source",
    [
        # TensorFlow's class below 2.9, and the shim's above
        """\
        try:
            from tensorflow.keras.mixed_precision.experimental import LossScaleOptimizer
        except ImportError:
            from tf_lossscale.keras.mixed_precision.experimental import LossScaleOptimizer

        opt = LossScaleOptimizer(opt, 8)
        """,
        """\
        import tensorflow as tf
        import tf_lossscale as tfls

        if tf.__version__ < "2.4":
            opt = tfls.keras.mixed_precision.experimental.LossScaleOptimizer(opt, 8)
        else:
            opt = tf.keras.mixed_precision.LossScaleOptimizer(
                opt, dynamic=False, initial_scale=8
            )
        """,
    ],
)
def test_guards_between_the_shim_and_tensorflow_are_left_whole(source):
    source = textwrap.dedent(source).encode()
    assert transform(source, Options()).source == source


def test_both_sides_of_a_choice_on_the_shim_are_rewritten():
    source = b"""\
import tensorflow as tf
import tf_lossscale as tfls

mp = tfls.keras.mixed_precision.experimental
opt = mp.LossScaleOptimizer(opt, 8) if fixed else mp.LossScaleOptimizer(opt, "dynamic")
"""
    result = transform(source, Options())
    assert b"experimental" not in result.source
    assert not left(result)
