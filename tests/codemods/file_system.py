"""Git repositories, and snapshots to test that a run has changed nothing in a directory."""

import os
import stat
import subprocess

_WHO = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "protocol.file.allow=always"]


def git(*arguments: str, where: str = ".", check: bool = True, stdin: bytes = b"") -> bytes:
    """What a command of git prints."""
    command = ["git", *_WHO, *arguments]
    return subprocess.run(command, cwd=where, check=check, input=stdin, capture_output=True).stdout


def commit(*paths: str, where: str = ".") -> None:
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
