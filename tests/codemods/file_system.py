"""Snapshots of a directory, to test that a run has changed nothing in it."""

import os
import stat


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
