"""`tf-lossscale run` and `python -m tf_lossscale`: as `python SCRIPT`, with the names in place."""

import json
import os
import subprocess
import sys

import pytest
from processes import REPOSITORY

PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs")
BOTH = pytest.mark.parametrize("command", [["tf_lossscale"], ["tf_lossscale._command", "run"]])


def run(command, *arguments, cwd=None):
    return subprocess.run(
        [sys.executable, "-m", *command, *arguments],
        env=dict(os.environ, PYTHONPATH=REPOSITORY, TF_CPP_MIN_LOG_LEVEL="3"),
        capture_output=True,
        text=True,
        cwd=cwd,
        check=False,
    )


@BOTH
def test_an_unmodified_legacy_script_trains(command):
    done = run(command, os.path.join(PROGRAMS, "legacy_training.py"), "--steps", "3")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert said == {"argv": ["--steps", "3"], "fixed": [0.0, 2], "moving": [0.0, 2]}


def test_spawned_forked_and_started_processes_have_the_names_too():
    done = run(["tf_lossscale"], os.path.join(PROGRAMS, "parent.py"))
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert said == dict.fromkeys(("spawn", "subprocess", "fork"), "LossScaleManager")


def test_the_script_sees_what_python_would_show_it(tmp_path):
    (tmp_path / "neighbour.py").write_text("VALUE = 7\n")
    script = tmp_path / "script.py"
    script.write_text(
        "import json, os, sys, neighbour\n"
        "print(json.dumps([__name__, __file__, sys.argv, neighbour.VALUE, "
        "sys.modules['__main__'].neighbour.VALUE, sys.path[0]]))\n"
        "sys.exit(5)\n"
    )
    ours = run(["tf_lossscale"], str(script), "-x", "--help")
    theirs = subprocess.run(
        [sys.executable, str(script), "-x", "--help"],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert (ours.stdout, ours.returncode) == (theirs.stdout, theirs.returncode)
    assert ours.returncode == 5


def test_a_traceback_shows_the_script_and_not_the_runner(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("def f():\n    raise ValueError('no')\nf()\n")
    ours = run(["tf_lossscale"], str(script))
    assert ours.returncode == 1
    assert "ValueError: no" in ours.stderr
    assert "_run.py" not in ours.stderr
    assert ours.stderr.startswith("Traceback")


def test_a_script_that_is_not_there_is_one_line_and_status_2(tmp_path):
    done = run(["tf_lossscale"], str(tmp_path / "none.py"))
    assert done.returncode == 2
    assert "none.py" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_doctor_says_what_is_there_and_what_is_supplied():
    import tensorflow as tf

    done = run(["tf_lossscale._command", "doctor"])
    assert done.returncode == 0, done.stderr
    assert tf.__version__ in done.stdout
    assert "tf.contrib.mixed_precision" in done.stdout
    assert "from the shim" in done.stdout


def test_doctor_without_tensorflow_says_what_to_install():
    code = (
        "import sys; sys.modules['tensorflow'] = None\n"
        "from tf_lossscale._command import main; sys.exit(main(['doctor']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=dict(os.environ, PYTHONPATH=REPOSITORY),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "pip install" in done.stderr


if sys.version_info < (3, 9):  # from there on they run; tests/codemods tests that

    @pytest.mark.parametrize("command", ["migrate", "rules", "explain"])
    def test_the_codemods_name_the_python_they_need(command):
        done = run(["tf_lossscale._command", command])
        assert done.returncode == 2
        assert "3.9" in done.stderr


def test_wrong_usage_is_status_2():
    assert run(["tf_lossscale._command", "migrat"]).returncode == 2
    assert run(["tf_lossscale._command", "run"]).returncode == 2
    assert run(["tf_lossscale._command"]).returncode == 2
