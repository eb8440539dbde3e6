"""The hooks of `.pre-commit-hooks.yaml`, run by pre-commit itself in a repository of their own."""

import importlib.util
import os
import pathlib
import subprocess
import sys
from typing import Sequence

import pytest
from command_line import CLEAN, FINAL, LEGACY, MANUAL, PROGRAM
from file_system import commit, git

ROOT = str(pathlib.Path(__file__).resolve().parents[3])


@pytest.fixture
def pre_commit(command_line, tmp_path, monkeypatch):
    """Runs one hook over all files, or, without that option, for a commit of what was added.

    The hooks are those of the file that ships. Their language is `system` here, with the command on
    the path, so that the test installs nothing from the network.
    """
    assert importlib.util.find_spec("pre_commit"), "pre-commit is missing: pip install '.[test]'"
    monkeypatch.setenv("PRE_COMMIT_HOME", str(tmp_path / "store"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    command = tmp_path / "bin" / "tf-lossscale"
    command.parent.mkdir()
    command.write_text(f"#!{sys.executable}\n{PROGRAM}")
    command.chmod(0o755)
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    with open(os.path.join(ROOT, ".pre-commit-hooks.yaml"), encoding="utf-8") as file:
        shipped = file.read()
    assert shipped.count("language: python\n") == 2
    (hooks / ".pre-commit-hooks.yaml").write_text(
        shipped.replace("language: python\n", "language: system\n")
    )
    monkeypatch.chdir(hooks)
    git("init", "-q")
    commit(".")
    revision = git("rev-parse", "HEAD").decode().strip()
    monkeypatch.chdir(command_line.directory)
    git("init", "-q")

    def pre_commit(hook: str, status: int, options: Sequence[str] = ("--all-files",)) -> str:
        command_line.path(".pre-commit-config.yaml").write_text(
            f"repos:\n- repo: {hooks}\n  rev: {revision}\n  hooks:\n  - id: {hook}\n"
        )
        git("add", ".")
        ran = subprocess.run(
            [sys.executable, "-m", "pre_commit", "run", *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert ran.returncode == status, ran.stdout
        return ran.stdout

    return pre_commit


def test_check_fails_while_something_is_left(command_line, pre_commit):
    command_line.write(a=LEGACY, b=CLEAN)
    command_line.path("c.txt").write_bytes(LEGACY)
    said = pre_commit("tf-lossscale-check", status=1)
    assert "a.py:3:7: LS301 safe" in said
    assert "2 files checked" in said
    assert command_line.path("a.py").read_bytes() == LEGACY


def test_all_files_are_one_program_whatever_is_committed(command_line, pre_commit):
    command_line.write(makes=LEGACY.replace(b"opt =", b"optimizer ="))
    command_line.write(tests=b"from makes import optimizer\n" + MANUAL)
    command_line.path("pyproject.toml").write_text('[tool.tf-lossscale]\nto = "shim"\n')
    said = pre_commit("tf-lossscale-check", status=1)
    assert said.count("2 files checked") == 1


@pytest.mark.slow
def test_fix_rewrites_and_then_both_pass(legacy, pre_commit):
    legacy.path("b.ipynb").write_text("{}")
    assert "files were modified by this hook" in pre_commit("tf-lossscale-fix", status=1)
    assert legacy.path("a.py").read_bytes() == FINAL
    assert "Passed" in pre_commit("tf-lossscale-fix", status=0)
    assert "Passed" in pre_commit("tf-lossscale-check", status=0)


def test_a_commit_of_other_files_is_checked(command_line, pre_commit):
    """It can change the versions that the program runs on, or name a class in a configuration."""
    command_line.write(a=LEGACY)
    commit(".")
    command_line.path("requirements.txt").write_text("tensorflow==2.21\n")
    assert "a.py:3:7: LS301 safe" in pre_commit("tf-lossscale-check", status=1, options=())
