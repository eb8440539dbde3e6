"""Three walks of users, in which a record or `compare` was wrong.

Their programs and records are in `tests/data`. The second one, a FILE that exists, is in
`test_run_record.py`.
"""

import os
import re

import numpy as np
import pytest
import tensorflow as tf
from processes import REPOSITORY, run_python

from tf_lossscale._cli.main import main
from tf_lossscale._records.reading import read_record

DATA = os.path.join(REPOSITORY, "tests", "data")
SCRIPT = os.path.join(DATA, "recorders", "walks", "hidden_class.py")
IS_KERAS_3 = hasattr(tf.keras, "Operation")
only_keras_3 = pytest.mark.skipif(not IS_KERAS_3, reason="the class of Keras 3 is replaced")
BY_SHIM = "tf.keras.mixed_precision.LossScaleOptimizer replaced by the shim"


def walk(name):
    return os.path.join(DATA, "records", "walks", name + ".jsonl.gz")


def command(*arguments, **options):
    return run_python("-m", "tf_lossscale._cli.main", *map(str, arguments), **options)


def lines_of(capsys, *arguments, status):
    """Runs the command in this process; returns the lines that it prints."""
    assert main([str(argument) for argument in arguments]) == status
    return capsys.readouterr().out.splitlines()


# ------------------------------------------------------- `run --record` replaces the class in use


@pytest.mark.slow
@only_keras_3
def test_a_record_of_a_replaced_class_says_so_everywhere(tmp_path, capsys):
    plain, replaced = tmp_path / "plain.jsonl", tmp_path / "replaced.jsonl"
    done = command("record", plain, SCRIPT)
    assert done.returncode == 0, done.stderr
    assert "by the shim" not in done.stderr
    assert "shim replaces" not in done.stderr
    assert read_record(str(plain)).header.replaced is None

    done = command("run", "--record", replaced, SCRIPT)
    assert done.returncode == 0, done.stderr
    said = [line for line in done.stderr.splitlines() if "the shim replaces" in line]
    assert said
    assert "tf.keras.mixed_precision.LossScaleOptimizer" in said[0]
    paths = re.findall(r"tf\.[\w.]*\w", " ".join(said))
    assert len(paths) == len(set(paths))
    assert (
        "tf.keras.mixed_precision.LossScaleOptimizer" in read_record(str(replaced)).header.replaced
    )

    assert BY_SHIM in lines_of(capsys, "show", replaced, status=0)[0]
    # The class of Keras 3 finds no loss that is scaled, and does not train the program.
    for old in (replaced, walk("run-hides-old")):
        first, *_ = lines_of(capsys, "compare", old, plain, status=1)
        assert first.startswith("Different: the gradient norms differ at step 0, before an update")
        assert "its loss is not scaled" in first
    assert BY_SHIM in lines_of(capsys, "compare", walk("run-hides-old"), replaced, status=1)[0]


def test_the_records_of_that_walk(capsys):
    old, new, plain = (walk(f"run-hides-{name}") for name in ("old", "new", "plain"))
    first, *_ = lines_of(capsys, "compare", old, plain, status=1)
    assert first.startswith("Different: ")
    assert "its loss is not scaled" in first
    # A record of that time does not have the names. Nothing is the same without disturbed runs.
    assert lines_of(capsys, "compare", old, new, status=1)[0].startswith("Not shown to be the same")


# ----------------------------------------------------------------------------- a clipped upgrade


@pytest.mark.parametrize("name", ["clip-float32", "clip03-fp16"])
def test_a_clipped_upgrade_is_not_called_different(name, capsys):
    lines = lines_of(capsys, "compare", walk(name + "-2.3"), walk(name + "-2.21"), status=1)
    assert lines[0].startswith("Not shown to be the same")
    assert "cause" not in lines[0]
    assert "record --disturb 5" in lines[1]


CLIPPED = """
import sys

import numpy as np
import tensorflow as tf

import tf_lossscale as tfls

owner = tfls if sys.argv[1] == "shim" else tf
weights = [tf.Variable(value) for value in np.load(sys.argv[2])]
optimizer = owner.keras.mixed_precision.LossScaleOptimizer(
    tf.keras.optimizers.SGD(0.05, 0.9), initial_scale=2.0**16, dynamic_growth_steps=20)
random = np.random.RandomState(3)


@tf.function
def step(x, y):
    with tf.GradientTape() as tape:
        first, second = (tf.cast(weight, tf.float16) for weight in weights)
        error = tf.matmul(tf.tanh(tf.matmul(tf.cast(x, tf.float16), first)), second)
        loss = tf.reduce_mean(tf.square(tf.cast(error, tf.float32) - y))
        scaled = optimizer.get_scaled_loss(loss)
    gradients = optimizer.get_unscaled_gradients(tape.gradient(scaled, weights))
    gradients, _ = tf.clip_by_global_norm(gradients, 0.3)
    optimizer.apply_gradients(zip(gradients, weights))


for _ in range(60):
    x = random.randn(32, 8).astype("float32")
    step(tf.constant(x), tf.constant(x[:, ::-1]) * 2)
"""


@pytest.mark.slow
@only_keras_3
def test_a_clipped_upgrade_from_keras_2_to_keras_3_is_the_same(tmp_path, capsys):
    pytest.importorskip("tf_keras")
    script, weights = tmp_path / "train.py", str(tmp_path / "weights.npy")
    script.write_text(CLIPPED)
    np.save(weights, np.random.RandomState(1).randn(2, 8, 8).astype("float32") * 0.5)
    old, new = tmp_path / "old.jsonl", tmp_path / "new.jsonl"
    legacy = {"TF_USE_LEGACY_KERAS": "1"}
    done = command("record", "--disturb", 2, old, script, "original", weights, env=legacy)
    assert done.returncode == 0, done.stderr
    done = command("record", new, script, "shim", weights)
    assert done.returncode == 0, done.stderr
    assert max(read_record(str(new)).optimizers[0].norm[:20]) == pytest.approx(0.3, rel=1e-2)
    first, *_ = lines_of(capsys, "compare", old, new, status=0)
    assert first.startswith(("Same: ", "Alike: "))
    # The same program that clips at another norm is found, with its cause.
    script.write_text(CLIPPED.replace("0.3)", "0.25)"))
    done = command("record", "--overwrite", new, script, "shim", weights)
    assert done.returncode == 0, done.stderr
    first, *_ = lines_of(capsys, "compare", old, new, status=1)
    assert first.startswith("Different: ")
