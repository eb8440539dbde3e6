"""After `--write`: what the program needs now where it runs, and which files say what is there."""

import pytest
from command_line import FINAL, LEGACY

NEED = "the program now needs tf-lossscale where it runs"


def need(ran) -> list:
    return [line for line in ran.out.decode().splitlines() if line.startswith(NEED)]


def test_the_files_are_named_and_not_edited(legacy):
    listed = ["Dockerfile", "environment.yml", "pyproject.toml", "requirements.txt"]
    listed += ["setup.cfg", "setup.py", "docker/train.Dockerfile", "requirements/dev.txt"]
    for name in (*listed, "poetry.lock", "notes.txt", "Makefile"):
        text = {"pyproject.toml": b"# tf-lossscale\n[project]\n", "setup.py": b"# tf-lossscale\n"}
        legacy.path(name).write_bytes(text.get(name, b""))
    before = legacy.bytes_on_disk()
    ran = legacy.run("migrate", "--write", "--to", "shim", "--no-settings")
    assert ran.status == 0
    assert need(ran) == [f"{NEED}: add it to {', '.join(listed)}"]
    after = legacy.bytes_on_disk()
    assert {name: after[name] for name in after if name != "a.py"} == {
        name: before[name] for name in before if name != "a.py"
    }
    assert b"tf_lossscale" in after["a.py"]
    assert need(legacy.run("migrate", "--write", "--to", "shim")) == []


def test_without_such_files(legacy):
    legacy.settings('to = "shim"')  # says nothing about what is installed
    ran = legacy.run("migrate", "--write", "--to", "shim", "--keras", "2")
    assert need(ran) == [f"{NEED}: pip install tf-lossscale"]


def test_the_settings_do_not_name_the_package(legacy):
    text = "[project]\nname = 'x'\n\n[tool.tf-lossscale]\nto = 'shim'\n"
    legacy.path("pyproject.toml").write_text(text)
    ran = legacy.run("migrate", "--write", "--to", "shim", "--keras", "2")
    assert need(ran) == [f"{NEED}: add it to pyproject.toml"]


@pytest.mark.sampled(2, each="name")
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("requirements.txt", "numpy\ntf-lossscale>=1\n"),
        ("pyproject.toml", '[project]\ndependencies = ["TF_LossScale"]\n'),
        ("setup.py", "setup(install_requires=['tf-lossscale'])\n"),
        ("Dockerfile", "RUN pip install tf-lossscale\n"),
        ("environment.yml", "- pip:\n  - tf.lossscale==1.0\n"),
    ],
)
@pytest.mark.parametrize("keras", [["--keras", "2"], []])
def test_not_where_it_is_named_already(legacy, name, text, keras):
    legacy.path(name).write_text(text)
    assert need(legacy.run("migrate", "--write", "--to", "shim", *keras)) == []


def test_files_above_the_given_path_count(command_line):
    command_line.write(src__a=LEGACY)
    command_line.path("requirements.txt").write_text("tensorflow\n")
    ran = command_line.run("migrate", "--write", "--to", "shim", "src")
    assert need(ran) == [f"{NEED}: add it to requirements.txt"]


def test_only_what_was_written_onto_the_shim_needs_it(legacy):
    assert need(legacy.run("migrate", "--to", "shim")) == []
    assert need(legacy.run("migrate", "--write", "--keras", "2")) == []
    assert legacy.bytes_on_disk()["a.py"] == FINAL
