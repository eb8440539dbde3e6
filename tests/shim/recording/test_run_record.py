"""`tf-lossscale record` and `run --record`: a script's record, and those of its processes."""

import json
import os
import subprocess
import sys

import pytest
import tensorflow as tf
from processes import REPOSITORY, run_python

from tf_lossscale._records.reading import read_record

pytestmark = pytest.mark.by_file

TF1 = tf.__version__.startswith("1.")
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


def command(*arguments, **options):
    return run_python("-m", "tf_lossscale._cli.main", *arguments, **options)


def run(*arguments, **options):
    return command("run", *arguments, **options)


def record(*arguments, **options):
    return command("record", *arguments, **options)


def start(*arguments, stdin=subprocess.PIPE):
    return subprocess.Popen(
        [sys.executable, *arguments],
        stdin=stdin,
        stdout=subprocess.PIPE,
        universal_newlines=True,
        env=dict(os.environ, PYTHONPATH=REPOSITORY),
    )


UNSCALED = """
import tensorflow.compat.v1 as tf
import tf_lossscale as tfls

tf.enable_eager_execution()
optimizer = tfls.compat.v1.mixed_precision.MixedPrecisionLossScaleOptimizer(
    tf.train.GradientDescentOptimizer(0.5), "dynamic"
)
optimizer.apply_gradients([(tf.constant(1.0), tf.Variable(1.0))])
"""


@pytest.mark.slow
def test_the_record_of_a_program_that_scales_no_loss(tmp_path):
    path = str(tmp_path / "record.jsonl")
    done = record(path, "-c", UNSCALED)
    assert "no loss was scaled through the optimizer" in done.stderr
    (optimizer,) = read_record(path).optimizers
    assert optimizer.scales_no_loss
    shown = command("show", path)
    assert "no loss was scaled through the optimizer" in shown.stdout


@pytest.mark.slow
def test_the_script_and_the_process_that_it_starts_have_records(script, tmp_path):
    path = str(tmp_path / "record.jsonl")
    done = run("--record", path, script)
    assert done.returncode == 0, done.stderr
    assert [json.loads(line) for line in done.stdout.splitlines()] == [-0.5, -0.5]
    assert done.stderr.count("tf-lossscale: recorded 3 steps in ") == 1
    summary, advice = done.stderr.splitlines()[-2:]
    assert summary == (
        f"tf-lossscale: recorded 3 steps in {path}: 1 skipped (in step 1), first in weight, loss "
        "scale 8."
    )
    assert advice.startswith("tf-lossscale: the loss itself is not finite")
    if not TF1:
        assert "the shim supplies tf.contrib" in done.stderr
    records = sorted(name for name in os.listdir(str(tmp_path)) if name.endswith(".jsonl"))
    assert len(records) == 2
    assert records[1] == "record.jsonl"
    for name in records:
        record = read_record(str(tmp_path / name))
        (optimizer,) = record.optimizers
        assert record.header.tensorflow == tf.__version__
        assert ("tf.contrib" in (record.header.supplied or [])) is not TF1
        assert optimizer.applied == [True, False, True]
        assert optimizer.scales == [8.0, 8.0, 8.0]
        assert optimizer.norm == [1.0, None, 2.0]
        assert optimizer.names == ["weight"]


PLAIN = SCRIPT.replace("from tensorflow.contrib", "from tf_lossscale.contrib").replace(
    "if len(sys.argv) == 1:", "if len(sys.argv) == 2:"
)


@pytest.mark.slow
def test_record_installs_nothing(tmp_path):
    path = str(tmp_path / "record.jsonl")
    lacking = record(path, "-c", "import tensorflow as tf; print(hasattr(tf, 'contrib'))")
    assert lacking.stdout == f"{TF1}\n"
    (tmp_path / "script.py").write_text(PLAIN)
    done = record("--seed", "1", path, "--no-norm", str(tmp_path / "script.py"))
    assert done.returncode == 0, done.stderr
    assert "the shim" not in done.stderr
    found = read_record(path)
    assert (found.header.supplied, found.header.replaced) == (None, None)
    (optimizer,) = found.optimizers
    assert (optimizer.steps, optimizer.norm) == ([0, 1, 2], [None] * 3)
    assert optimizer.finite == [True, False, True]


def test_record_runs_a_script_as_python_does(tmp_path):
    (tmp_path / "script.py").write_text(
        "import sys\nprint(__name__, sys.argv, sys.path[0])\nsys.exit(3)\n"
    )
    options = {"cwd": str(tmp_path)}
    plain = run_python("script.py", "--overwrite", "x", **options)
    recorded = record("record.jsonl", "script.py", "--overwrite", "x", **options)
    assert plain.returncode == recorded.returncode == 3
    assert plain.stdout == recorded.stdout
    assert plain.stdout.startswith("__main__ ['script.py', '--overwrite', 'x'] ")


@pytest.mark.parametrize("how", ["record", "run"])
def test_an_existing_file_is_refused_before_the_script_starts(tmp_path, how):
    folder = tmp_path / "runs"
    folder.mkdir()
    script, precious = tmp_path / "script.py", folder / "old.jsonl"
    script.write_text("print('started')")
    precious.write_text("an older record")
    (folder / "link").symlink_to(precious)

    def attempt(file, *rest, options=()):
        if how == "record":
            return record(*options, str(file), *rest)
        return run("--record", str(file), *options, *rest)

    for file in (precious, folder / "link", script, folder):
        for rest in ([str(script)], [str(script), "--help"], [str(tmp_path / "misspelt.py")]):
            done = attempt(file, *rest)
            assert (done.returncode, done.stdout) == (2, "")
            assert ("exists" in done.stderr) or ("is a directory" in done.stderr)
            assert len(done.stderr.splitlines()) == 1
    # What is no record is never replaced.
    done = attempt(precious, str(script), options=["--overwrite"])
    assert (done.returncode, done.stdout) == (2, "")
    assert "is not a record" in done.stderr
    assert precious.read_text() == "an older record"
    assert script.read_text() == "print('started')"
    assert sorted(os.listdir(str(folder))) == ["link", "old.jsonl"]


BEGINNINGS = {
    "a script that is not there": ["missing.py"],
    "a module that is not there": ["-c", "import missing"],
    "an error": ["-c", "1 / 0"],
    "an exit": ["-c", "import os; os._exit(3)"],
    "a signal": ["-c", "import os, signal; os.kill(os.getpid(), signal.SIGTERM)"],
    "a hang-up": ["-c", "import os, signal; os.kill(os.getpid(), signal.SIGHUP)"],
    "an interrupt": ["-c", "import os, signal; os.kill(os.getpid(), signal.SIGINT)"],
    "no training": ["-c", "import tensorflow"],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BEGINNINGS)
def test_an_old_record_stays_until_the_new_one_has_a_step(script, tmp_path, name):
    path = tmp_path / "old.jsonl"
    older = '{"tf_lossscale_record": 2}\n'
    path.write_text(older)
    record("--overwrite", str(path), *BEGINNINGS[name], cwd=str(tmp_path))
    assert path.read_text() == older
    assert sorted(os.listdir(str(tmp_path))) == ["old.jsonl", "script.py"]


def test_an_old_record_is_replaced_by_the_first_step(tmp_path):
    path, code = tmp_path / "old.jsonl", PLAIN.partition("if len(sys.argv)")[0]
    path.write_text('{"tf_lossscale_record": 2}\n')
    path.chmod(0o640)
    code += "print(sorted(os.listdir(sys.argv[1])))"
    done = record("--overwrite", str(path), "-c", code, str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "'old.jsonl'" in done.stdout
    assert read_record(str(path)).ended
    assert path.stat().st_mode & 0o777 == 0o640


def test_wrong_usage_of_record():
    for arguments, message in (
        ([], "the name of a FILE is required"),
        (["-c", "pass"], "the name of a FILE is required"),
        (["-"], "the name of a FILE is required"),
        (["run.jsonl"], "a script, -m, -c or - is required"),
        (["run.jsonl", "--no-such", "s.py"], "--no-such"),
    ):
        done = record(*arguments)
        assert done.returncode == 2
        assert message in done.stderr
    done = record("run.jsonl", "--help")
    assert done.returncode == 0
    assert "usage: " in done.stdout


def test_wrong_options_are_refused(script, tmp_path):
    without = run("--no-norm", script)
    assert without.returncode == 2
    assert "--no-norm needs --record" in without.stderr
    assert "--overwrite needs --record" in run("--overwrite", script).stderr
    unwritable = run("--record", str(tmp_path / "missing" / "record.jsonl"), script)
    assert unwritable.returncode == 2
    assert "cannot be written" in unwritable.stderr


@pytest.mark.slow
def test_a_program_without_steps_says_so_and_leaves_no_file(tmp_path):
    path = str(tmp_path / "record.jsonl")
    done = run("--record", path, "-c", "import tensorflow; print('no training')")
    assert done.stdout == "no training\n"
    assert done.returncode == 0
    assert f"no step was recorded in {path}" in done.stderr
    assert os.listdir(str(tmp_path)) == []


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
        for how in (["run", "--record", path], ["record", path], ["record", "--overwrite", path]):
            second = command(*how, "-c", "pass")
            assert second.returncode == 2
            assert f"Another process is recording to {path}" in second.stderr
            assert "Traceback" not in second.stderr
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
from tf_lossscale import recording
from tf_lossscale._recorder import session
from tf_lossscale._records.format import OptimizerRecord, RunHeader

recording.start("record.jsonl")
os.chdir("other")
file = session._recording.file  # TensorFlow, which makes steps, takes seconds to import
file.add_step(file.add_optimizer(RunHeader(), OptimizerRecord()), 0)
recording.stop()
"""
    done = run_python("-c", code)
    assert done.returncode == 0, done.stderr
    assert os.listdir(str(tmp_path / "other")) == []
    assert read_record(str(tmp_path / "record.jsonl")).ended


def test_the_script_holds_the_lock_but_not_the_processes_that_it_leaves(tmp_path):
    path = str(tmp_path / "record.jsonl")
    code = """
import fcntl, os, subprocess, sys
if os.fork() == 0:
    sys.stdin.readline()
    os._exit(0)
subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"])
try:
    with open(os.path.join(os.path.dirname(sys.argv[1]), ".record.jsonl.recording"), "a") as file:
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
