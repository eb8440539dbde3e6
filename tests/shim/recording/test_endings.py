"""What a record holds, however its process ends."""

import signal

import pytest
from processes import run_forked, run_python

from tf_lossscale._records.reading import read_record

SCRIPT = """
import os
import signal
import sys
import time

import tensorflow.compat.v1 as tf

import tf_lossscale as tfls

{before}
if len(sys.argv) > 1:
    tfls.recording.start(sys.argv[1])
with tf.Graph().as_default():
    weight = tf.get_variable("weight", initializer=1.0, use_resource=True)
    namespace = tfls.compat.v1.mixed_precision
    optimizer = namespace.MixedPrecisionLossScaleOptimizer(
        tf.train.GradientDescentOptimizer(0.5), namespace.DynamicLossScale()
    )
    step = optimizer.minimize(weight * 1.0)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(7):
            session.run(step)
        {then}
"""
STEPS = list(range(7))


def run(path, then, before=""):
    """Runs a script that makes seven steps; returns the process, and the record."""
    script = path.parent / "script.py"
    script.write_text(SCRIPT.replace("{then}", then).replace("{before}", before))
    return run_forked(str(script), str(path)), read_record(str(path))


def steps(record):
    (optimizer,) = record.optimizers
    return optimizer.steps


ENDINGS = {
    "stop": ("tfls.recording.stop()", 0, True),
    "the end of the script": ("pass", 0, True),
    "an exit": ("sys.exit(3)", 3, True),
    "an error": ("raise ValueError('on purpose')", 1, False),
    "os._exit": ("os._exit(0)", 0, True),
    "os._exit with an error": ("os._exit(5)", 5, False),
    **{
        name: (f"os.kill(os.getpid(), signal.{name}); time.sleep(60)", -number, False)
        for name, number in (("SIGTERM", signal.SIGTERM), ("SIGHUP", signal.SIGHUP))
    },
}


@pytest.mark.parametrize("name", ENDINGS)
def test_all_steps_are_written_and_whether_the_program_ended_itself(name, tmp_path):
    then, status, has_ended = ENDINGS[name]
    done, record = run(tmp_path / "record.jsonl", then)
    assert done.returncode == status, done.stderr
    assert steps(record) == STEPS
    assert record.ended is has_ended


def test_the_handler_that_a_script_has_set_is_called(tmp_path):
    before = """
def handler(number, frame):
    print("the handler of the script", flush=True)
    sys.exit(4)
signal.signal(signal.SIGTERM, handler)
"""
    then = "os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)"
    done, record = run(tmp_path / "record.jsonl", then, before)
    assert (done.returncode, done.stdout) == (4, "the handler of the script\n")
    assert steps(record) == STEPS
    assert record.ended is False


def test_a_signal_that_a_script_ignores_remains_ignored(tmp_path):
    before = "signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    then = "os.kill(os.getpid(), signal.SIGTERM); print('goes on')"
    done, record = run(tmp_path / "record.jsonl", then, before)
    assert (done.returncode, done.stdout) == (0, "goes on\n")
    assert record.ended is True


def test_the_handler_and_the_exit_are_as_before_after_stop(tmp_path):
    before = "handler, leave = signal.getsignal(signal.SIGTERM), os._exit"
    then = (
        "tfls.recording.stop(); "
        "print(signal.getsignal(signal.SIGTERM) is handler, os._exit is leave)"
    )
    done, _ = run(tmp_path / "record.jsonl", then, before)
    assert done.stdout == "True True\n", done.stderr


def test_steps_are_written_while_others_go_on(tmp_path):
    # The step after the pause is made after the record is written. SIGKILL leaves no time for more.
    then = "time.sleep(1.2); session.run(step); os.kill(os.getpid(), signal.SIGKILL)"
    done, record = run(tmp_path / "record.jsonl", then)
    assert done.returncode == -signal.SIGKILL
    assert steps(record) == STEPS
    assert record.ended is False


def test_a_script_without_tensorflow_leaves_a_sentence_and_no_file(tmp_path):
    path = tmp_path / "record.jsonl"
    command = ("-m", "tf_lossscale._cli.main", "run", "--record", str(path))
    done = run_python(*command, "-c", "print('no training')")
    assert (done.returncode, done.stdout) == (0, "no training\n")
    assert done.stderr == (
        f"tf-lossscale: nothing was recorded in {path}: the script did not import TensorFlow.\n"
    )
    assert not path.exists()
