"""In a work tree, git decides which files are ignored, and which may be overwritten."""

import os
import random

import pytest
from command_line import FINAL, LEGACY
from file_system import commit, found, git, python_files

LINES = [
    "*.py", "a", "a/", "/a", "a/b", "**/b", "a/**", "a/**/b", "!*.py", "!a", "!a/", "*", "!*/",
    "?.py", "[!a].py", "[!\u00e9]*", "[a-\u00e9]*", "[^b]\u00fc.py", "*\u00e9*", "!/a/x.py",
]  # fmt: skip
NAMES = ["a.py", "b.py", "x.py", "\u00e9.py", "b\u00fc.py", ":a.py", "!x.py"]
FOLDERS = [".", "a", "b", "a/b", "b/a", "a/b/c", "\u00e9", ":(top)"]


def write(path, text: str):
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


# What git tracks is never ignored, whatever an ignore file says.


def test_a_tracked_file_is_rewritten_though_a_pattern_matches_it(repository):
    repository.write(a_pb2=LEGACY, b_pb2=LEGACY, build__deep__c=LEGACY, build__d=LEGACY)
    write(".gitignore", "*_pb2.py\nbuild/\n")
    commit(".gitignore", "a_pb2.py", "build/deep/c.py")
    ran = repository.run("migrate", "--write")
    assert ran.status == 0, ran.err
    files = repository.bytes_on_disk()
    assert files["a_pb2.py"] == files["build/deep/c.py"] == FINAL
    assert files["b_pb2.py"] == files["build/d.py"] == LEGACY


def test_only_what_leads_to_tracked_files_is_walked(repository):
    repository.write(
        out__a__x=LEGACY, out__a__y=LEGACY, out__b__x=LEGACY, out__c__x=LEGACY, z=LEGACY
    )
    repository.path("out/c/notes.txt").write_text("")
    write(".gitignore", "out\n")
    commit("z.py", "out/a/x.py", "out/c/notes.txt")
    write("out/a/.gitignore", "!*\n")  # git does not read it, as the directory above is ignored
    assert found() == ["out/a/x.py", "z.py"]
    ran = repository.run("migrate", "-v")
    assert "out/b: unchanged: is ignored by git" in ran.err
    assert "out/c/x.py: unchanged: is ignored by git" in ran.err
    assert "out/a/y.py: unchanged: is ignored by git" in ran.err


def test_caches_environments_and_excludes_are_left_though_git_tracks_them(repository):
    names = ["venv/x.py", "out/venv/x.py", "out/__pycache__/x.py", "out/py/x.py", "out/no/x.py"]
    for name in names:
        repository.path(name).write_bytes(LEGACY)
    repository.path("out/py/pyvenv.cfg").write_text("")
    write(".gitignore", "out\nvenv\n")
    commit(*names)
    ran = repository.run("migrate", "--check", "--exclude", "no")
    assert ran.status == 0, ran.out
    assert ran.out.count(b"x.py") == 0


def test_git_is_called_once_for_each_work_tree(repository, calls):
    repository.write(a=LEGACY, b=LEGACY, out__x=LEGACY, more__x=LEGACY)
    write(".gitignore", "[ab].py\nout/\nmore/\n")
    commit("a.py", "b.py")
    assert found() == found(".", "out/..") == ["a.py", "b.py"]
    assert [name for _, name in calls] == ["ls-files"] * 2
    calls.clear()
    assert found("a.py") == ["a.py"]
    assert calls == []
    assert found("out") == ["out/x.py"]
    assert [name for _, name in calls] == ["ls-files"]


def test_nothing_is_ignored_outside_a_work_tree(command_line, calls):
    command_line.write(a=LEGACY, out__b=LEGACY)
    write(".gitignore", "out/\n")
    assert found() == ["a.py", "out/b.py"]
    assert calls == []


def test_nothing_is_ignored_without_git_and_a_warning_says_so(repository, monkeypatch):
    repository.write(a=LEGACY, b=LEGACY)
    write(".gitignore", "a.py\n")
    assert found() == ["b.py"]
    monkeypatch.setenv("PATH", "/nonexistent")
    ran = repository.run("migrate", "--check")
    assert ran.err == (
        ".: warning: git cannot be run (No such file or directory), so ignored files are not "
        "skipped\n"
    )
    assert ran.out.count(b"a.py") > 0


def test_each_work_tree_has_ignore_files_and_an_index_of_its_own(repository):
    for where in ("nested", "../origin"):
        os.mkdir(where)
        git("init", "-q", where=where)
        for name in ("a.py", "b.py", "c.py"):
            repository.path(f"{where}/{name}").write_bytes(LEGACY)
        write(f"{where}/.gitignore", "[bc].py\n")
        commit("a.py", "b.py", ".gitignore", where=where)
    git("submodule", "--quiet", "add", os.path.abspath("../origin"), "sub")
    repository.write(sub__c=LEGACY, a=LEGACY, gone__x=LEGACY)
    git("init", "-q", where="gone")
    write(".gitignore", "a.py\nsub\ngone\n")
    git("commit", "-q", "-m", "sub")
    # What ignores the submodule has no say, as it is tracked; a nested repository that is not is
    # left. The patterns of a work tree do not reach into another.
    assert found() == ["nested/a.py", "nested/b.py", "sub/a.py", "sub/b.py"]
    status = git("status", "--porcelain", "--ignored", "-uall").decode()
    assert "!! gone/" in status
    assert "nested" in status
    assert "!! nested" not in status


def test_links(repository):
    repository.write(src__x=LEGACY, other__real=LEGACY)
    for link, target in {"out/l.py": "../other/real.py", "out/m.py": "../src/x.py"}.items():
        repository.path(link)
        os.symlink(target, link)
    os.symlink("../../outside", "out/d")
    os.mkdir("../outside")
    repository.write(**{"..__outside__x": LEGACY})
    write(".gitignore", "out\nother\nx.py\n")
    commit("out/l.py", "out/d")
    ran = repository.run("migrate", "--write", "-v", "--allow-dirty")
    files = repository.bytes_on_disk()
    assert files["other/real.py"] == FINAL  # through the link that git tracks
    assert files["src/x.py"] == LEGACY
    assert "out/m.py: unchanged: is ignored by git" in ran.err
    assert "out/d: unchanged: is a symbolic link that leaves the given paths" in ran.err
    with open("../outside/x.py", "rb") as file:
        assert file.read() == LEGACY


# `--write` is allowed only if git could restore what is overwritten.


@pytest.mark.parametrize("change", ["tracked", "staged", "new python", "new notebook", "deleted"])
def test_a_dirty_tree_is_refused(committed, change):
    if change == "new python":
        committed.write(new=b"x = 1\n")
    elif change == "new notebook":
        committed.path("new.ipynb").write_text("{}")
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


def test_git_undoes_what_was_written(committed):
    before = python_files(committed)
    assert committed.run("migrate", "--write").status == 0
    assert python_files(committed)["src/b.py"] == FINAL
    git("checkout", ".")
    assert python_files(committed) == before


def test_an_untracked_report_is_no_obstacle(committed):
    assert committed.run("migrate", "--check", "--report", "html:report.html").status == 1
    assert committed.run("migrate", "--write").status == 0


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
    # Nothing that could be committed is in the way.
    committed.fails("--write", says="; make `git status` work there, or pass --allow-dirty\n")
