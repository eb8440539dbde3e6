"""What git knows about the files of a work tree: which it ignores, and which it could restore.

Each file is looked up in the work tree that contains it, which may be a nested repository, a
submodule, or the work tree of the target of a link.
"""

from __future__ import annotations

import functools
import os
import re
import time
from collections.abc import Collection, Iterable, Iterator
from typing import Callable, Optional

from . import atomic_write, git
from .excludes import SUFFIXES, is_environment_or_cache
from .printable import quoted, visible

__all__ = ["IgnoredPaths", "enclosing", "why_not_restorable"]

_SECONDS = 20.0
"""Time limit to list the ignored files of all work trees together. Git waits forever for a pipe in
place of a `.gitignore`, and some patterns take it exponential time."""

_IGNORED = ("ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z")
_STATUS = (
    *("status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all"),
    "--ignore-submodules=all",
)
_ENTRY = re.compile(r"(\d{6}) ([0-9a-f]{40,64}) [0-3]\t([^\0]+)\0")
_Index = dict[str, tuple[str, str]]
"""The mode and the object id of each tracked file, by its path."""

_LARGEST = 256 * 1024**2
"""Bytes of a file to compare; a larger file counts as changed."""


class IgnoredPaths:
    """The ignored paths of the work trees that were added, as git itself lists them.

    `path in ignored` is true for an ignored file or directory in a directory that is not ignored
    itself. Outside a work tree nothing is ignored. If git fails or takes too long, nothing is
    either, and a warning says so.

    Args:
      warn: called with the top of a work tree and the reason if git cannot list its ignored paths.
    """

    def __init__(self, warn: Callable[[str, str], None]) -> None:
        self._warn = warn
        self._paths: set[str] = set()
        self._tops: set[str] = set()
        self._seconds_left = _SECONDS

    def __contains__(self, path: str) -> bool:
        return path in self._paths

    def add(self, top: str) -> None:
        """Adds the ignored paths of the work tree at `top`, once."""
        if top in self._tops or self._seconds_left <= 0:
            return
        self._tops.add(top)
        started = time.monotonic()
        try:
            # The names on disk; git on macOS would normalize them.
            unchanged = ("-c", "core.precomposeUnicode=false")
            listed = git.run(top, *unchanged, *_IGNORED, seconds=self._seconds_left)
        except git.GitError as error:
            self._warn(top, f"git {error}, so ignored files are not skipped")
            if isinstance(error, git.LateError):  # do not wait again for the other work trees
                self._seconds_left = 0
            return
        self._seconds_left -= time.monotonic() - started
        self._paths.update(
            os.path.join(top, name.rstrip("/").replace("/", os.sep))
            for name in os.fsdecode(listed).split("\0")[:-1]
        )


def enclosing(path: str) -> Iterator[str]:
    """Yields the directories that contain a file, or a directory and those above it, up to a last.

    The last one is the top of its git work tree. Outside git, it is the working directory, or the
    first directory if that is not below the working directory.
    """
    real = os.path.realpath(path)
    directory = real if os.path.isdir(real) else os.path.dirname(real)
    here = os.path.realpath(os.getcwd())
    is_here = directory == here or directory.startswith(here.rstrip(os.sep) + os.sep)
    last = git.top_of(directory) or (here if is_here else directory)
    yield directory
    while directory not in (last, os.path.dirname(directory)):
        directory = os.path.dirname(directory)
        yield directory


def why_not_restorable(files: Iterable[str]) -> Optional[str]:
    """Why one of the files must not be overwritten, and what to do; None if all may be.

    A file outside any work tree may be overwritten. In a work tree, the file must be tracked, git
    must have its content, and the work tree must be clean: no tracked file has uncommitted changes,
    and no Python file or notebook is untracked.

    Args:
      files: absolute paths without symbolic links.
    """
    trees: dict[str, list[str]] = {}
    top_of = functools.lru_cache(maxsize=None)(git.top_of)
    for file in files:
        top = top_of(os.path.dirname(file))
        if top is not None:
            trees.setdefault(top, []).append(os.path.relpath(file, top).replace(os.sep, "/"))
    for top, paths in trees.items():
        try:
            listed = os.fsdecode(git.run(top, "ls-files", "--stage", "-z"))
            index = {path: (mode, object_id) for mode, object_id, path in _ENTRY.findall(listed)}
            why = _why_dirty(top, index) or next(_differing(top, index, paths), ("", ""))[1]
        except git.GitError as error:
            why = f"cannot check the git work tree {quoted(top)}: git {visible(str(error))}"
            return f"{why}; make `git status` work there"
        if why:
            return f"{why}; commit or stash the changes"
    return None


def _why_dirty(top: str, index: _Index) -> Optional[str]:
    """Describes the uncommitted changes in a work tree; None if there are none."""
    listed = os.fsdecode(git.run(top, *git.without_filters(top), *_STATUS)).split("\0")[:-1]
    # Git also lists files whose size has changed because of line ends.
    modified = (entry[3:] for entry in listed if entry.startswith(" M"))
    changed = [path for path, _ in _differing(top, index, modified)]
    for entry in listed:
        is_untracked = entry.startswith("??")
        if not entry.startswith(" M") and (not is_untracked or _may_be_checked(top, entry[3:])):
            changed.append(entry[3:])
    if not changed:
        return None
    more = f" and {len(changed) - 1:,} more" if len(changed) > 1 else ""
    return f"{quoted(top)} has uncommitted changes: {quoted(min(changed))}{more}"


def _may_be_checked(top: str, path: str) -> bool:
    """Whether a run could check an untracked file."""
    if not path.endswith(SUFFIXES) or os.path.islink(os.path.join(top, path)):
        return False
    parts = path.split("/")[:-1]
    folders = (os.path.join(top, *parts[: depth + 1]) for depth in range(len(parts)))
    return not any(map(is_environment_or_cache, folders))


def _differing(top: str, index: _Index, paths: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yields the files whose bytes git could not restore, each with the reason.

    The bytes are compared with the index by the id that git gives them, since a work tree
    can be set up so that git takes a file for unchanged without reading it.
    """
    same: dict[str, str] = {}
    for path in paths:
        shown = quoted(os.path.join(top, path))
        mode, object_id = index.get(path, ("", ""))
        if not mode.startswith("100"):
            yield path, f"git does not track {shown} and could not restore it"
        elif not _has_content(os.path.join(top, path), object_id):
            yield path, f"{shown} has uncommitted changes"
        else:
            same[path] = object_id
    missing = _missing_objects(top, same.values())
    for path, object_id in same.items():
        if object_id in missing:
            shown = quoted(os.path.join(top, path))
            yield path, f"git has no object for the committed content of {shown}"


def _missing_objects(top: str, object_ids: Collection[str]) -> set[str]:
    """Those of the ids for which the repository has no object, as in a partial clone."""
    if not object_ids:
        return set()
    requests = "".join(f"{object_id}\n" for object_id in object_ids).encode()
    stored = git.run(top, "cat-file", "--batch-check", data=requests).decode()
    return {line.split(" ")[0] for line in stored.splitlines() if line.endswith(" missing")}


def _has_content(file: str, object_id: str) -> bool:
    """Whether a file can be read and git would give its bytes this id."""
    try:
        data = atomic_write.read(file, _LARGEST)
    except OSError:
        return False
    return _has_id(data, object_id)


def _has_id(data: bytes, object_id: str) -> bool:
    """Whether git would give the bytes this id, also if it wrote CRLF in place of LF."""
    import hashlib  # takes as long as the search of fifty files, and most runs write nothing

    contents = [data]
    if data.count(b"\n") == data.count(b"\r\n"):
        contents.append(data.replace(b"\r\n", b"\n"))
    name = "sha1" if len(object_id) == 40 else "sha256"
    return any(
        hashlib.new(name, b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
        == object_id
        for content in contents
    )
