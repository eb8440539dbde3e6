"""An untrusted repository cannot make the command leave the given paths.

Each test creates such a repository next to another directory, and compares everything in both
before and after: path, mode, time, bytes.
"""

import os
import random
import resource
import shutil
import socket
import stat
import subprocess
import sys
import time

import pytest
from command_line import FINAL, LEGACY
from file_system import found, git, snapshot
from tf_lossscale_codemods.files import atomic_write, directories, discover as discovery
from tf_lossscale_codemods.files.directories import Directory
from tf_lossscale_codemods.files.discover import Candidate, Note, discover
from tf_lossscale_codemods.files.excludes import Excludes

OUTSIDE = "is a symbolic link that leaves the given paths; see --follow-links-outside"


@pytest.fixture
def outside(command_line, tmp_path):
    """A directory outside that a malicious repository targets."""
    folder = tmp_path / "outside"
    (folder / "deep").mkdir(parents=True)
    for path in ("home.py", "deep/site.py", "notes.txt"):
        (folder / path).write_bytes(LEGACY)
    return folder


def swap(outside):
    """Makes `sub` a link that leads outside, once."""
    if not os.path.islink("sub"):
        os.rename("sub", "moved")
        os.symlink(outside / "deep", "sub")


def names(folder) -> list:
    return sorted(os.listdir(folder))


# Links


@pytest.fixture
def leading_out(command_line, outside):
    command_line.write(mine=LEGACY, sub__own=LEGACY)
    os.symlink(outside / "home.py", "file.py")
    os.symlink("../outside/home.py", "relative.py")
    os.symlink(outside, "directory")
    os.symlink("../../outside/deep", "sub/above")
    os.symlink("directory/deep/site.py", "through.py")
    os.symlink("/", "root")
    os.symlink("/proc/self/root", "proc")
    os.symlink("loop.py", "loop.py")
    os.symlink("../here", "self")
    return command_line


@pytest.mark.parametrize("arguments", [[], ["--check"], ["--write"]], ids=["dry", "check", "write"])
def test_links_out_are_not_followed(leading_out, outside, arguments):
    before = snapshot(outside)
    ran = leading_out.run("migrate", "-v", *arguments)
    assert ran.status == (0 if arguments == ["--write"] else 1)
    assert snapshot(outside) == before
    left = {line for line in ran.err.splitlines() if OUTSIDE in line}
    links = ["directory", "file.py", "proc", "relative.py", "root", "sub/above", "through.py"]
    assert left == {f"{link}: unchanged: {OUTSIDE}" for link in links}
    assert b"home" not in ran.out
    expected = FINAL if arguments == ["--write"] else LEGACY
    assert leading_out.path("mine.py").read_bytes() == expected
    assert leading_out.path("sub/own.py").read_bytes() == expected
    assert leading_out.run("migrate", *arguments).err == ""


def test_links_that_leave_the_paths_are_followed_on_request(command_line, outside):
    command_line.write(mine=LEGACY)
    os.symlink(outside, "directory")
    os.symlink(outside / "home.py", "file.py")
    os.symlink(outside / "deep", "again")
    os.symlink("..", outside / "deep" / "up")
    ran = command_line.run("migrate", "--write", "--follow-links-outside")
    assert (ran.status, ran.err) == (0, "")
    assert (outside / "home.py").read_bytes() == FINAL
    assert (outside / "deep" / "site.py").read_bytes() == FINAL
    assert (outside / "notes.txt").read_bytes() == LEGACY
    assert os.readlink("file.py") == str(outside / "home.py")


def test_a_link_that_is_named_is_followed(command_line, outside):
    os.symlink(outside / "home.py", "file.py")
    os.symlink(outside / "deep", "directory")
    assert command_line.run("migrate", "--write", "file.py", "directory").status == 0
    assert (outside / "home.py").read_bytes() == FINAL
    assert (outside / "deep" / "site.py").read_bytes() == FINAL
    assert os.path.islink("file.py")


def test_a_link_from_one_named_path_to_another_is_followed(command_line, outside):
    command_line.write(a__x=b"")
    os.symlink(outside / "notes.txt", "a/notes.py")
    assert command_line.run("migrate", "--write", "a").status == 0
    assert (outside / "notes.txt").read_bytes() == LEGACY
    assert command_line.run("migrate", "--write", "a", str(outside)).status == 0
    assert (outside / "notes.txt").read_bytes() == FINAL


def test_a_neighbour_whose_name_begins_alike_is_outside(command_line):
    command_line.write(pkg__x=b"", pkg_old__y=LEGACY)
    os.symlink("../pkg_old", "pkg/old")
    assert command_line.run("migrate", "--write", "pkg").status == 0
    assert command_line.path("pkg_old/y.py").read_bytes() == LEGACY


@pytest.mark.parametrize("follow", [[], ["--follow-links-outside"]], ids=["default", "outside"])
def test_links_to_the_data_of_version_control_are_left(command_line, follow):
    command_line.path(".git/hooks/deep/hook.py").write_bytes(LEGACY)
    os.symlink(".git/hooks/deep/hook.py", "hook.py")
    os.symlink(".git/hooks", "hooks")
    assert command_line.run("migrate", "--write", "--allow-dirty", *follow).status == 0
    assert command_line.path(".git/hooks/deep/hook.py").read_bytes() == LEGACY


def test_an_excluded_file_is_not_reached_by_a_link(command_line):
    command_line.write(vendor__x=LEGACY)
    os.symlink("vendor/x.py", "x.py")
    assert command_line.run("migrate", "--write", "--exclude", "vendor").status == 0
    assert command_line.path("vendor/x.py").read_bytes() == LEGACY


# What is no file


@pytest.mark.parametrize("kind", ["pipe", "socket", "device", "directory", "link to pipe"])
def test_a_python_file_that_is_no_file_is_not_opened(legacy, outside, kind):
    make_special("x.py", kind, outside)
    ran = legacy.run("migrate", "--write")
    assert (ran.status, ran.err) == (0, "")
    assert legacy.path("a.py").read_bytes() == FINAL


def make_special(name: str, kind: str, outside):
    if kind == "pipe":
        os.mkfifo(name)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(name)
    elif kind == "device":
        try:
            os.mknod(name, stat.S_IFCHR | 0o666, os.makedev(1, 5))  # /dev/zero, which never ends
        except PermissionError:
            os.mkfifo(name)
    elif kind == "directory":
        os.mkdir(name)
    else:
        os.mkfifo(outside / "pipe")
        os.symlink(outside / "pipe", name)


# A tree that changes under the run


def test_a_directory_that_becomes_a_link_is_not_written_through(command_line, outside, monkeypatch):
    from tf_lossscale_codemods.engine import transform as engine

    command_line.write(a=LEGACY, sub__site=LEGACY)
    transform = engine.FileWork

    def swapping(*arguments):
        swap(outside)
        return transform(*arguments)

    monkeypatch.setattr(engine, "FileWork", swapping)
    before = snapshot(outside)
    ran = command_line.run("migrate", "--write", "--jobs", "1", "sub")
    assert ran.status == 2
    assert ran.err == (
        "sub/site.py: error: could not be written: its path now contains a symbolic link; "
        "the file is unchanged\n"
    )
    assert snapshot(outside) == before
    assert command_line.path("moved/site.py").read_bytes() == LEGACY
    assert names("moved") == ["site.py"]


def test_a_directory_that_becomes_a_link_is_not_read_through(command_line, outside, monkeypatch):
    command_line.write(a=LEGACY, sub__site=LEGACY)
    words = []
    for entry in discover(["."], Excludes()):
        assert isinstance(entry, Candidate)
        if entry.path == "sub/site.py":
            swap(outside)
            with pytest.raises(atomic_write.SwappedError) as caught:
                atomic_write.read(entry.real)
            words.append(discovery.words(caught.value))
    assert words == ["not processed: its path now contains a symbolic link; run again"]


def test_a_directory_that_becomes_a_link_is_not_walked_into(command_line, outside):
    command_line.write(a__x=b"", b__x=b"")
    seen = []
    for entry in discover(["."], Excludes()):
        seen.append(entry)
        if entry.path == "a/x.py":
            os.rename("b", "moved")
            os.symlink(outside, "b")
    assert [(type(entry), entry.path) for entry in seen] == [(Candidate, "a/x.py"), (Note, "b")]


def test_another_directory_in_its_place_is_seen(tmp_path):
    place = tmp_path.resolve() / "a"
    place.mkdir()
    with Directory(str(place)) as directory:
        directory.check_place()
        place.rename(tmp_path / "moved")
        place.mkdir()
        with pytest.raises(atomic_write.SwappedError):
            directory.check_place()


def test_a_file_that_becomes_a_link_is_left(command_line, outside):
    before = snapshot(outside)
    command_line.write(a=LEGACY)
    path = os.path.realpath("a.py")
    os.unlink(path)
    os.symlink(outside / "home.py", path)
    with pytest.raises(atomic_write.SwappedError):
        atomic_write.read(path)
    with pytest.raises(OSError, match="link"):
        atomic_write.replace(path, LEGACY, FINAL)
    assert snapshot(outside) == before
    assert names(".") == ["a.py"]


MOMENTS = [
    (atomic_write, "claim", True),
    (atomic_write, "_give_attributes", True),
    (atomic_write, "_give_attributes", False),
    (Directory, "read", True),
]


@pytest.mark.parametrize(("owner", "moment", "has_handles"), MOMENTS)
def test_a_swap_while_the_file_is_written_is_seen(
    command_line, outside, monkeypatch, owner, moment, has_handles
):
    """Without handles, each step checks the path."""
    if not has_handles:
        monkeypatch.setattr(directories, "_HAS_HANDLES", False)
    command_line.write(a=LEGACY, sub__site=LEGACY)
    assert command_line.run("migrate", "--write", "a.py").status == 0
    assert command_line.path("a.py").read_bytes() == FINAL
    path = os.path.realpath("sub/site.py")
    step = getattr(owner, moment)

    def swapping(*arguments):
        swap(outside)
        return step(*arguments)

    before = snapshot(outside)
    monkeypatch.setattr(owner, moment, swapping)
    with pytest.raises(atomic_write.SwappedError):
        atomic_write.replace(path, LEGACY, FINAL)
    assert snapshot(outside) == before
    assert command_line.path("moved/site.py").read_bytes() == LEGACY
    if has_handles:
        assert names("moved") == ["site.py"]


def test_swaps_at_any_moment_write_nothing_outside(command_line, outside):
    """Another process keeps swapping a directory and a link while files below are replaced."""
    command_line.path("sub/site.py").write_bytes(b"old")
    (outside / "deep" / "site.py").write_bytes(b"old")
    path = os.path.realpath("sub/site.py")
    before = snapshot(outside)
    swapper = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import os, sys\n"
            "os.symlink(sys.argv[1], 'link')\n"
            "print('ready', flush=True)\n"
            "while True:\n"
            "    os.rename('sub', 'kept'); os.rename('link', 'sub')\n"
            "    os.rename('sub', 'link'); os.rename('kept', 'sub')\n",
            str(outside / "deep"),
        ],
        stdout=subprocess.PIPE,
    )
    try:
        assert swapper.stdout is not None
        assert swapper.stdout.readline() == b"ready\n"
        refused = tried = 0
        end = time.monotonic() + 60
        while tried < 300 or (not refused and time.monotonic() < end):
            tried += 1
            try:
                atomic_write.replace(path, b"old", b"old")
            except OSError:
                refused += 1
    finally:
        swapper.kill()
        swapper.wait()
        swapper.stdout.close()
    assert snapshot(outside) == before
    assert refused > 0


# Hard links


def test_a_file_with_several_hard_links_is_left(command_line, outside):
    command_line.write(a=LEGACY, c=LEGACY)
    os.link("a.py", outside / "same.py")
    before = snapshot(outside)
    ran = command_line.run("migrate", "--write")
    assert ran.status == 2
    assert ran.err == (
        "a.py: error: could not be written: it has 2 hard links, of which only one would be "
        "replaced; the file is unchanged\n"
    )
    assert os.path.samefile("a.py", outside / "same.py")
    assert snapshot(outside) == before
    assert command_line.path("c.py").read_bytes() == FINAL


def test_hard_links_are_shown_by_a_dry_run(legacy):
    os.link("a.py", "b.py")
    ran = legacy.run("migrate")
    assert (ran.status, ran.err) == (1, "")
    assert ran.out.count(b"+opt") == 2


# What a kill leaves


@pytest.fixture
def half_written(tmp_path, monkeypatch):
    """A file, and the temporary file that a killed run has left next to it."""
    (tmp_path / "a.py").write_bytes(b"old")
    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", lambda *arguments, **more: None)
        atomic_write.replace(os.path.realpath(tmp_path / "a.py"), b"old", b"new")
    (left,) = set(names(tmp_path)) - {"a.py"}
    return tmp_path / left


def test_a_temporary_file_in_use_is_left(half_written):
    path = os.path.realpath(half_written.parent / "a.py")
    with open(half_written, "rb") as file:
        assert atomic_write.claim(file.fileno())
        with pytest.raises(atomic_write.BusyError):
            atomic_write.replace(path, b"old", b"new")
        assert half_written.exists()
    atomic_write.replace(path, b"old", b"new")
    assert names(half_written.parent) == ["a.py"]


@pytest.mark.parametrize("kind", ["directory", "link", "hard link", "pipe"])
def test_what_has_the_name_of_a_temporary_file_does_no_harm(half_written, kind):
    target = half_written.parent / "target"
    target.write_bytes(b"kept")
    half_written.unlink()
    if kind == "directory":
        half_written.mkdir()
    elif kind == "link":
        half_written.symlink_to(target)
    elif kind == "hard link":
        os.link(target, half_written)
    else:
        os.mkfifo(half_written)
    path = half_written.parent / "a.py"
    if kind in ("directory", "link"):
        with pytest.raises(OSError, match=r"."):
            atomic_write.replace(os.path.realpath(path), b"old", b"new")
        assert path.read_bytes() == b"old"
    else:
        atomic_write.replace(os.path.realpath(path), b"old", b"new")
        assert path.read_bytes() == b"new"
    assert target.read_bytes() == b"kept"


@pytest.mark.parametrize("moment", ["claim", "_give_attributes"])
@pytest.mark.parametrize("has_locks", [True, False])
def test_two_runs_that_replace_a_file_leave_it_whole(tmp_path, monkeypatch, moment, has_locks):
    """The second run begins at a moment of the first, and ends before the first goes on."""
    path = os.path.realpath(tmp_path / "a.py")
    (tmp_path / "a.py").write_bytes(b"old")
    step = getattr(atomic_write, moment)
    if not has_locks:
        monkeypatch.setattr(atomic_write, "fcntl", None)
    outcomes = []

    def replaced(new: bytes):
        try:
            atomic_write.replace(path, b"old", new)
            outcomes.append(new)
        except OSError:
            outcomes.append(b"")

    def with_another(*arguments):
        monkeypatch.setattr(atomic_write, moment, step)
        replaced(b"second")
        return step(*arguments)

    monkeypatch.setattr(atomic_write, moment, with_another)
    replaced(b"first")
    (written,) = filter(None, outcomes)
    assert (tmp_path / "a.py").read_bytes() == written
    assert names(tmp_path) == ["a.py"]


# Deep trees, many names, few handles


@pytest.fixture
def few_handles():
    """At most 64 open files, as after `ulimit -n 64`."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_six_hundred_nested_directories(command_line, few_handles):
    deepest = "/".join(["d"] * 600)
    os.makedirs(deepest)
    command_line.path(f"{deepest}/x.py").write_bytes(LEGACY)
    ran = command_line.run("migrate", "--write", "--jobs", "1")
    assert (ran.status, ran.err) == (0, "")
    assert command_line.path(f"{deepest}/x.py").read_bytes() == FINAL


def test_a_path_longer_than_the_system_takes_is_one_line(legacy):
    here = os.getcwd()
    try:
        for _ in range(30):
            os.mkdir("d" * 200)
            os.chdir("d" * 200)
        with open("x.py", "wb") as file:
            file.write(LEGACY)
        os.chdir(here)
        ran = legacy.run("migrate", "--write", "--jobs", "1")
        for _ in range(30):
            os.chdir("d" * 200)
        with open("x.py", "rb") as file:
            source = file.read()
    finally:
        os.chdir(here)
        shutil.rmtree("d" * 200)
    # Handles reach a file that no path leads to; another part of the run may need the path.
    assert (ran.status, ran.err.count("\n"), source) in [(0, 0, FINAL), (2, 1, LEGACY)]
    assert legacy.path("a.py").read_bytes() == FINAL


def test_a_walk_over_many_directories_holds_few_handles(command_line, few_handles):
    for number in range(200):
        command_line.path(f"d{number}/x.py").write_bytes(b"")
    before = names("/proc/self/fd")
    assert len(found()) == 200
    assert names("/proc/self/fd") == before


def test_names_that_are_no_text(command_line):
    for name in (b"\xff.py", b"\xfe/x.py", b"new\nline.py", b"\xfe/\xfd.py", b"\x1b[31m.py"):
        path = os.fsencode(command_line.directory) + b"/" + name
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(LEGACY)
    git("init", "-q")
    command_line.path(".gitignore").write_bytes(b"\xfd.py\n")
    assert sorted(map(os.fsencode, found())) == [
        b"\x1b[31m.py",
        b"new\nline.py",
        b"\xfe/x.py",
        b"\xff.py",
    ]


def test_random_trees_of_links_change_nothing_outside(command_line, outside):
    """Random links: files inside are rewritten once, files outside never."""
    choices = random.Random(13)
    folders = ["."]
    for number in range(12):
        folders.append(os.path.join(choices.choice(folders), f"d{number}"))
        os.mkdir(folders[-1])
        command_line.path(f"{folders[-1]}/f.py").write_bytes(LEGACY)
    targets = [*folders, "..", "../outside", "/", str(outside / "home.py"), "../outside/deep"]
    for number in range(60):
        folder, target = choices.choice(folders), choices.choice(targets)
        if not os.path.isabs(target):
            target = os.path.relpath(target, folder)
        suffix = choices.choice(["", ".py"])
        os.symlink(target, os.path.join(folder, f"l{number}{suffix}"))
        targets.append(os.path.join(folder, f"l{number}{suffix}"))
    before = snapshot(outside)
    assert command_line.run("migrate", "--write").status == 0
    assert snapshot(outside) == before
    assert all(command_line.path(f"{folder}/f.py").read_bytes() == FINAL for folder in folders[1:])
