"""`tf-lossscale record --disturb`: more runs of a script, and the processes that they are."""

import os
import signal
import subprocess
import sys
import time

import pytest
from processes import REPOSITORY, run_python

from tf_lossscale._cli.main import main
from tf_lossscale._records.disturbed import paths_of
from tf_lossscale._records.reading import read_record

pytestmark = pytest.mark.by_file

SCRIPT = """
import sys
import time

import numpy as np
import tensorflow.compat.v1 as tf

import tf_lossscale as tfls

namespace = tfls.compat.v1.mixed_precision
with tf.Graph().as_default():
    weight = tf.get_variable("weight", initializer=np.ones(64, "float32"))
    optimizer = namespace.MixedPrecisionLossScaleOptimizer(
        tf.train.GradientDescentOptimizer(0.01), namespace.DynamicLossScale(8.0, 3)
    )
    step = optimizer.minimize(tf.reduce_sum(tf.square(weight)))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for number in range(30):
            session.run(step)
        print("trained", flush=True)
        {then}
"""


def record(folder, *arguments, then="pass"):
    script = folder / "script.py"
    script.write_text(SCRIPT.replace("{then}", then))
    command = ["-m", "tf_lossscale._cli.main", "record", *arguments]
    return [*command, str(folder / "old.jsonl"), str(script)]


@pytest.mark.slow
def test_the_command_puts_disturbed_runs_beside_the_record(tmp_path, capsys):
    done = run_python(*record(tmp_path, "--disturb", "3"))
    assert done.returncode == 0, done.stderr
    assert done.stdout == "trained\n" * 4
    assert done.stderr.count("recorded 30 steps in ") == 1
    assert "disturbed run 3 of 3" in done.stderr
    old = str(tmp_path / "old.jsonl")
    paths = [str(tmp_path / f"old.disturbed-{number}.jsonl") for number in (1, 2, 3)]
    assert paths_of(old) == paths
    assert sorted(os.listdir(str(tmp_path))) == [
        *(f"old.disturbed-{number}.jsonl" for number in (1, 2, 3)),
        "old.jsonl",
        "script.py",
    ]
    header = read_record(old).header
    of_runs = [read_record(path).header.disturbed for path in paths]
    assert [(header.record, header.number) for header in of_runs] == [
        (header.id, number) for number in (1, 2, 3)
    ]
    assert [header.scale for header in of_runs] == [1.0, 1.37, 1.0]
    assert main(["compare", old, paths[0]]) == 1  # the hash of its weights is another one
    assert "other initial weights" in capsys.readouterr().out
    # The others are left alone, and a shorter series replaces all of them.
    done = run_python(*record(tmp_path, "--disturb", "1"))
    assert (done.returncode, done.stdout) == (2, "")
    assert "exists" in done.stderr
    assert read_record(old).header.id == header.id
    done = run_python(*record(tmp_path, "--disturb", "1", "--overwrite"))
    assert done.returncode == 0, done.stderr
    assert paths_of(old) == paths[:1]


@pytest.mark.slow
def test_a_command_before_each_run_puts_back_what_the_script_overwrites(tmp_path):
    then = "open(sys.argv[1], 'a').write('trained ')"
    command, state = record(tmp_path, "--disturb", "1", then=then), tmp_path / "state"
    state.write_text("from an earlier run ")
    before = f"echo fresh > '{state}'"
    place = command.index("--disturb")
    done = run_python(*command[:place], "--before", before, *command[place:], str(state))
    assert done.returncode == 0, done.stderr
    assert state.read_text() == "fresh\ntrained "
    failing = run_python(
        *command[:place], "--before", "exit 3", "--overwrite", *command[place:], str(state)
    )
    assert (failing.returncode, failing.stdout) == (2, "")
    assert "ended with status 3" in failing.stderr
    assert state.read_text() == "fresh\ntrained "
    alone = run_python(*command[:place], "--before", "pass", *command[place + 2 :])
    assert alone.returncode == 2
    assert "--before needs --disturb" in alone.stderr


@pytest.mark.slow
def test_a_script_that_fails_is_not_run_again(tmp_path):
    done = run_python(*record(tmp_path, "--disturb", "2", then="sys.exit(3)"))
    assert done.returncode == 3
    assert done.stdout == "trained\n"
    assert paths_of(str(tmp_path / "old.jsonl")) == []
    done = run_python("-m", "tf_lossscale._cli.main", "record", "--disturb", "2", "x", "-")
    assert done.returncode == 2
    for count in ("-1", "x", "1000"):
        done = run_python(*record(tmp_path, "--disturb", count))
        assert done.returncode == 2
        assert "is not a whole number" in done.stderr


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_ends_the_script_too(name, tmp_path):
    then = "print(__import__('os').getpid(), flush=True); time.sleep(60)"
    process = subprocess.Popen(
        [sys.executable, *record(tmp_path, "--disturb", "2", then=then)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        universal_newlines=True,
        env=dict(os.environ, PYTHONPATH=REPOSITORY),
        start_new_session=True,
    )
    assert process.stdout.readline() == "trained\n"
    child = int(process.stdout.readline())
    process.send_signal(getattr(signal, name))
    process.communicate(timeout=30)
    assert process.returncode != 0
    ends = time.monotonic() + 10
    while os.path.exists(f"/proc/{child}") and time.monotonic() < ends:
        time.sleep(0.05)
    assert not os.path.exists(f"/proc/{child}")
    assert sorted(os.listdir(str(tmp_path))) == ["old.jsonl", "script.py"]  # what it had
