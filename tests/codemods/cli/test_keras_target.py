"""`--keras auto`: what decides for a Keras version, in which order, and where that is reported."""

import itertools
import json
import os
import re

import pytest
from command_line import CLEAN, FINAL, INSTALLED, LEGACY
from file_system import git
from tf_lossscale_codemods.cli.search import keras_of_directory
from tf_lossscale_codemods.files.discover import Directory
from tf_lossscale_codemods.project import evidence

from tf_lossscale._cli.main import migration_target

SHIM = b"""\
import tf_lossscale as tfls

opt = tfls.keras.mixed_precision.LossScaleOptimizer(opt)
"""

EXPERIMENTAL_SHIM = b"""\
import tf_lossscale as tfls

opt = tfls.keras.mixed_precision.experimental.LossScaleOptimizer(opt, "dynamic")
"""
"""What wraps the optimizers of `tf_keras`, too."""

# For each kind of evidence, a file that decides for Keras 2, and one that decides for Keras 3.
SETTINGS = ("pyproject.toml", "[tool.tf-lossscale]\nkeras = {}\n")
ENVIRONMENT = ("Dockerfile", "FROM python\nENV TF_USE_LEGACY_KERAS={}\n")
PINS = ("requirements.txt", "numpy\ntensorflow=={}\n")
REASONS = [
    "--keras {}",
    "keras = {} in",
    "TF_USE_LEGACY_KERAS={}",
    "tensorflow=={}",
    "tensorflow {}",
]
VALUES = [("2", "3"), ("2", "3"), ("1", "0"), ("2.10", "2.17"), ("2.10.0", "2.17.0")]


def report(command_line, *argv, paths=(".",)):
    ran = command_line.run("migrate", *paths, "--report", "json", *argv)
    assert ran.status in (0, 1), ran.err
    return json.loads(ran.out)["keras"]


def given(command_line, source=CLEAN, **files):
    """Writes the files, and a program; without a legacy name it needs no worker process."""
    command_line.write(a=source)
    for name, text in files.items():
        command_line.path(name).write_text(text)


def write(command_line, kind, text):
    command_line.path(kind[0]).write_text(kind[1].format(text))


@pytest.fixture
def nothing_installed(monkeypatch, command_line):
    monkeypatch.setattr(evidence, "version_of", {}.get)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("kinds", itertools.product([None, 0, 1], repeat=5))
def test_the_first_evidence_decides(command_line, monkeypatch, kinds):
    """All combinations of no evidence, Keras 2 and Keras 3, for each of the five kinds."""
    command_line.write(a=CLEAN)
    texts = [None if kind is None else VALUES[i][kind] for i, kind in enumerate(kinds)]
    for kind, text in zip((SETTINGS, ENVIRONMENT, PINS), texts[1:4]):
        if text is not None:
            write(command_line, kind, text)
    versions = {} if texts[4] is None else {"tensorflow": texts[4]}
    monkeypatch.setattr(evidence, "version_of", versions.get)
    option = [] if texts[0] is None else ["--keras", texts[0]]
    expected = next(((i, kind) for i, kind in enumerate(kinds) if kind is not None), None)
    chosen = report(command_line, *option)
    if expected is None:
        assert chosen["target"] == "both"
        assert chosen["reason"].startswith("no Keras version found")
    else:
        index, kind = expected
        assert chosen["target"] == "23"[kind]
        assert REASONS[index].format(texts[index]) in chosen["reason"]
    assert chosen["warnings"] == []


def test_the_edits_follow_the_target(command_line, nothing_installed):
    source = LEGACY
    for option, after in ((["--keras", "2"], FINAL), (["--keras", "3"], SHIM), ([], SHIM)):
        command_line.write(a=source)
        assert command_line.run("migrate", "--write", *option).status == 0
        assert command_line.bytes_on_disk()["a.py"] == after
        assert b": 0 rewritten, " in command_line.run("migrate", "--write", *option).out


def test_only_the_unknown_version_keeps_both_apart_from_keras_3(legacy, nothing_installed):
    """`--unsafe` moves to Keras 3's own class on Keras 3 only."""
    assert b"+opt = tf.keras.mixed" in legacy.run("migrate", "--unsafe", "--keras", "3").out
    assert b"+opt = tfls.keras" in legacy.run("migrate", "--unsafe").out


@pytest.mark.parametrize(
    ("versions", "environment", "target", "reason"),
    [
        ({"tensorflow": "2.21.0", "keras": "3.9"}, None, "3", "tensorflow 2.21.0 and keras 3.9"),
        ({"tensorflow-cpu": "2.16.1"}, None, "3", "tensorflow-cpu 2.16.1 is installed"),
        ({"tf-nightly": "2.22.0.dev1"}, None, "3", "tf-nightly 2.22.0.dev1 is installed"),
        ({"tensorflow": "2.21.0", "keras": "3.9"}, "1", "2", "TF_USE_LEGACY_KERAS=1 is set in the"),
        ({"tensorflow": "2.21.0"}, "0", "3", "tensorflow 2.21.0 is installed"),
        ({"tensorflow": "1.15.5"}, None, "2", "tensorflow 1.15.5 is installed"),
        ({"keras": "3.9"}, None, "both", "no Keras version found"),
        ({"tensorflow": "unknown"}, None, "both", "no Keras version found"),
    ],
)
def test_the_installed_tensorflow(command_line, monkeypatch, versions, environment, target, reason):
    monkeypatch.setattr(evidence, "version_of", versions.get)
    if environment is not None:
        monkeypatch.setenv("TF_USE_LEGACY_KERAS", environment)
    command_line.write(a=CLEAN)
    chosen = report(command_line)
    assert chosen["target"] == target
    assert chosen["reason"].startswith(reason) or reason in chosen["reason"]


def test_only_metadata_of_what_is_installed_is_read():
    from importlib import metadata

    assert evidence.version_of("libcst") == metadata.version("libcst")
    assert evidence.version_of("no-such-distribution") is None


CONTRADICTIONS = [
    ({"requirements.txt": "tensorflow<2.16\n", "setup.py": "x = ['tensorflow>=2.16']\n"}, 1, 1),
    ({"requirements.txt": "keras<3\n\ntensorflow==2.17\n"}, 1, 3),
    ({"requirements.txt": "tensorflow<2.9\n", "Pipfile": "[packages]\nkeras = '>=3'\n"}, 1, 2),
    ({"Dockerfile": "ENV TF_USE_LEGACY_KERAS=1\n", "run.sh": "TF_USE_LEGACY_KERAS=0 x\n"}, 1, 1),
    ({"requirements.txt": "tf-keras\ntensorflow>=2.16\n"}, 1, 2),
]


@pytest.mark.parametrize(("files", "line_2", "line_3"), CONTRADICTIONS)
def test_contradictions_are_reported_and_the_result_runs_on_both(
    command_line, files, line_2, line_3
):
    given(command_line, LEGACY, **files)
    chosen = report(command_line)
    assert chosen["target"] == "both"
    (warning,) = chosen["warnings"]
    paths = set(files)
    assert warning["path"] in paths
    assert warning["line"] == line_2
    other = re.search(
        r"but .* in (\S+):(\d+) means Keras 3; the result runs on both", warning["message"]
    )
    assert {warning["path"], other[1]} == paths
    assert int(other[2]) == line_3
    ran = command_line.run("migrate", "--write")
    assert ran.err == f"{warning['path']}:{line_2}: warning: {warning['message']}\n"
    assert command_line.bytes_on_disk()["a.py"] == SHIM
    for option in ("2", "3"):
        assert command_line.run("migrate", "--keras", option).err == ""


CI = 'env:\n  TF_USE_LEGACY_KERAS: "1"\n'
VARIABLES = 'variables:\n  TF_USE_LEGACY_KERAS: "1"\n'
ENVIRONMENTS = {
    **dict.fromkeys(
        ["docker/Dockerfile.gpu", "docker/gpu.dockerfile", "Containerfile"],
        "FROM python\nENV TF_USE_LEGACY_KERAS=1\n",
    ),
    **dict.fromkeys([".env", ".env.local", "gpu.env"], "A=b\nTF_USE_LEGACY_KERAS=1\n"),
    **dict.fromkeys(
        [".envrc", "run.bash", "scripts/run.sh", "Makefile"], "\nexport TF_USE_LEGACY_KERAS=1\n"
    ),
    **dict.fromkeys(["docker-compose.yml", ".github/workflows/ci.yml"], CI),
    **dict.fromkeys([".gitlab-ci.yml", "environment.yml"], VARIABLES),
    ".circleci/config.yml": VARIABLES.replace("variables", "environment"),
    "pytest.ini": "env =\n  TF_USE_LEGACY_KERAS=1\n",
    "tox.ini": "setenv =\n  TF_USE_LEGACY_KERAS=1\n",
    "pyproject.toml": '[tool.pytest_env]\nTF_USE_LEGACY_KERAS = "1"\n',
}
"""Files that set the variable in their second lines."""


PIN = {"requirements.txt": "tensorflow==2.17\n"}
CELL = {"cell_type": "code", "source": ["import tf_keras"]}
DECIDING = [
    ({"requirements.txt": "tensorflow>=2.4\nkeras\n"}, "tensorflow 2.15.1 is installed"),
    ({**PIN, "run.sh": "export TF_USE_LEGACY_KERAS=1\n"}, "TF_USE_LEGACY_KERAS=1 in run.sh:1"),
    # Python files and notebooks count also without a legacy name.
    ({**PIN, "b/c.py": "import os\n\nimport tf_keras\n"}, "an import of tf_keras in b/c.py:3"),
    ({**PIN, "a.ipynb": json.dumps({"cells": [CELL]})}, "an import of tf_keras in a.ipynb:1"),
    *(({path: text}, f"TF_USE_LEGACY_KERAS=1 in {path}:2") for path, text in ENVIRONMENTS.items()),
]


@pytest.mark.parametrize(("files", "reason"), DECIDING)
def test_what_decides_for_keras_2(command_line, files, reason):
    given(command_line, **files)
    assert report(command_line) == {"target": "2", "reason": reason, "warnings": []}


def test_other_files_do_not_count(command_line):
    for name in ("notes.txt", "data.yml", "a.json", "venv/requirements.txt", "node_modules/x.sh"):
        given(command_line, **{name: "TF_USE_LEGACY_KERAS=1\ntensorflow==2.17\n"})
    git("init", "-q")
    command_line.path(".gitignore").write_text("old/\nlocal.sh\n")
    given(command_line, **{"old/requirements.txt": "tensorflow==2.17\n"})
    given(command_line, **{"local.sh": "TF_USE_LEGACY_KERAS=0\n"})
    given(command_line, **{"examples/requirements.txt": "tensorflow==2.17\n"})
    chosen = report(command_line, "--exclude", "examples")
    assert chosen["reason"] == "tensorflow 2.15.1 is installed"
    assert report(command_line)["target"] == "3"


@pytest.mark.parametrize(
    "paths", [["src"], ["src/a.py"], ["src/deep"], ["src/a.py", "src/deep/b.py"]]
)
def test_the_directories_above_the_paths_count(command_line, paths):
    command_line.write(src__a=CLEAN, src__deep__b=CLEAN)
    command_line.path("requirements.txt").write_text("tensorflow==2.17\n")
    assert report(command_line, paths=paths)["reason"] == "tensorflow==2.17 in requirements.txt:1"


def test_the_directories_above_the_project_do_not_count(command_line):
    command_line.write(src__a=CLEAN)
    (command_line.directory / ".." / "requirements.txt").write_text("tensorflow==2.17\n")
    assert report(command_line, paths=["src"])["target"] == "2"
    (command_line.directory / "src" / ".git").mkdir()
    command_line.path("requirements.txt").write_text("tensorflow==2.17\n")
    assert report(command_line, paths=["src"])["target"] == "2"


def test_stdin_is_part_of_the_project_of_its_name(command_line):
    command_line.path("src/requirements.txt").write_text("tensorflow==2.17\n")
    argv = ["migrate", "-", "--stdin-filename", "src/a.py"]
    assert command_line.run(*argv, stdin=LEGACY).out == SHIM
    assert command_line.run("migrate", "-", stdin=LEGACY).out == FINAL
    ran = command_line.run(*argv, stdin=b"import tf_keras\n" + LEGACY)
    assert ran.out == b"import tf_keras\n" + EXPERIMENTAL_SHIM
    assert "target: Keras 2 (an import of tf_keras in src/a.py:1)\n" in ran.err
    command_line.path("src/setup.cfg").write_text("[options]\ninstall_requires = keras<3\n")
    ran = command_line.run(*argv, "--report", "json", stdin=LEGACY)
    assert json.loads(ran.err)["keras"]["target"] == "both"


def test_links_that_leave_the_paths_are_not_followed(command_line):
    outside = command_line.directory / ".." / "requirements.txt"
    outside.write_text("tensorflow==2.17\n")
    given(command_line, **{"parts/base.in": "tensorflow==2.9\n"})
    os.symlink(outside, command_line.path("requirements.txt"))
    assert report(command_line)["reason"] == "tensorflow 2.15.1 is installed"
    os.symlink("parts/base.in", command_line.path("requirements-dev.txt"))
    assert report(command_line)["reason"] == "tensorflow==2.9 in requirements-dev.txt:1"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
def test_pipes_and_large_files_do_not_count(command_line):
    given(command_line)
    os.mkfifo(command_line.path("setup.cfg"))
    large = b"tensorflow==2.17\n" + b"#" * (1024 * 1024)
    command_line.path("requirements.txt").write_bytes(large)
    assert report(command_line)["target"] == "2"
    assert command_line.run("migrate").err == (
        "requirements.txt: warning: does not count for --keras auto: is larger than "
        "1,048,576 bytes\n"
    )


def test_each_file_is_read_once_in_one_walk(command_line, monkeypatch):
    given(command_line, LEGACY, **{"requirements.txt": "tensorflow==2.17\n", "sub/run.sh": "ls\n"})
    command_line.write(b=b"import tf_keras\n", sub__c=b"x = 1\n")
    opened, listed = [], []
    real_open, real_entries = Directory.open, Directory.entries
    monkeypatch.setattr(
        Directory,
        "open",
        lambda self, name, *rest: opened.append(name) or real_open(self, name, *rest),
    )
    monkeypatch.setattr(
        Directory, "entries", lambda self: listed.append(self.path) or real_entries(self)
    )
    assert command_line.run("migrate", "--select", "LS1").status == 0
    assert sorted(opened) == ["a.py", "b.py", "c.py", "requirements.txt", "run.sh"]
    assert len(listed) == 2


def test_every_report_has_the_target_and_the_reason(command_line):
    given(command_line, LEGACY, **{"requirements.txt": "tensorflow==2.9\n"})
    line = "target: Keras 2 (tensorflow==2.9 in requirements.txt:1)"
    text = command_line.run("migrate").out.decode()
    assert text.splitlines()[-3] == line
    assert line in command_line.run("migrate", "--report", "github").out.decode()
    assert line in command_line.run("migrate", "--report", "html").out.decode()
    ran = command_line.run("migrate", "--report", "sarif")
    (invocation,) = json.loads(ran.out)["runs"][0]["invocations"]
    assert invocation["properties"]["keras"] == "2"
    assert invocation["toolConfigurationNotifications"] == []
    ran = command_line.run("migrate", "-v")
    assert f"{line}\nKeras 2: tensorflow==2.9 in requirements.txt:1\n" in ran.err
    assert b"target:" not in command_line.run("migrate", "--keras", "2").out


def test_every_report_has_the_contradiction(command_line):
    given(command_line, LEGACY, **CONTRADICTIONS[1][0])
    message = "keras&lt;3 means Keras 2, but tensorflow==2.17 in requirements.txt:3 means Keras 3"
    assert message in command_line.run("migrate", "--report", "html").out.decode()
    github = command_line.run("migrate", "--report", "github").out.decode()
    assert "::warning file=requirements.txt,line=1::keras<3 means Keras 2" in github
    ran = command_line.run("migrate", "--report", "sarif")
    (invocation,) = json.loads(ran.out)["runs"][0]["invocations"]
    (notification,) = invocation["toolConfigurationNotifications"]
    assert notification["level"] == "warning"
    assert "requirements.txt:3" in notification["message"]["text"]


def test_many_places_are_not_all_listed(command_line):
    given(command_line, **{f"{i}/requirements.txt": "keras<3\n" for i in range(30)})
    err = command_line.run("migrate", "-v").err.splitlines()
    assert sum(line.startswith("Keras 2: keras<3 in ") for line in err) == 20
    assert "and 10 more" in err


def test_auto_takes_back_what_the_settings_say(command_line):
    write(command_line, SETTINGS, "3")
    command_line.write(a=CLEAN)
    assert report(command_line)["reason"] == "keras = 3 in pyproject.toml"
    assert report(command_line, "--keras", "auto")["reason"] == "tensorflow 2.15.1 is installed"
    write(command_line, SETTINGS, '"auto"')
    assert report(command_line)["reason"] == "tensorflow 2.15.1 is installed"


@pytest.mark.parametrize("kind", [SETTINGS, ENVIRONMENT, PINS], ids=lambda kind: kind[0])
def test_doctor_says_what_migrate_would_choose(legacy, kind):
    write(legacy, kind, {SETTINGS: "3", ENVIRONMENT: "1", PINS: "2.17"}[kind])
    line = legacy.run("migrate").out.decode().splitlines()[-3]
    assert keras_of_directory() == line
    assert INSTALLED["tensorflow"] not in line


def test_doctor_without_evidence(command_line, nothing_installed):
    assert keras_of_directory().startswith("target: Keras 2 and Keras 3 (no Keras version found")


def test_doctor_reports_what_is_wrong_with_the_settings(command_line):
    command_line.settings("keras = 4")
    error = "pyproject.toml:2: [tool.tf-lossscale] keras: invalid choice: '4' (choose from "
    assert migration_target().startswith(f"cannot run here: {error}")
    command_line.settings("keras = 3")
    assert migration_target() == "target: Keras 3 (keras = 3 in pyproject.toml)"


TF = "import tensorflow as tf\n"
MP = "tf.keras.mixed_precision"
SET = f"{MP}.experimental.set_policy('mixed_float16')\n"
SET_FINAL = f"{MP}.set_global_policy('mixed_float16')\n"
MODEL = "import tf_keras\n\nmodel = tf_keras.Sequential()\n"
BESIDE_TF_KERAS = {
    "in one file": {"main.py": f"{TF}import tf_keras as keras\n\n{SET}"},
    "of the final API": {"main.py": f"{TF}from tf_keras.layers import Dense\n\n{SET_FINAL}"},
    "by its name": {
        "main.py": "from tensorflow.keras.mixed_precision import set_global_policy\n"
        "import tf_keras\n\nset_global_policy('mixed_float16')\n"
    },
    "of the shim": {
        "main.py": "import tf_lossscale as tfls\nimport tf_keras\n\n"
        "tfls.keras.mixed_precision.set_global_policy('mixed_float16')\n"
    },
    "where models are imported": {"main.py": f"{TF}import model\n\n{SET}", "model.py": MODEL},
    "that the models import": {"policy.py": f"{TF}{SET}", "model.py": f"import policy\n{MODEL}"},
    "that a third file imports": {
        "policy.py": f"{TF}{SET}",
        "model.py": MODEL,
        "main.py": "import policy\nfrom model import model\n",
    },
}
NOT_BESIDE_TF_KERAS = {
    "in another program": {"main.py": f"{TF}{SET}", "other.py": MODEL},
    "of tf_keras": {
        "main.py": "import tf_keras as keras\n\n"
        "keras.mixed_precision.set_global_policy('mixed_float16')\n"
    },
    "of tf_keras, or what replaces it": {
        "main.py": "try:\n    import tf_keras as keras\nexcept ImportError:\n"
        "    from tensorflow import keras\n\n"
        "keras.mixed_precision.set_global_policy('mixed_float16')\n"
    },
}
LEGACY_KERAS_SET = {
    "run.sh": "export TF_USE_LEGACY_KERAS=1\n",
    "Dockerfile": "ENV TF_USE_LEGACY_KERAS=true\n",
    "start.py": "import os\n\nos.environ['TF_USE_LEGACY_KERAS'] = '1'\n",
    "start.ipynb": json.dumps(
        {"cells": [{"cell_type": "code", "source": "%env TF_USE_LEGACY_KERAS=1"}]}
    ),
}
VARIABLE = "TF_USE_LEGACY_KERAS=1"
OUTPUT = {"output_type": "stream", "name": "stdout", "text": [VARIABLE]}
MENTIONED = {
    "run.sh": f'echo "set {VARIABLE}"\n',
    "Dockerfile": f"LABEL {VARIABLE}\n",
    ".env.example": f"{VARIABLE}\n",
    "config.py": 'config = {"TF_USE_LEGACY_KERAS": "1"}\n',
    "test_legacy.py": "def test_legacy(monkeypatch):\n"
    "    monkeypatch.setenv('TF_USE_LEGACY_KERAS', '1')\n",
    "check.py": f'assert tf.keras is tf_keras, "run with {VARIABLE}"\n',
    "hint.py": f'print("hint: run with {VARIABLE}")\n',
    "text.ipynb": json.dumps({"cells": [{"cell_type": "markdown", "source": VARIABLE}]}),
    "output.ipynb": json.dumps(
        {"cells": [{"cell_type": "code", "source": "train()", "outputs": [OUTPUT]}]}
    ),
}
ARGUMENTS = [[], ["--keras", "2"], ["--keras", "3"], ["--to", "shim"]]
with_each_target = pytest.mark.parametrize("argv", ARGUMENTS, ids=" ".join)


def left(command_line, *argv):
    """What a run leaves, as codes; no file of the case could not be processed."""
    ran = command_line.run("migrate", "--write", "--report", "json", *argv)
    assert ran.status in (0, 1), ran.err
    findings = json.loads(ran.out)["findings"]
    return [found["code"] for found in findings if found["outcome"] == "manual"]


@with_each_target
@pytest.mark.parametrize("case", BESIDE_TF_KERAS)
def test_policies_beside_tf_keras(command_line, case, argv):
    """Without the variable, they set the policy of Keras 3, and no error said so."""
    for name, text in BESIDE_TF_KERAS[case].items():
        command_line.path(name).write_text(text)
    assert left(command_line, *argv) == ["LS606"]
    written = command_line.bytes_on_disk()
    assert left(command_line, *argv) == ["LS606"]
    assert command_line.bytes_on_disk() == written
    command_line.path("run.sh").write_text("export TF_USE_LEGACY_KERAS=1\n")
    assert left(command_line, *argv) == []


@with_each_target
@pytest.mark.parametrize("case", NOT_BESIDE_TF_KERAS)
def test_policies_that_are_not_beside_tf_keras(command_line, case, argv):
    for name, text in NOT_BESIDE_TF_KERAS[case].items():
        command_line.path(name).write_text(text)
    assert left(command_line, *argv) == []


@with_each_target
@pytest.mark.parametrize("file", LEGACY_KERAS_SET)
def test_legacy_keras_makes_tf_keras_of_tf_keras(command_line, file, argv):
    """The rest of the project says that both names mean one package."""
    optimizer = LEGACY.decode().partition("\n\n")[2]
    given(command_line, f"import tf_keras\n{TF}\n{SET}{optimizer}".encode())
    command_line.path(file).write_text(LEGACY_KERAS_SET[file])
    assert left(command_line, *argv) == []
    source = command_line.bytes_on_disk()["a.py"].decode()
    assert (f"\nopt = {MP}.LossScaleOptimizer(opt)\n" in source) is (argv in ARGUMENTS[:2])
    assert (SET_FINAL in source) is ("shim" not in argv)


@pytest.mark.parametrize("file", MENTIONED)
def test_a_text_that_mentions_the_variable_does_not_set_it(command_line, file):
    given(command_line, f"import tf_keras\n{TF}\n{SET}".encode(), **{file: MENTIONED[file]})
    assert left(command_line) == ["LS606"]


def test_a_variable_that_is_off_is_not_set(command_line):
    given(command_line, f"import tf_keras\n{TF}\n{SET}".encode())
    command_line.path("run.sh").write_text("export TF_USE_LEGACY_KERAS=0\n")
    assert left(command_line) == ["LS606"]


def test_a_name_of_tf_keras_stays(command_line):
    """What the variable is does not matter then; the shim's policies are those of `tf.keras`."""
    source = "import tf_keras as keras\n\nkeras.mixed_precision.{}('mixed_float16')\n"
    given(command_line, source.format("experimental.set_policy").encode())
    assert left(command_line) == []
    after = source.format("set_global_policy").encode()
    assert command_line.bytes_on_disk()["a.py"] == after
    given(command_line, source.format("experimental.set_policy").encode())
    assert left(command_line, "--to", "shim") == ["LS606"]
    for options in (["--to", "shim"], ["--keras", "2"], ["--keras", "3"]):
        wrapped = "opt = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.SGD())\n"
        given(command_line, after + wrapped.encode())
        assert "LS606" not in left(command_line, *options)
        assert command_line.bytes_on_disk()["a.py"].startswith(after)


def test_a_name_that_may_be_of_tf_keras_is_reported_where_it_moves(command_line):
    """What is read from a module that is handed on is unknown, so policies go to the shim."""
    tried = "try:\n    import tf_keras as keras\nexcept ImportError:\n"
    tried += "    from tensorflow import keras\n"
    source = "from tensorflow.keras import mixed_precision\nprint(mixed_precision)\n" + tried
    source += "keras.mixed_precision.set_global_policy('mixed_float16')\n"
    for _ in range(2):
        given(command_line, source.encode())
        assert left(command_line, "--keras", "3") == ["LS606"]
        source = command_line.bytes_on_disk()["a.py"].decode()
    assert "tfls.keras.mixed_precision.set_global_policy" in source


def test_optimizers_of_tf_keras_get_the_class_of_the_shim(command_line):
    given(command_line, b"import model\n" + LEGACY, **{"model.py": MODEL})
    assert left(command_line) == []
    assert command_line.bytes_on_disk()["a.py"] == b"import model\n" + EXPERIMENTAL_SHIM


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
def test_a_given_version_needs_no_other_evidence(command_line):
    """Files that cannot be read are named only where they could have decided."""
    given(command_line, LEGACY)
    os.mkfifo(command_line.path("Dockerfile"))
    assert command_line.run("migrate", "--keras", "2").err == ""
