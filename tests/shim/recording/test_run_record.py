"""`tf-lossscale run --record`: the record of a script, and of the processes that it starts."""

import json
import os
import subprocess
import sys

import pytest
import tensorflow as tf
from processes import REPOSITORY, run_python

from tf_lossscale._records.reading import read_record

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


def start(*arguments, stdin=subprocess.PIPE):
    return subprocess.Popen(
        [sys.executable, *arguments],
        stdin=stdin,
        stdout=subprocess.PIPE,
        universal_newlines=True,
        env=dict(os.environ, PYTHONPATH=REPOSITORY),
    )


def test_the_script_and_the_process_that_it_starts_have_records(script, tmp_path):
    path = str(tmp_path / "record.jsonl")
    done = run("--record", path, script)
    assert done.returncode == 0, done.stderr
    assert [json.loads(line) for line in done.stdout.splitlines()] == [-0.5, -0.5]
    assert done.stderr.count("tf-lossscale: recorded 3 steps in ") == 1
    assert f"recorded 3 steps in {path}" in done.stderr
    assert "--seed" in done.stderr
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


# What the import of TensorFlow does, which takes seconds.
BEGINS = "from tf_lossscale._recorder import session; session.start_requested()\n"


def test_a_program_without_steps_says_so_and_leaves_no_file(tmp_path):
    path = str(tmp_path / "record.jsonl")
    (tmp_path / "record.jsonl").write_text("an older record")
    done = run("--record", path, "-c", BEGINS + "print('no training')")
    assert done.stdout == "no training\n"
    assert done.returncode == 0
    assert f"no step was recorded in {path}" in done.stderr
    assert not os.path.exists(path)


WAITING = """
import sys
import tf_lossscale as tfls

tfls.recording.start(sys.argv[1])
print("recording", flush=True)
sys.stdin.readline()
tfls.recording.stop()
tfls.recording.start(sys.argv[1])  # a process may replace its own record
tfls.recording.stop()
"""


def test_a_file_that_another_process_records_to_is_refused_and_left_alone(tmp_path):
    path = str(tmp_path / "record.jsonl")
    with start("-c", WAITING, path) as first:
        assert first.stdout.readline() == "recording\n"
        (tmp_path / "record.jsonl").write_text("the lines of the first process\n")
        second = run("--record", path, "-c", "pass")
        assert second.returncode == 2
        assert f"Another process is recording to {path}" in second.stderr
        assert "Traceback" not in second.stderr
        assert (tmp_path / "record.jsonl").read_text() == "the lines of the first process\n"
        inside = run_python("-c", WAITING, path)
        assert inside.returncode == 1
        assert "RecordingError: Another process" in inside.stderr
        first.communicate("\n")
    assert first.returncode == 0
    assert run("--record", path, "-c", "pass").returncode == 0


def test_a_relative_path_means_the_folder_at_the_start(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other").mkdir()
    code = """
import os
from tf_lossscale._recorder import session

session.start("record.jsonl")
os.chdir("other")
session._recording.file.write({"a": "line"})
session.stop()
"""
    done = run_python("-W", "ignore", "-c", code)  # without a step, which needs TensorFlow
    assert done.returncode == 0, done.stderr
    assert os.listdir(str(tmp_path / "other")) == []
    assert (tmp_path / "record.jsonl").read_text() == '{"a": "line"}\n'


def test_the_script_holds_the_lock_but_not_the_processes_that_it_leaves(tmp_path):
    path = str(tmp_path / "record.jsonl")
    code = f"""
import fcntl, os, subprocess, sys
{BEGINS}
if os.fork() == 0:
    sys.stdin.readline()
    os._exit(0)
subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"])
try:
    with open(sys.argv[1], "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    print("locked", flush=True)
"""
    reads, writes = os.pipe()
    try:
        with start(
            "-m", "tf_lossscale._cli.main", "run", "--record", path, "-c", code, path, stdin=reads
        ) as first:
            assert first.stdout.readline() == "locked\n"
            first.wait(60)
        again = run("--record", path, "-c", "pass")  # while the two processes still wait
        assert again.returncode == 0, again.stderr
    finally:
        os.close(writes)
        os.close(reads)
