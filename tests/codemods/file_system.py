"""Git repositories, the files that a run finds, and snapshots: has a run changed anything?"""

import os
import stat
import subprocess

import pytest
from command_line import LEGACY
from tf_lossscale_codemods.files import git as guarded_git
from tf_lossscale_codemods.files.discover import Candidate, Note, NoteKind, discover
from tf_lossscale_codemods.files.excludes import Excludes

_WHO = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "protocol.file.allow=always"]


def git(*arguments: str, where: str = ".", check: bool = True, stdin: bytes = b"") -> bytes:
    """What a command of git prints."""
    command = ["git", *_WHO, *arguments]
    return subprocess.run(command, cwd=where, check=check, input=stdin, capture_output=True).stdout


def commit(*paths: str, where: str = "."):
    """Commits the paths, ignored or not."""
    git("add", "-f", *paths, where=where)
    git("commit", "-q", "--no-verify", "-m", "some", where=where)


def snapshot(*directories: object) -> dict:
    """Each path to its kind and mode, time of change, and bytes or link target."""
    found = {}
    for top in map(os.fsencode, map(str, directories)):
        found[top] = _state(top)
        for directory, names, files in os.walk(top):
            for name in [*names, *files]:
                path = os.path.join(directory, name)
                found[path] = _state(path)
    return found


def _state(path: bytes) -> tuple:
    status = os.lstat(path)
    content = b""
    if stat.S_ISLNK(status.st_mode):
        content = os.readlink(path)
    elif stat.S_ISREG(status.st_mode):
        with open(path, "rb") as file:
            content = file.read()
    return status.st_mode, status.st_mtime_ns, content


def found(*paths: str) -> list:
    """The files that a run checks, which gives no warning."""
    listed = list(discover(paths or ["."], Excludes()))
    assert not [
        entry for entry in listed if isinstance(entry, Note) and entry.kind is NoteKind.WARNING
    ]
    return [entry.path for entry in listed if isinstance(entry, Candidate)]


def python_files(command_line) -> dict:
    found = command_line.bytes_on_disk()
    return {path: data for path, data in found.items() if path.endswith(".py")}


@pytest.fixture
def home(tmp_path, monkeypatch):
    """The home directory of the user, without settings of git."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("GIT_CONFIG_GLOBAL", raising=False)
    return home


@pytest.fixture
def repository(command_line, home):
    """An empty repository."""
    git("init", "-q")
    return command_line


@pytest.fixture
def committed(repository):
    """A repository with three committed files."""
    repository.write(a=LEGACY, src__b=LEGACY)
    repository.path("notes.txt").write_text("x\n")
    commit(".")
    return repository


@pytest.fixture
def calls(monkeypatch):
    """The names of work trees, and the commands that list files which git ran in them."""
    made = []
    real = guarded_git.run

    def counted(top, *arguments, **more):
        name = next(
            (argument for argument in arguments if argument in ("check-ignore", "ls-files")), ""
        )
        made.append((os.path.basename(top), name))
        return real(top, *arguments, **more)

    monkeypatch.setattr(guarded_git, "run", counted)
    return made
