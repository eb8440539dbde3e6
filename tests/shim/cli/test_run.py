"""`tf-lossscale run` and `python -m tf_lossscale`: as `python SCRIPT`, with the names in place."""

import json
import os
import signal
import subprocess
import sys
import zipfile
from typing import Any, List, Sequence

import pytest
from processes import REPOSITORY, SHIM, run_python

from tf_lossscale._cli.main import main

pytestmark = pytest.mark.by_file


def python(*arguments: str, stdin: str = "", **options: Any) -> Any:
    return run_python(*arguments, input=stdin, **options)


def run(command: Sequence[str], *arguments: str, **options: Any) -> Any:
    return python("-m", *command, *arguments, **options)


def agree(
    arguments: Sequence[str], options: Sequence[str] = (), **others: Any
) -> "subprocess.CompletedProcess[str]":
    """Runs `python ARGUMENTS`, and `run` with the same, and asserts that nothing differs."""
    theirs = python(*options, *arguments, **others)
    ours = python(*options, "-m", "tf_lossscale", *arguments, **others)
    assert ours.stdout == theirs.stdout
    assert ours.stderr == theirs.stderr
    assert ours.returncode == theirs.returncode
    return ours


@pytest.mark.slow
def test_spawned_forked_and_started_processes_have_the_names_too():
    done = run(["tf_lossscale"], os.path.join(SHIM, "cli", "programs", "parent.py"))
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert said == {
        "spawn": "LossScaleManager",
        "subprocess": "_InstallingLoader",
        "fork": "_InstallingLoader",
    }


SHOW = """\
import json, sys
names = ["__name__", "__file__", "__package__", "__doc__", "__cached__"]
print(json.dumps({name: globals()[name] for name in names if name in globals()}))
print(type(__loader__), getattr(__spec__, "name", None), sorted(globals()))
print(json.dumps([sys.argv, sys.path, sys.warnoptions, sorted(sys._xoptions)]), sys.flags)
print("sitecustomize" in sys.modules, "tf_lossscale" in sys.modules, sys.stdout.write_through)
sys.exit(5)
"""


@pytest.mark.parametrize(
    "options",
    [[], ["-u"], ["-O", "-B", "-X", "dev", "-W", "error::UserWarning", "-X", "key=value"], ["-bb"]],
    ids=" ".join,
)
def test_the_script_sees_what_python_shows_it(tmp_path: Any, options: List[str]):
    (tmp_path / "script.py").write_text(SHOW)
    # Some images set the second one, which would stand in for -u.
    env = {"PYTHONWARNINGS": "ignore::ImportWarning", "PYTHONUNBUFFERED": ""}
    for path in (str(tmp_path / "script.py"), "script.py"):
        done = agree([path, "-x", "--help", "--", "--replace"], options, cwd=str(tmp_path), env=env)
        assert done.returncode == 5


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python has it from 3.11 on")
def test_a_safe_path_stays_safe(tmp_path: Any):
    (tmp_path / "script.py").write_text(SHOW)
    agree(["script.py"], ["-P"], cwd=str(tmp_path))
    agree(["script.py"], cwd=str(tmp_path), env={"PYTHONSAFEPATH": "1"})


def test_modules_code_folders_archives_and_standard_input_run(tmp_path: Any):
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    for name in ("__main__.py", "part.py"):
        (package / name).write_text(SHOW)
    with zipfile.ZipFile(str(tmp_path / "archive.zip"), "w") as archive:
        archive.writestr("__main__.py", SHOW)
    for arguments in [
        ["-m", "package", "-m", "x"],
        ["-mpackage.part", "--", "x"],
        ["-c", SHOW, "-c"],
        ["package"],
        ["archive.zip", "x"],
        ["--", "archive.zip"],
    ]:
        assert agree(arguments, cwd=str(tmp_path)).returncode == 5, arguments
    assert agree(["-", "x"], stdin=SHOW, cwd=str(tmp_path)).returncode == 5
    agree(["-m", "package.none"], cwd=str(tmp_path))
    agree(["-c"])
    assert agree(["none.py"], cwd=str(tmp_path)).returncode == 2


FAILURES = {
    "exception": "def f():\n    raise ValueError('no')\nf()\n",
    "chained": "try:\n    1 / 0\nexcept ZeroDivisionError as error:\n"
    "    raise KeyError('x') from error\n",
    "in_context": "try:\n    1 / 0\nexcept ZeroDivisionError:\n    {}['x']\n",
    "syntax": "x = (1,\n  2\ny = 3 +\n",
    "encoding": "# coding: no-such\n",
    "in_a_thread": "import threading\n"
    "def f():\n    raise ValueError('no')\n"
    "t = threading.Thread(target=f, name='t'); t.start(); t.join()\n",
    "exit_message": "import sys\nsys.exit('a message')\n",
    "exit_none": "import atexit\natexit.register(print, 'bye')\nraise SystemExit\n",
    "hook": "import sys\nsys.excepthook = lambda *a: print(a[0], a[2].tb_frame.f_lineno)\n1 / 0\n",
    "import": "import no_such_module_at_all\n",
    "stack": "import inspect\nprint([f.filename for f in inspect.stack()])\n",
    "warning": "import warnings\nwarnings.warn('w', stacklevel=9)\nwarnings.warn('v')\n",
    "base_exception": "raise BaseException('bare')\n",
}


@pytest.mark.parametrize("name", sorted(FAILURES))
def test_what_a_script_ends_with_reads_as_under_python(tmp_path: Any, name: str):
    (tmp_path / "script.py").write_text(FAILURES[name])
    done = agree(["script.py"], cwd=str(tmp_path))
    assert done.stderr or done.stdout


@pytest.mark.skipif(os.name == "nt", reason="a signal of POSIX")
def test_an_interrupt_ends_the_script_as_it_does_under_python(tmp_path: Any):
    (tmp_path / "script.py").write_text(
        "import os, signal, time\n"
        # A job that a shell starts in the background ignores it otherwise.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "os.kill(os.getpid(), signal.SIGINT)\n"
        "time.sleep(60)\n"
    )
    theirs = python("script.py", cwd=str(tmp_path))
    ours = run(["tf_lossscale"], "script.py", cwd=str(tmp_path))
    assert ours.returncode == theirs.returncode
    assert ours.returncode in (1, -signal.SIGINT)  # Python 3.7 exits with 1
    for done in (theirs, ours):
        assert done.stderr.rstrip().endswith("KeyboardInterrupt")
        assert done.stderr.count("  File ") == 1


@pytest.mark.parametrize("option", ["-I", "-E", "-S"])
def test_an_option_that_would_drop_the_names_is_refused(tmp_path: Any, option: str):
    code = (
        "import sys; sys.path.insert(0, sys.argv.pop(1)); from tf_lossscale._cli.main import main"
    )
    done = python(option, "-c", code + "; sys.exit(main())", REPOSITORY, "run", "x.py")
    assert done.returncode == 2
    assert "tf_lossscale.install()" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_doctor_says_what_is_there_and_what_is_supplied(capsys):
    import tensorflow as tf

    assert main(["doctor"]) == 0
    said = capsys.readouterr().out
    assert tf.__version__ in said
    assert "tf.contrib.mixed_precision" in said
    assert "from the shim" in said
    assert "\nmigrate        " in said


@pytest.mark.parametrize(
    ("code", "version", "message"),
    [
        (None, "none", "Install it with `pip install "),
        ("raise ImportError('no libcuda.so')", "cannot be imported", "no libcuda.so"),
        ("import numpy; numpy.no_such", "cannot be imported", "no_such"),
    ],
)
def test_doctor_without_a_tensorflow_that_works(tmp_path, code, version, message):
    if code is not None:
        (tmp_path / "tensorflow.py").write_text(code)
    change = "sys.modules['tensorflow'] = None" if code is None else "sys.path[:0] = [sys.argv[1]]"
    doctor = "from tf_lossscale._cli.main import main; sys.exit(main(['doctor']))"
    done = python("-c", f"import sys; {change}; {doctor}", str(tmp_path))
    assert done.returncode == 1
    assert message in done.stderr
    assert f"\nTensorFlow     {version}\nmigrate        " in done.stdout
    assert "Traceback" not in done.stderr


if sys.version_info < (3, 9):  # from there on they run; tests/codemods tests that

    @pytest.mark.parametrize("command", ["migrate", "rules", "explain"])
    def test_the_codemods_name_the_python_they_need(command):
        done = run(["tf_lossscale._cli.main", command])
        assert done.returncode == 2
        assert "3.9" in done.stderr


@pytest.mark.parametrize("argv", [["run"], ["run", "--"], ["run", "--no-such", "x.py"]])
def test_wrong_usage_is_status_2(argv, capsys):
    assert main(argv) == 2
    assert "error: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "tf-lossscale run train.py "),
        ([], "tf-lossscale: error: a command is required"),
        (["migrat"], "unknown command 'migrat'; did you mean migrate?"),
        (["docter"], "unknown command 'docter'; did you mean doctor?"),
        (["xyz"], "unknown command 'xyz'; see `tf-lossscale --help`"),
    ],
)
def test_a_command_that_is_missing_or_misspelled(capsys, argv, message):
    assert main(argv) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert shown.out == ""


SEEDED = """
import random, sys
print(random.random())
import numpy
print(numpy.random.rand())
import tensorflow as tf
v1 = tf.compat.v1
with tf.Graph().as_default() as graph, v1.Session() as session:
    print(graph.seed)
if tf.__version__.startswith("1."):
    v1.enable_eager_execution()
drawn = float(tf.random.normal([]))
v1.set_random_seed(7)
print(drawn == float(tf.random.normal([])))
print(hash("the order of a set"))
"""


@pytest.mark.slow
def test_a_seed_sets_all_generators(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)  # tox sets it, and it takes precedence
    done = run(["tf_lossscale._cli.main", "run", "--seed", "7", "-c", SEEDED])
    hashed = python("-c", "print(hash('the order of a set'))", env={"PYTHONHASHSEED": "7"}).stdout
    numbers = done.stdout.split()
    assert numbers[0] == "0.32383276483316237", done.stderr
    assert numbers[1].startswith("0.0763082893739")
    assert numbers[2:] == ["7", "True", hashed.strip()]


@pytest.mark.parametrize("seed", ["-1", "4294967296", "x"])
def test_a_seed_that_is_no_whole_number_in_range_is_refused(seed: str, capsys: Any):
    assert main(["run", "--seed", seed, "-c", "pass"]) == 2
    assert "is not a whole number from 0 to 4294967295" in capsys.readouterr().err
