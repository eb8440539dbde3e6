"""The check before `--write` runs no program that the git settings of a work tree name.

Each test first shows that its tripwire works: an ordinary git command in the repository trips it.
"""

import functools
import hashlib
import os
import random
import shutil
import stat
import time

import pytest
from command_line import FINAL, LEGACY
from file_system import commit, git, python_files, snapshot
from tf_lossscale_codemods.files import git as guarded_git


@pytest.fixture
def wire(tmp_path):
    return Wire(tmp_path / "outside")


class Wire:
    """Programs that leave a trace in their own directory when they run."""

    def __init__(self, directory):
        self.directory = directory
        self.traces = directory / "traces"
        self.traces.mkdir(parents=True)

    def program(self, name: str, then: str = "cat") -> str:
        path = self.directory / name
        path.write_text(f"#!/bin/sh\necho ran >> '{self.traces}/{name}'\n{then}\n")
        path.chmod(0o755)
        return str(path)

    def take(self) -> list:
        """The programs that have run since the last time."""
        names = sorted(os.listdir(self.traces))
        for name in names:
            os.unlink(self.traces / name)
        return names


def touch_all():
    """Makes git read the content of each file, because its time differs from the index."""
    for name in ("a.py", "src/b.py", "notes.txt"):
        os.utime(name, (1, 1))


def set_config(**values: str):
    for key, value in values.items():
        git("config", key.replace("__", "."), value)


def attributes(line: str):
    # Not .gitattributes, which would be a change that is not committed.
    with open(".git/info/attributes", "w", encoding="utf-8") as file:
        file.write(line + "\n")


_DIFF = "diff --ext-diff 4b825dc642cb6eb9a060e54bf8d69288fbee4904 HEAD"
_COMMANDS = ("ls-tree", "stat", "ls-files", "cat-file", "rev-parse", "diff-index", "check-attr")
SETTINGS = {
    "fsmonitor": ({"core.fsmonitor": "cat"}, "", "status"),
    "clean filter": (
        {"filter.x.clean": "cat", "filter.x.smudge": "cat", "filter.x.required": ""},
        "* filter=x",
        "status",
    ),
    "process filter": ({"filter.x.process": "exit 1"}, "* filter=x", "status"),
    "textconv": ({"diff.x.textconv": 'cat "$1"'}, "* diff=x", "show HEAD"),
    "external diff": ({"diff.external": "exit 0"}, "", _DIFF),
    "diff driver": ({"diff.x.command": "exit 0"}, "* diff=x", _DIFF),
    "alias": ({f"alias.{command}": "cat" for command in _COMMANDS}, "", "stat"),
}
"""Settings with the programs that they name, attributes, and a command of git that runs one."""


def with_settings(name, wire):
    values, line, control = SETTINGS[name]
    for key, then in values.items():
        program = wire.program(key, then) if then else "true"
        git("config", key, ("!" if name == "alias" else "") + program)
    attributes(line)
    touch_all()
    return control.split()


def with_hooks(wire):
    for name in ("post-index-change", "reference-transaction", "post-checkout", "pre-auto-gc"):
        os.symlink(wire.program("hook", "exit 0"), os.path.join(".git/hooks", name))
    touch_all()
    return ["status"]


def with_hooks_path(wire):
    os.mkdir(".git/elsewhere")
    os.symlink(wire.program("hook", "exit 0"), ".git/elsewhere/post-index-change")
    set_config(core__hooksPath=os.path.abspath(".git/elsewhere"))
    touch_all()
    return ["status"]


def with_lazy_fetch(wire):
    """A partial clone without an object: to fetch it, git runs what the repository configures."""
    set_config(protocol__ext__allow="always", core__repositoryFormatVersion="1")
    set_config(extensions__partialClone="origin", remote__origin__promisor="true")
    set_config(remote__origin__url=f"ext::{wire.program('transport', 'exit 1')}")
    name = git("rev-parse", "HEAD:a.py").decode().strip()
    os.unlink(os.path.join(".git/objects", name[:2], name[2:]))
    return ["cat-file", "-p", name]


TRIPS = {
    **{name: functools.partial(with_settings, name) for name in SETTINGS},
    "hooks": with_hooks,
    "path of hooks": with_hooks_path,
    "lazy fetch": with_lazy_fetch,
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("trip", TRIPS)
def test_nothing_of_a_work_tree_runs(committed, wire, trip):
    control = TRIPS[trip](wire)
    git(*control, check=False)
    assert wire.take(), "the tripwire does not work"
    touch_all()
    before = snapshot(wire.directory)
    tree = snapshot(committed.directory)
    assert committed.run("migrate").status == 1
    assert committed.run("migrate", "--check").status == 1
    assert snapshot(committed.directory) == tree
    notes = committed.path("notes.txt")
    notes.write_text("y\n")
    refuses_to_write(committed)
    notes.write_text("x\n")
    committed.write(new=LEGACY)
    refuses_to_write(committed)
    committed.path("new.py").unlink()
    tree = snapshot(committed.directory / ".git")
    if trip == "lazy fetch":
        refuses_to_write(committed)
    else:
        ran = committed.run("migrate", "--write")
        assert ran.status == 0, ran.err
        found = committed.bytes_on_disk()
        assert found["a.py"] == found["src/b.py"] == FINAL
    assert wire.take() == []
    assert snapshot(wire.directory) == before
    # Nothing of git's has changed either.
    assert snapshot(committed.directory / ".git") == tree


def refuses_to_write(committed):
    tree = snapshot(committed.directory)
    ran = committed.run("migrate", "--write")
    assert ran.status == 2, ran.err
    assert snapshot(committed.directory) == tree


def test_the_environment_of_git_does_not_reach_it(committed, wire, monkeypatch):
    git("init", "-q", "../other")
    for name in ("GIT_EXTERNAL_DIFF", "GIT_SSH_COMMAND", "GIT_ASKPASS", "GIT_PAGER"):
        monkeypatch.setenv(name, wire.program(name))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.fsmonitor")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", wire.program("fsmonitor"))
    git("status", check=False)
    assert wire.take() == ["fsmonitor"]
    monkeypatch.setenv("GIT_DIR", str(committed.directory.parent / "other/.git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(committed.directory.parent / "other"))
    monkeypatch.setenv("GIT_INDEX_FILE", "/nonexistent")
    committed.path("a.py").write_bytes(LEGACY + b"# not committed\n")
    committed.fails("--write", says="has uncommitted changes: a.py")
    committed.path("a.py").write_bytes(LEGACY)
    assert committed.run("migrate", "--write").status == 0
    assert wire.take() == []


def test_a_program_called_git_in_the_repository_does_not_run(committed, wire, monkeypatch):
    os.symlink(wire.program("git"), "git")
    monkeypatch.setenv("PATH", os.pathsep.join([".", "", "./", os.environ["PATH"]]))
    assert git("version") == b""
    assert wire.take() == ["git"]
    assert committed.run("migrate", "--write").status == 0
    assert wire.take() == []


def created(committed, where: str):
    """Makes another repository, with one committed file."""
    git("init", "-q", where)
    committed.path(f"{where}/c.py").write_bytes(LEGACY)
    commit(".", where=where)


@pytest.fixture
def soon_stuck(monkeypatch):
    """A git that only waits is ended soon; test_git.py waits as long as a run does."""
    monkeypatch.setattr(guarded_git, "_STUCK_SECONDS", 0.2)
    monkeypatch.setattr(guarded_git, "_TICK", 0.05)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "name",
    [
        ".gitignore",
        "src/.gitignore",
        ".git/config",
        ".git/HEAD",
        ".git/index",
        ".git/info/exclude",
        ".git/info/attributes",
        ".git/objects/info/alternates",
    ],
)
def test_a_pipe_in_place_of_a_file_holds_no_run(committed, soon_stuck, name):
    path = committed.path(name)
    if path.exists():
        path.unlink()
    os.mkfifo(path)
    started = time.monotonic()
    assert committed.run("migrate").status == 1
    ran = committed.run("migrate", "--write")
    assert time.monotonic() - started < 18  # git itself waits forever
    assert stat.S_ISFIFO(os.stat(path).st_mode)
    if ran.status:
        assert ran.status == 2
        assert "nothing written" in ran.err
        assert committed.bytes_on_disk()["a.py"] == LEGACY


# Each file is looked up in the work tree that holds it.


def refused(command_line, *argv: str, says: str):
    """`--write` changes nothing and says why; with `--allow-dirty` it would."""
    before = snapshot(command_line.directory.parent)
    ran = command_line.run("migrate", "--write", *argv)
    assert (ran.status, ran.out) == (2, b"")
    assert ran.err.startswith("tf-lossscale: error: nothing written: ")
    assert says in ran.err
    assert snapshot(command_line.directory.parent) == before
    assert command_line.run("migrate", "--check", *argv).status == 1
    assert command_line.run("migrate", "--write", "--allow-dirty", *argv).status == 0


UNCOMMITTED = LEGACY + b"# not committed\n"


@pytest.mark.parametrize("ignored", [False, True])
def test_a_nested_repository_is_checked(committed, ignored):
    created(committed, "nested")
    named = ["nested"] if ignored else ["."]
    if ignored:
        committed.path(".gitignore").write_text("nested\n")
        commit(".")
    committed.path("nested/c.py").write_bytes(UNCOMMITTED)
    refused(committed, *named, says="nested has uncommitted changes: c.py")


@pytest.mark.parametrize("change", ["none", "modified", "untracked", "staged"])
def test_a_submodule_is_checked_even_if_it_is_to_be_ignored(committed, change):
    created(committed, "../origin")
    git("submodule", "--quiet", "add", os.path.abspath("../origin"), "sub")
    git("config", "-f", ".gitmodules", "submodule.sub.ignore", "all")
    commit(".")
    assert os.path.isfile("sub/.git")
    if change == "none":
        assert committed.run("migrate", "--write").status == 0
        assert committed.bytes_on_disk()["sub/c.py"] == FINAL
        return
    name = "new.py" if change == "untracked" else "c.py"
    committed.path(f"sub/{name}").write_bytes(UNCOMMITTED)
    if change == "staged":
        git("add", ".", where="sub")
    refused(committed, says=f"sub has uncommitted changes: {name}")


def test_a_linked_work_tree_is_checked(committed):
    git("worktree", "add", "-q", "../second")
    committed.path("../second/a.py").write_bytes(UNCOMMITTED)
    refused(committed, "../second", says="second has uncommitted changes: a.py")


def test_a_tree_that_is_named_by_a_link_is_checked(committed):
    created(committed, "../other")
    committed.path("../other/c.py").write_bytes(UNCOMMITTED)
    os.symlink("../other", "link")
    commit(".")
    refused(committed, "link/", says="other has uncommitted changes: c.py")


def test_a_dirty_file_that_does_not_change_holds_nothing_up(committed):
    committed.path(".gitignore").write_text("generated.py\n")
    commit(".")
    # It has a legacy name, so a rule must look at it, but nothing to rewrite.
    committed.write(generated=b"# LossScaleOptimizer\n")
    assert committed.run("migrate", "--write", "a.py", "generated.py").status == 0
    assert committed.bytes_on_disk()["a.py"] == FINAL


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
def test_files_that_git_assumes_unchanged_are_checked(committed, flag):
    git("update-index", flag, "a.py")
    committed.path("a.py").write_bytes(UNCOMMITTED)
    assert git("status", "--porcelain") == b""
    refused(committed, "a.py", says="a.py has uncommitted changes")


def test_content_that_git_has_lost_cannot_be_given_back(committed):
    name = git("rev-parse", "HEAD:a.py").decode().strip()
    path = os.path.join(".git/objects", name[:2], name[2:])
    os.chmod(path, 0o644)
    with open(path, "wb") as file:
        file.write(b"damaged")
    ran = committed.run("migrate", "--write", "src", "a.py")
    assert ran.status == 2
    assert committed.bytes_on_disk()["src/b.py"] == LEGACY
    os.unlink(path)
    committed.fails("--write", "a.py", says="git has no object for the committed content of")
    assert committed.bytes_on_disk()["a.py"] == LEGACY


def test_a_repository_without_a_commit_gives_nothing_back(command_line):
    git("init", "-q")
    command_line.write(a=LEGACY)
    git("add", ".")
    refused(command_line, says="has uncommitted changes: a.py")


@pytest.mark.parametrize(
    ("key", "value", "attribute"),
    [
        ("core.autocrlf", "true", ""),
        ("core.autocrlf", "false", "*.py text eol=crlf"),
        ("core.eol", "crlf", "*.py text"),
    ],
)
def test_line_ends_count_where_git_would_not_write_them(committed, key, value, attribute):
    git("config", key, value)
    attributes(attribute)
    for name in ("a.py", "src/b.py"):
        committed.path(name).write_bytes(LEGACY.replace(b"\n", b"\r\n"))
    assert committed.run("migrate", "--write").status == 0
    committed.path("a.py").write_bytes(LEGACY.replace(b"\n", b"\r\n", 1))
    assert committed.run("migrate", "--write", "a.py").status == 2


def test_objects_named_by_sha256_are_found(command_line):
    git("init", "-q", "--object-format=sha256")
    command_line.write(a=LEGACY)
    commit(".")
    assert command_line.run("migrate", "--write").status == 0
    command_line.path("a.py").write_bytes(UNCOMMITTED)
    refused(command_line, says="has uncommitted changes: a.py")


def test_an_index_in_two_parts_or_in_short_is_read(committed):
    git("update-index", "--split-index")
    git("update-index", "--index-version", "4")
    assert committed.run("migrate", "--write").status == 0


def test_a_work_tree_that_points_elsewhere_is_no_way_around(committed):
    os.mkdir("../elsewhere")
    set_config(core__worktree=os.path.abspath("../elsewhere"))
    committed.path("a.py").write_bytes(UNCOMMITTED)
    committed.fails("--write", says="has uncommitted changes: a.py")


def test_a_damaged_repository_inside_another_is_refused(committed):
    os.makedirs("inner/.git")
    committed.write(inner__c=LEGACY)
    committed.fails("--write", "inner", says="inner: git failed")


def test_many_files_are_requested_together(command_line, calls):
    git("init", "-q")
    command_line.write(**{f"d{number % 7}__f{number}": LEGACY for number in range(40)})
    commit(".")
    assert command_line.run("migrate", "--write").status == 0
    assert len(calls) <= 7


def test_the_number_of_waits_for_git_does_not_grow_with_the_work_trees(
    committed, soon_stuck, monkeypatch
):
    for number in range(4):
        created(committed, f"nested{number}")
        os.unlink(f"nested{number}/.git/index")
        os.mkfifo(f"nested{number}/.git/index")
    waits = []
    real = guarded_git._answer

    def counted(process, *more):
        try:
            return real(process, *more)
        except guarded_git.LateError:
            waits.append(process)
            raise

    monkeypatch.setattr(guarded_git, "_answer", counted)
    committed.fails("--write", says="git is stuck, perhaps at a pipe in place of a file")
    assert len(waits) == 2  # to list, to check the files to write


@pytest.mark.parametrize("path", [b"../outside/pipe", b"link/pipe"])
def test_an_index_that_names_what_is_elsewhere_does_no_harm(committed, wire, path):
    os.mkfifo(wire.directory / "pipe")
    os.symlink(wire.directory, "link")
    with open(".git/index", "rb") as file:
        index = file.read()
    old = b"notes.txt"
    # The entry of the same length, so that only its name and the checksum of the index change.
    name = path.ljust(len(old), b"x")[: len(old)]
    body = index[:-20].replace(old, name)
    with open(".git/index", "wb") as file:
        file.write(body + hashlib.sha1(body).digest())
    before = snapshot(wire.directory)
    ran = committed.run("migrate", "--write")
    assert ran.status == 2
    assert snapshot(wire.directory) == before
    assert committed.bytes_on_disk()["a.py"] == LEGACY


@pytest.mark.sampled(6)
@pytest.mark.parametrize("seed", range(6))
def test_random_damage_to_git_loses_nothing(committed, wire, seed, monkeypatch):
    """However `.git` is damaged: nothing is written, or git still has the old content."""
    monkeypatch.setattr(guarded_git, "_SECONDS", 20.0)
    rng = random.Random(seed)
    set_config(core__fsmonitor=wire.program("fsmonitor"))
    saved = "../saved"
    shutil.copytree(".git", saved)
    damaged = [
        os.path.join(directory, name)
        for directory, _, names in os.walk(".git")
        for name in names
        if "hooks" not in directory
    ]
    for _ in range(5):
        path = rng.choice([*damaged, *[".git/index", ".git/config", ".git/HEAD"] * 5])
        with open(path, "rb") as file:
            data = bytearray(file.read())
        for _ in range(rng.choice([1, 1, 5])):
            if data:
                data[rng.randrange(len(data))] = rng.randrange(256)
        if path.endswith("index") and rng.random() < 0.7:  # git refuses another checksum at once
            data[-20:] = hashlib.sha1(data[:-20]).digest()
        os.chmod(path, 0o644)
        with open(path, "wb") as file:
            file.write(data)
        ran = committed.run("migrate", "--write")
        now = python_files(committed)
        if ran.status == 0:
            for object_id in (git("rev-parse", f"HEAD:{name}", where=saved) for name in now):
                assert git("cat-file", "-p", object_id.decode().strip()) == LEGACY
        else:
            assert ran.status == 2, ran.err
            assert set(now.values()) == {LEGACY}
        assert wire.take() == []
        for name in now:
            committed.path(name).write_bytes(LEGACY)
        shutil.rmtree(".git")
        shutil.copytree(saved, ".git")
