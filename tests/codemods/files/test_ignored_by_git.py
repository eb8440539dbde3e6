"""In a work tree, git decides which files are ignored."""

import os
import random

import pytest
from command_line import FINAL, LEGACY
from file_system import commit, found, git

LINES = [
    "*.py", "a", "a/", "/a", "a/b", "**/b", "a/**", "a/**/b", "!*.py", "!a", "!a/", "*", "!*/",
    "?.py", "[!a].py", "[!\u00e9]*", "[a-\u00e9]*", "[^b]\u00fc.py", "*\u00e9*", "!/a/x.py",
]  # fmt: skip
NAMES = ["a.py", "b.py", "x.py", "\u00e9.py", "b\u00fc.py", ":a.py", "!x.py"]
FOLDERS = [".", "a", "b", "a/b", "b/a", "a/b/c", "\u00e9", ":(top)"]


def write(path, text: str) -> None:
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def test_the_same_files_as_git_lists(repository, home):
    choices = random.Random(41)
    paths = [os.path.normpath(os.path.join(folder, name)) for folder in FOLDERS for name in NAMES]
    for path in paths:
        write(path, "")
    ignored = 0
    for number in range(40):
        for where in (".gitignore", "a/.gitignore", ".git/info/exclude"):
            write(where, "\n".join(choices.sample(LINES, choices.randint(0, 2))) + "\n")
        write(home / ".config/git/ignore", "\n".join(choices.sample(LINES, 1)) + "\n")
        git("read-tree", "--empty")
        git("update-index", "--add", "--stdin", stdin="\n".join(choices.sample(paths, 3)).encode())
        listed = git("ls-files", "-co", "--exclude-standard", "-z").decode().split("\0")
        wanted = sorted(path for path in listed if path.endswith(".py"))
        assert sorted(found()) == wanted, number
        ignored += len(paths) - len(wanted)
    assert ignored > 100


def test_a_linked_work_tree_has_the_excludes_of_its_repository(repository):
    write(".git/info/exclude", "generated.py\n")
    repository.write(a=LEGACY)
    commit("a.py")
    git("worktree", "add", "-q", "../second")
    write("../second/generated.py", LEGACY.decode())
    ran = repository.run("migrate", "--write", "../second")
    assert (ran.status, ran.err) == (0, "")
    with open("../second/generated.py", "rb") as file:
        assert file.read() == LEGACY
    with open("../second/a.py", "rb") as file:
        assert file.read() == FINAL


@pytest.mark.parametrize("how", ["repository", "includeIf", "GIT_CONFIG_GLOBAL"])
def test_every_setting_that_git_reads_counts(repository, home, monkeypatch, how):
    write(home / "mine", "x.py\n")
    setting = f"[core]\nexcludesFile = {home}/mine\n"
    if how == "repository":
        git("config", "core.excludesFile", str(home / "mine"))
    elif how == "includeIf":
        here = os.path.realpath(".")
        write(home / ".gitconfig", f'[includeIf "gitdir:{here}/"]\npath = {home}/more\n')
        write(home / "more", setting)
    else:
        write(home / "config", setting)
        monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(home / "config"))
    repository.write(x=LEGACY, y=LEGACY)
    assert found() == ["y.py"]
    assert found("x.py") == ["x.py"]  # the user has named it


@pytest.mark.parametrize("tracked", [False, True])
def test_everything_in_an_ignored_directory_that_is_named_is_checked(repository, tracked):
    repository.write(build__a=LEGACY, build__sub__b=LEGACY, other=LEGACY)
    write(".gitignore", "build/\n")
    write("build/.gitignore", "b.py\n")
    if tracked:
        git("add", "-f", "build/a.py")
    both = ["build/a.py", "build/sub/b.py"]
    assert found("build") == (both[:1] if tracked else both)  # git knows what it tracks there
    assert found() == (["build/a.py", "other.py"] if tracked else ["other.py"])


def test_a_pipe_for_an_ignore_file_holds_no_run(repository):
    repository.write(a=LEGACY, sub__b=LEGACY, sub__c=LEGACY, build__d=LEGACY)
    write(".gitignore", "c.py\nbuild\n")
    os.mkfifo("sub/.gitignore")
    ran = repository.run("migrate", "--report", "json", "--allow-dirty")
    assert all(name in ran.out for name in (b"a.py", b"b.py", b"c.py", b"d.py"))
    assert ran.err == (
        ".: warning: git is stuck, perhaps at a pipe in place of a file, so ignored files are not "
        "skipped\n"
    )


@pytest.mark.parametrize("where", [".gitignore", "info/exclude", "user"])
def test_an_ignored_file_that_is_named_counts_for_the_dirty_check(repository, home, where):
    repository.write(a=LEGACY)
    commit("a.py")
    file = {"info/exclude": ".git/info/exclude", "user": home / ".config/git/ignore"}
    write(file.get(where, where), "scratch.py\n.gitignore\n")
    repository.write(scratch=LEGACY)
    assert git("status", "--porcelain") == b""
    ran = repository.fails("--write", ".", "scratch.py", says="git does not track")
    assert "scratch.py" in ran.err
    assert repository.bytes_on_disk()["a.py"] == LEGACY
    assert repository.run("migrate", "--write").status == 0
    assert repository.bytes_on_disk()["scratch.py"] == LEGACY
