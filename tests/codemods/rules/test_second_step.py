"""`migrate` after `migrate --to shim` ends where `migrate` alone does, on every example of a rule.

So the two steps of a migration can follow each other. What the second one cannot do is a finding.
And a second run of one step changes nothing and reports the same.
"""

import collections
import itertools
import pathlib
import textwrap

import pytest
from tf_lossscale_codemods.model import Options, Target
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
    "tf_lossscale.keras.mixed_precision": (
        "the shim's final class and policies, which run on Keras 2 and Keras 3"
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
RIGHT_ON_THE_SHIM = {
    "LS304: a program of keras alone, which may run on another backend": (
        "--to shim asks for the shim, which needs TensorFlow"
    ),
    "LS901: modules that are kept in attributes and tables": (
        "what is read from the module is right, since it is the shim's then"
    ),
}
"""Programs of which two steps leave less."""


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
    if example in RIGHT_ON_THE_SHIM:
        assert not left(ways.second) - left(ways.direct)
    else:
        assert left(ways.second) == left(ways.direct)
    again = transform(ways.second.source, options)
    assert again.source == ways.second.source
    assert left(again) == left(ways.second)


def test_every_exception_is_an_example():
    assert {*REPORTED_BY_FIRST_STEP, *RIGHT_ON_THE_SHIM} <= EXAMPLES.keys()


@pytest.mark.parametrize("example", EXAMPLES)
def test_second_run_for_the_shim_changes_nothing(example):
    once = transform(EXAMPLES[example], TO_SHIM)
    again = transform(once.source, TO_SHIM)
    assert again.source == once.source
    assert not any(finding.applied for finding in again.findings)


RUNS = {**{words: TARGETS[words] for words in ("Keras 2", "Keras 3", "both")}, "shim": TO_SHIM}


@pytest.mark.parametrize("example", EXAMPLES)
@pytest.mark.parametrize("target", RUNS)
def test_second_run_changes_nothing_and_reports_the_same(example, target):
    for mark, unsafe in itertools.product([False, True], [False, True]):
        options = RUNS[target]._replace(mark=mark, unsafe=unsafe)
        first = transform(EXAMPLES[example], options)
        second = transform(first.source, options)
        assert second.source == first.source
        assert not any(finding.applied for finding in second.findings)
        assert codes(second) == codes(first)


def codes(result):
    return collections.Counter(finding.code for finding in result.findings if finding.is_left)


def test_comment_of_mark_that_quotes_a_suppression_silences_nothing():
    source = b"""\
from project.lib import tf

opt = tf.keras.mixed_precision.experimental.LossScaleOptimizer(opt, 1)
"""
    marked = transform(source, Options(mark=True))
    assert b"# lossscale: ignore" in marked.source
    again = transform(marked.source, Options(mark=True))
    assert codes(again) == codes(marked)


FROM_SHIM = examples("""
    # an import that is bound again below
      class Both:
    -     from tensorflow.contrib.tpu import CrossShardOptimizer
    +     from tensorflow.compat.v1.tpu import CrossShardOptimizer
    +     import tensorflow

    -     opt = CrossShardOptimizer(opt)
    +     opt = tensorflow.compat.v1.tpu.CrossShardOptimizer(opt)
          import tensorflow as tf

    -     CrossShardOptimizer = tf.contrib.tpu.CrossShardOptimizer
    +     CrossShardOptimizer = tf.compat.v1.tpu.CrossShardOptimizer

          def wrap(opt):
              return CrossShardOptimizer(opt)

    # stays beside the shim's final class
    > safe
      import tf_lossscale as tfls

      class Own(tfls.keras.mixed_precision.LossScaleOptimizer):
          pass

      opt = tfls.keras.mixed_precision.experimental.LossScaleOptimizer(opt, 'dynamic')

    # stays where it has a subclass
    > safe: stays on the shim; a subclass inherits
      import tf_lossscale as tfls

      class Clipping(tfls.keras.mixed_precision.experimental.LossScaleOptimizer):
          pass

    # the cross-shard optimizer stays
    > safe: needs a TPU
      import tf_lossscale as tfls

      opt = tfls.tpu.CrossShardOptimizer(opt)

    # the cross-shard optimizer leaves with --unsafe
    > unsafe, --unsafe: needs a TPU
    - import tf_lossscale as tfls
    + import tensorflow as tf

    - opt = tfls.tpu.CrossShardOptimizer(opt)
    + opt = tf.compat.v1.tpu.CrossShardOptimizer(opt)

    # the shim's final class stays for Keras 2
      from tf_lossscale.keras.mixed_precision import LossScaleOptimizer

      opt = LossScaleOptimizer(opt)

    # the shim's final class stays on the shim
    > --to shim
      from tf_lossscale.keras.mixed_precision import LossScaleOptimizer

      opt = LossScaleOptimizer(opt)

    # the classes of contrib stay
      from tf_lossscale.contrib import mixed_precision as mp

      manager = mp.FixedLossScaleManager(8)
      opt = mp.LossScaleOptimizer(opt, manager)

    # the classes of contrib leave with --unsafe
    > unsafe, --unsafe
    - from tf_lossscale.contrib import mixed_precision as mp
    + from tensorflow.compat.v1 import mixed_precision as mp

    - manager = mp.FixedLossScaleManager(8)
    - opt = mp.LossScaleOptimizer(opt, manager)
    + manager = mp.FixedLossScale(8)
    + opt = mp.MixedPrecisionLossScaleOptimizer(opt, manager)

    # a star import that does not stay
    > manual: names from `import *`
      from tf_lossscale.keras.mixed_precision.experimental import *

    # a guard that chooses TensorFlow's class below 2.9
    > safe: right as it is
      try:
    -     from tensorflow.keras.mixed_precision.experimental import LossScaleOptimizer
    +     from tf_lossscale.keras.mixed_precision.experimental import LossScaleOptimizer
      except ImportError:
          from tf_lossscale.keras.mixed_precision.experimental import LossScaleOptimizer

      opt = LossScaleOptimizer(opt, 8)

    # both sides of a choice
      import tensorflow as tf
    - import tf_lossscale as tfls

    - m = tfls.keras.mixed_precision.experimental
    - o = m.LossScaleOptimizer(o, 8) if a else m.LossScaleOptimizer(o, "dynamic")
    + m = tf.keras.mixed_precision
    + o = m.LossScaleOptimizer(o, dynamic=False, initial_scale=8) if a else m.LossScaleOptimizer(o)

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
    """)


@pytest.mark.parametrize("example", FROM_SHIM, ids=lambda example: example.id)
def test_from_the_shim(example):
    check(example)


LOOP = """\
import tensorflow as tf
import tf_lossscale as tfls

opt = tfls.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD())

def step(loss):
    scaled = opt.get_scaled_loss(loss)
    grads = opt.get_unscaled_gradients(tf.gradients(scaled, variables))
    grads, _ = tf.clip_by_global_norm(grads, 1.0)
    opt.apply_gradients(zip(grads, variables))
"""


def test_a_loop_that_stays_on_the_shim_says_why(command_line):
    """The guide's own example: it clips between unscaling and applying."""
    command_line.write(train=LOOP.encode())
    ran = command_line.run("migrate", "--keras", "3", "--unsafe", "--write", "-v")
    assert ran.status == 0
    (line,) = [line for line in ran.out.decode().splitlines() if line.startswith("train.py:")]
    assert line.startswith("train.py:7:14: LS402 safe (unchanged) LossScaleOptimizer.get_scaled")
    assert "with nothing between unscaling and applying" in line
    assert command_line.bytes_on_disk()["train.py"] == LOOP.encode()
    command_line.write(other=b"from train import opt\n\nopt.apply_gradients(x)\n" + LOOP.encode())
    ran = command_line.run("migrate", "--keras", "3", "--unsafe", "-v")
    assert b"because other files make, use or test for" in ran.out
    assert b"stays on" not in command_line.run("migrate", "--keras", "3", "-v").out


@pytest.mark.parametrize(
    ("arguments", "moves"),
    [
        *(("", True), (", initial_scale=8", True), (", False", False), (", True, 8.0", False)),
        *((", dynamic=True", False), (", *more", False), (", **more", False)),
    ],
)
def test_a_loop_moves_only_if_the_class_of_keras_3_takes_the_arguments(
    arguments, moves, command_line
):
    """The class of Keras 3 has no `dynamic`: its second argument is the initial scale."""
    plain = LOOP.replace("    grads, _ = tf.clip_by_global_norm(grads, 1.0)\n", "")
    final = plain.replace("import tf_lossscale as tfls\n", "").replace("tfls.", "tf.")
    final = final.replace("tf.gradients(", "tape.gradient(")
    command_line.write(train=final.replace(".SGD())", f".SGD(){arguments})").encode())
    ran = command_line.run("migrate", "--keras", "3", "--unsafe")
    assert (b"scale_loss(loss)\n" in ran.out.replace(b"get_scaled_loss", b"")) == moves
    assert (b"+opt = tfls." in ran.out) != moves


GUIDES = pathlib.Path(__file__).parents[3] / "examples"


def copied(command_line, example):
    for source in GUIDES.joinpath(example).glob("*.py"):
        command_line.path(source.name).write_bytes(source.read_bytes())


def test_the_last_step_of_the_guide_for_keras_says_why_it_changes_nothing(command_line):
    """And once the loop is what the note says, the step does it."""
    copied(command_line, "guide-keras")
    for options in (["--to", "shim"], ["--keras", "3"]):
        command_line.run("migrate", "--write", "--allow-dirty", *options)
    last = ("migrate", "--keras", "3", "--unsafe", "--allow-dirty", "--write")
    ran = command_line.run(*last)
    notes = [line for line in ran.out.decode().splitlines() if "LS402 safe (unchanged)" in line]
    assert ran.status == 0
    assert [note.partition(":")[0] for note in notes] == ["train.py"]
    for name in ("finetune.py", "test_finetune.py"):
        command_line.path(name).unlink()
    path = command_line.path("train.py")
    lines = path.read_text().splitlines(keepends=True)
    plain = "".join(
        line for line in lines if "clip_by_global" not in line and "print(f" not in line
    )
    path.write_text(plain.replace("Adam(0.003)", "Adam(0.003, global_clipnorm=1.0)"))
    ran = command_line.run(*last)
    assert b"write tf.keras.mixed_precision.LossScaleOptimizer for the shim's class" in ran.out
    path.write_text(path.read_text().replace("from tf_lossscale.keras", "from tensorflow.keras"))
    ran = command_line.run(*last)
    assert b"LS402 unsafe" in ran.out
    assert "get_unscaled_gradients" not in path.read_text()


@pytest.mark.parametrize(
    ("keras", "is_wrapped", "module"),
    [("3", True, "tensorflow"), ("3", False, "tf_lossscale"), ("2", False, "tensorflow")],
)
def test_where_the_guide_for_keras_ends(command_line, keras, is_wrapped, module):
    """The wrap before `compile` lets the policy move for Keras 3, and holds it for Keras 2."""
    copied(command_line, "guide-keras")
    command_line.run("migrate", "--to", "shim", "--write")
    if is_wrapped:
        path = command_line.path("finetune.py")
        wrapped = "tfls.keras.mixed_precision.LossScaleOptimizer(optimizer)"
        source = path.read_text().replace("import model\n", "import model, tf_lossscale as tfls\n")
        made = "tf.keras.optimizers.SGD(lr=0.1, momentum=0.9)"
        path.write_text(source.replace(made, wrapped.replace("optimizer)", f"{made})")))
    assert command_line.run("migrate", "--keras", keras, "--write", "--allow-dirty").status == 0
    policy = command_line.path("model.py").read_text()
    assert f"from {module}.keras" in policy
    optimizer = command_line.path("train.py").read_text()
    home = "tensorflow" if keras == "2" else "tf_lossscale"
    assert f"from {home}.keras import mixed_precision" in optimizer
    assert "mixed_precision.LossScaleOptimizer(tf.keras.optimizers.Adam(0.003), init" in optimizer


def test_the_last_step_of_the_guide_for_tensorflow_1_replaces_the_contrib_classes(command_line):
    copied(command_line, "guide-tf1")
    command_line.run("migrate", "--write", "--allow-dirty", "--to", "shim")
    ran = command_line.run("migrate", "--write", "--allow-dirty", "--unsafe")
    assert b"0 safe, 3 unsafe, 0 manual" in ran.out
    assert "tf_lossscale" not in command_line.path("amp.py").read_text()
