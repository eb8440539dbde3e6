"""`--write` in a git work tree: allowed only if git could restore what is overwritten."""

import os

import pytest
from command_line import FINAL, LEGACY
from file_system import commit, git


@pytest.fixture
def repository(command_line):
    git("init", "-q")
    command_line.write(a=LEGACY, src__b=LEGACY)
    command_line.path("notes.txt").write_text("x")
    commit(".")
    return command_line


def python_files(command_line) -> dict:
    found = command_line.bytes_on_disk()
    return {path: data for path, data in found.items() if path.endswith(".py")}


def test_a_clean_tree_is_written(repository):
    assert repository.run("migrate", "--write").status == 0
    assert python_files(repository) == {"a.py": FINAL, "src/b.py": FINAL}


@pytest.mark.parametrize("change", ["tracked", "staged", "new python", "deleted"])
def test_a_dirty_tree_is_refused(repository, change):
    if change == "new python":
        repository.write(new=b"x = 1\n")
    elif change == "deleted":
        os.unlink("notes.txt")
    else:
        repository.path("notes.txt").write_text("y")
        if change == "staged":
            git("add", ".")
    before = repository.bytes_on_disk()
    ran = repository.run("migrate", "--write", "src")
    assert ran.status == 2
    assert ran.out == b""
    assert ran.err.startswith("tf-lossscale: error: nothing written: ")
    assert ran.err.endswith("; commit or stash the changes, or pass --allow-dirty\n")
    assert repository.bytes_on_disk() == before
    assert repository.run("migrate", "--write", "--allow-dirty", "src").status == 0
    assert python_files(repository)["src/b.py"] == FINAL


def test_an_untracked_report_is_no_obstacle(repository):
    assert repository.run("migrate", "--check", "--report", "html:report.html").status == 1
    assert repository.run("migrate", "--write").status == 0


def test_a_dirty_tree_may_be_looked_at(repository):
    repository.path("notes.txt").write_text("y")
    assert repository.run("migrate").status == 1
    assert repository.run("migrate", "--check").status == 1


def test_a_second_run_has_nothing_to_write_and_is_not_refused(repository):
    assert repository.run("migrate", "--write").status == 0
    assert repository.run("migrate", "--write").status == 0


def test_write_is_refused_if_git_cannot_be_run(repository, monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    repository.fails("--write", says="git cannot be run")
    assert python_files(repository) == {"a.py": LEGACY, "src/b.py": LEGACY}


def test_a_broken_repository_is_a_refusal(repository):
    repository.path(".git/HEAD").write_text("nonsense")
    repository.fails("--write", says="git failed")
