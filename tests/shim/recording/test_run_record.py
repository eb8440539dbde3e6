"""`tf-lossscale run --record`: the record of a script, and of the processes that it starts."""

import json
import os

import pytest
import tensorflow as tf
from processes import run_python

from tf_lossscale._recording.reading import read_record

SCRIPT = """
import json
import os
import subprocess
import sys

import tensorflow.compat.v1 as tf
from tensorflow.contrib.mixed_precision import FixedLossScaleManager, LossScaleOptimizer

with tf.Graph().as_default():
    weight = tf.get_variable("weight", initializer=1.0, use_resource=True)
    factor = tf.placeholder(tf.float32, [])
    optimizer = LossScaleOptimizer(tf.train.GradientDescentOptimizer(0.5), FixedLossScaleManager(8))
    step = optimizer.minimize(weight * factor)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for value in (1.0, float("inf"), 2.0):
            session.run(step, {factor: value})
        print(json.dumps(float(session.run(weight))), flush=True)
if len(sys.argv) == 1:
    sys.exit(subprocess.call([sys.executable, __file__, "child"]))
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return str(path)


def run(*arguments):
    return run_python("-m", "tf_lossscale._cli.main", "run", *arguments)


def test_the_script_and_the_process_that_it_starts_have_records(script, tmp_path):
    path = str(tmp_path / "record.jsonl")
    done = run("--record", path, script)
    assert done.returncode == 0, done.stderr
    assert [json.loads(line) for line in done.stdout.splitlines()] == [-0.5, -0.5]
    records = sorted(each for each in os.listdir(str(tmp_path)) if each.endswith(".jsonl"))
    assert len(records) == 2
    assert records[1] == "record.jsonl"
    for each in records:
        record = read_record(str(tmp_path / each))
        (optimizer,) = record.optimizers
        assert record.header.tensorflow == tf.__version__
        assert optimizer.applied == [True, False, True]
        assert optimizer.scales == [8.0, 8.0, 8.0]
        assert optimizer.norm == [1.0, None, 2.0]
        assert optimizer.names == ["weight"]


def test_wrong_options_are_refused(script, tmp_path):
    without = run("--no-norm", script)
    assert without.returncode == 2
    assert "--no-norm needs --record" in without.stderr
    unwritable = run("--record", str(tmp_path / "missing" / "record.jsonl"), script)
    assert unwritable.returncode == 2
    assert "cannot be written" in unwritable.stderr


def test_a_program_without_steps_says_so(tmp_path):
    path = str(tmp_path / "record.jsonl")
    done = run("--record", path, "-c", "import tensorflow; print('no training')")
    assert done.stdout == "no training\n"
    assert done.returncode == 0
    assert f"no step was recorded in {path}" in done.stderr
