"""`--write` in a git work tree: allowed only if git could restore what is overwritten."""

import os

import pytest
from command_line import FINAL, LEGACY
from file_system import git


def python_files(command_line) -> dict:
    found = command_line.bytes_on_disk()
    return {path: data for path, data in found.items() if path.endswith(".py")}


@pytest.mark.parametrize("change", ["tracked", "staged", "new python", "deleted"])
def test_a_dirty_tree_is_refused(committed, change):
    if change == "new python":
        committed.write(new=b"x = 1\n")
    elif change == "deleted":
        os.unlink("notes.txt")
    else:
        committed.path("notes.txt").write_text("y")
        if change == "staged":
            git("add", ".")
    before = committed.bytes_on_disk()
    ran = committed.run("migrate", "--write", "src")
    assert ran.status == 2
    assert ran.out == b""
    assert ran.err.startswith("tf-lossscale: error: nothing written: ")
    assert ran.err.endswith("; commit or stash the changes, or pass --allow-dirty\n")
    assert committed.bytes_on_disk() == before
    assert committed.run("migrate", "--write", "--allow-dirty", "src").status == 0
    assert python_files(committed)["src/b.py"] == FINAL


def test_an_untracked_report_is_no_obstacle(committed):
    assert committed.run("migrate", "--check", "--report", "html:report.html").status == 1
    assert committed.run("migrate", "--write").status == 0


def test_a_dirty_tree_may_be_looked_at(committed):
    committed.path("notes.txt").write_text("y")
    assert committed.run("migrate").status == 1
    assert committed.run("migrate", "--check").status == 1


def test_a_second_run_has_nothing_to_write_and_is_not_refused(committed):
    assert committed.run("migrate", "--write").status == 0
    assert committed.run("migrate", "--write").status == 0


def test_write_is_refused_if_git_cannot_be_run(committed, monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    committed.fails("--write", says="git cannot be run")
    assert python_files(committed) == {"a.py": LEGACY, "src/b.py": LEGACY}


def test_a_broken_repository_is_a_refusal(committed):
    committed.path(".git/HEAD").write_text("nonsense")
    committed.fails("--write", says="git failed")
