"""What git tracks is never ignored, whatever an ignore file says."""

import os

import pytest
from command_line import FINAL, LEGACY
from file_system import commit, found, git, snapshot
from tf_lossscale_codemods.files import git as guarded_git
from tf_lossscale_codemods.files.discover import Candidate, discover
from tf_lossscale_codemods.files.excludes import Excludes


def ignore(text: str, where: str = ".") -> None:
    with open(os.path.join(where, ".gitignore"), "w", encoding="utf-8") as file:
        file.write(text)


@pytest.fixture
def calls(monkeypatch):
    """The commands of git that were run."""
    made = []
    real = guarded_git.run

    def counted(top, *arguments, **more):
        made.append(next(one for one in arguments if one in ("check-ignore", "ls-files")))
        return real(top, *arguments, **more)

    monkeypatch.setattr(guarded_git, "run", counted)
    return made


def test_a_tracked_file_is_rewritten_though_a_pattern_matches_it(repository):
    repository.write(a_pb2=LEGACY, b_pb2=LEGACY, build__deep__c=LEGACY, build__d=LEGACY)
    ignore("*_pb2.py\nbuild/\n")
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
    ignore("out\n")
    commit("z.py", "out/a/x.py", "out/c/notes.txt")
    ignore("!*\n", "out/a")  # git does not read it, as the directory above is ignored
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
    ignore("out\nvenv\n")
    commit(*names)
    ran = repository.run("migrate", "--check", "--exclude", "no")
    assert ran.status == 0, ran.out
    assert ran.out.count(b"x.py") == 0


def test_git_is_called_once_for_each_work_tree(repository, calls):
    repository.write(a=LEGACY, b=LEGACY, out__x=LEGACY, more__x=LEGACY)
    ignore("[ab].py\nout/\nmore/\n")
    commit("a.py", "b.py")
    assert found() == found(".", "out/..") == ["a.py", "b.py"]
    assert calls == ["ls-files"] * 2
    calls.clear()
    assert found("a.py") == ["a.py"]
    assert calls == []
    assert found("out") == ["out/x.py"]
    assert calls == ["ls-files"]


def test_nothing_is_ignored_outside_a_work_tree(command_line, calls):
    command_line.write(a=LEGACY, out__b=LEGACY)
    ignore("out/\n")
    assert found() == ["a.py", "out/b.py"]
    assert calls == []


def test_nothing_is_ignored_without_git_and_a_warning_says_so(repository, monkeypatch):
    repository.write(a=LEGACY, b=LEGACY)
    ignore("a.py\n")
    assert found() == ["b.py"]
    monkeypatch.setenv("PATH", "/nonexistent")
    ran = repository.run("migrate", "--check")
    assert ran.err == (
        ".: warning: git cannot be run (No such file or directory), so ignored files are not "
        "skipped\n"
    )
    assert ran.out.count(b"a.py") > 0


def test_work_trees_at_which_git_hangs_cost_one_time_limit_together(repository, monkeypatch):
    for number in range(20):
        repository.write(**{f"d{number}__a": LEGACY, f"d{number}__b": LEGACY})
        git("init", "-q", where=f"d{number}")
        os.mkfifo(f"d{number}/.git/index")
        ignore("a.py\n", f"d{number}")
    monkeypatch.setattr("tf_lossscale_codemods.files.work_trees._SECONDS", 2.0)
    asked = []
    real = guarded_git.run

    def counted(top, *arguments, **more):
        asked.append(os.path.basename(top))
        return real(top, *arguments, **more)

    monkeypatch.setattr(guarded_git, "run", counted)
    listed = [one for one in discover(["."], Excludes()) if isinstance(one, Candidate)]
    assert len(listed) == 40
    assert asked == [os.path.basename(os.getcwd()), "d0"]


def test_each_work_tree_has_ignore_files_and_an_index_of_its_own(repository):
    for where in ("nested", "../origin"):
        os.mkdir(where)
        git("init", "-q", where=where)
        for name in ("a.py", "b.py", "c.py"):
            repository.path(f"{where}/{name}").write_bytes(LEGACY)
        ignore("[bc].py\n", where)
        commit("a.py", "b.py", ".gitignore", where=where)
    git("submodule", "--quiet", "add", os.path.abspath("../origin"), "sub")
    repository.write(sub__c=LEGACY, a=LEGACY, gone__x=LEGACY)
    git("init", "-q", where="gone")
    ignore("a.py\nsub\ngone\n")
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
    ignore("out\nother\nx.py\n")
    commit("out/l.py", "out/d")
    ran = repository.run("migrate", "--write", "-v", "--allow-dirty")
    files = repository.bytes_on_disk()
    assert files["other/real.py"] == FINAL  # through the link that git tracks
    assert files["src/x.py"] == LEGACY
    assert "out/m.py: unchanged: is ignored by git" in ran.err
    assert "out/d: unchanged: is a symbolic link that leaves the given paths" in ran.err
    with open("../outside/x.py", "rb") as file:
        assert file.read() == LEGACY


def test_a_directory_that_has_become_a_link_is_not_walked_for_its_tracked_files(repository):
    os.mkdir("../outside")
    repository.write(**{"out__sub__x": LEGACY, "..__outside__x": LEGACY})
    ignore("out\n")
    commit("out/sub/x.py")
    os.rename("out/sub", "out/before")
    os.symlink("../../outside", "out/sub")
    before = snapshot(repository.directory.parent)
    assert repository.run("migrate", "--write", "--allow-dirty").status == 0
    assert snapshot(repository.directory.parent) == before


def test_an_index_with_hostile_paths_leads_nowhere(repository):
    repository.write(**{"..__outside__x": LEGACY, "a": LEGACY})
    name = git("hash-object", "-w", "a.py").decode().strip()
    paths = ["out__outside__x.py", "a" + "/a" * 200 + ".py", "zz/x.py"]
    lines = "".join(f"100644 {name}\t{path}\n" for path in paths)
    git("update-index", "--add", "--index-info", stdin=lines.encode())
    git("update-index", "--index-version", "2")
    with open(".git/index", "rb") as file:
        index = file.read()
    assert b"out__outside__x.py" in index
    # Git itself never writes such a path. Without a checksum, as git can be configured to write it.
    damaged = index.replace(b"out__outside__x.py", b"../outside/x/xx.py")[:-20] + bytes(20)
    with open(".git/index", "wb") as file:
        file.write(damaged)
    assert b"../outside" in git("ls-files")
    ignore("*\n!a.py\n")
    before = snapshot(repository.directory.parent)
    assert found() == ["a.py"]
    assert repository.run("migrate", "--check").status == 1
    assert snapshot(repository.directory.parent) == before


def test_the_user_ignores_an_untracked_file_and_it_does_not_make_the_tree_dirty(repository, home):
    (home / ".config" / "git").mkdir(parents=True)
    (home / ".config" / "git" / "ignore").write_text("scratch*.py\n")
    repository.write(a=LEGACY, scratch=LEGACY, scratch_tracked=LEGACY)
    commit("a.py", "scratch_tracked.py")
    assert git("status", "--porcelain") == b""
    assert repository.run("migrate", "--write").status == 0
    files = repository.bytes_on_disk()
    assert (files["a.py"], files["scratch.py"]) == (FINAL, LEGACY)
    assert files["scratch_tracked.py"] == FINAL
