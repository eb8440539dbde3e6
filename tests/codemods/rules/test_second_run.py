"""A second run changes nothing and reports the same, with `--mark`, `--unsafe` or neither."""

import collections
import itertools
import textwrap

import pytest
from tf_lossscale_codemods.model import Options, Target
from verbs import transform_once as transform

from examples import all_examples

TARGETS = {
    "final, Keras 2": Options(keras=2),
    "final, Keras 3": Options(keras=3),
    "final, both": Options(keras=None),
    "shim": Options(target=Target.SHIM),
}
EXAMPLES = {
    f"{rule.code}: {example.id}": textwrap.dedent(example.before).encode()
    for rule, example in all_examples()
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("example", EXAMPLES)
@pytest.mark.parametrize("target", TARGETS)
def test_second_run_changes_nothing_and_reports_the_same(example, target):
    for mark, unsafe in itertools.product([False, True], [False, True]):
        options = TARGETS[target]._replace(mark=mark, unsafe=unsafe)
        first = transform(EXAMPLES[example], options)
        second = transform(first.source, options)
        assert second.source == first.source
        assert not any(one.applied for one in second.findings)
        assert left(second) == left(first)


def left(result):
    return collections.Counter(one.code for one in result.findings if one.is_left)


def test_comment_of_mark_that_quotes_a_suppression_silences_nothing():
    source = b"""\
from project.lib import tf

opt = tf.keras.mixed_precision.experimental.LossScaleOptimizer(opt, 1)
"""
    marked = transform(source, Options(mark=True))
    assert b"# lossscale: ignore" in marked.source
    again = transform(marked.source, Options(mark=True))
    assert left(again) == left(marked)


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
