"""Checks whether git could restore the files that a run is about to overwrite.

Each file is looked up in the work tree that contains it, which may be a nested repository, a
submodule, or the work tree of the target of a link. The content of the files to overwrite is
compared here with what git has stored.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator
from typing import Optional

from . import git
from .discover import SUFFIXES
from .excludes import is_environment_or_cache
from .printable import quoted, visible

__all__ = ["not_restorable"]

_ENTRY = re.compile(r"(\d{6}) ([0-9a-f]{40,64}) [0-3]\t([^\0]+)\0")
_STATUS = (
    *("status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all"),
    "--ignore-submodules=all",
)
_Index = dict[str, tuple[str, str]]
"""The mode and the object id of each tracked file, by its path."""
_FLAGS = os.O_RDONLY | sum(
    getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOFOLLOW", "O_BINARY")
)

_LARGEST = 256 * 1024**2
"""Bytes of a file to compare; a larger file counts as changed."""

_BATCH_BYTES = 16 * 1024**2
"""Bytes to request from git at a time."""


def not_restorable(files: Iterable[str]) -> dict[str, str]:
    """Returns the files that must not be overwritten, each with the reason.

    A file outside any work tree may be overwritten. In a work tree, the file must be tracked and
    unchanged since the commit, git must have its content, and the work tree must be clean: no
    tracked file has uncommitted changes, and no Python file or notebook is untracked.

    Args:
      files: absolute paths without symbolic links.
    """
    trees: dict[str, list[str]] = {}
    top_of = functools.lru_cache(maxsize=None)(git.top_of)
    for file in files:
        top = top_of(os.path.dirname(file))
        if top is not None:
            trees.setdefault(top, []).append(file)
    reasons: dict[str, str] = {}
    late: Optional[str] = None
    for top, inside in trees.items():
        if late is not None:  # do not wait again for the other work trees
            reasons.update(dict.fromkeys(inside, late))
            continue
        try:
            index = _index(top)
            why = _why_dirty(top, index)
            reasons.update(dict.fromkeys(inside, why) if why else _differing(top, index, inside))
        except git.GitError as error:
            why = f"cannot check the git work tree {quoted(top)}: git {visible(str(error))}"
            reasons.update(dict.fromkeys(inside, why))
            late = why if isinstance(error, git.LateError) else None
    return reasons


def _index(top: str) -> _Index:
    listed = os.fsdecode(git.run(top, "ls-files", "--stage", "-z"))
    return {path: (mode, name) for mode, name, path in _ENTRY.findall(listed)}


def _why_dirty(top: str, index: _Index) -> Optional[str]:
    """Describes the uncommitted changes in a work tree; None if there are none."""
    listed = os.fsdecode(git.run(top, *git.without_filters(top), *_STATUS)).split("\0")[:-1]
    changed = sorted(entry[3:] for entry in listed if _counts(top, index, entry[:2], entry[3:]))
    if not changed:
        return None
    more = f" and {len(changed) - 1:,} more" if len(changed) > 1 else ""
    return f"{quoted(top)} has uncommitted changes: {quoted(changed[0])}{more}"


def _counts(top: str, index: _Index, status: str, path: str) -> bool:
    """Whether a path in the output of `git status` is an obstacle.

    An untracked file is one if a run could check it, and a modified file if its content differs:
    git also lists files whose size has changed because of line ends.
    """
    if status == " M":
        return not _is_as_stored(top, path, *index.get(path, ("", "")))
    if status != "??":
        return True
    if not path.endswith(SUFFIXES) or os.path.islink(os.path.join(top, path)):
        return False
    parts = path.split("/")[:-1]
    return not any(
        is_environment_or_cache(os.path.join(top, *parts[: depth + 1]))
        for depth in range(len(parts))
    )


def _differing(top: str, index: _Index, files: Iterable[str]) -> dict[str, str]:
    """Returns the files that git could not restore byte for byte, each with the reason."""
    reasons: dict[str, str] = {}
    same: dict[str, str] = {}
    for file in files:
        path = os.path.relpath(file, top).replace(os.sep, "/")
        mode, object_id = index.get(path, ("", ""))
        if not mode.startswith("100"):
            reasons[file] = f"git does not track {quoted(file)} and could not restore it"
        elif not _is_as_stored(top, path, mode, object_id):
            reasons[file] = f"{quoted(file)} has uncommitted changes"
        else:
            same[file] = object_id
    stored = set(_stored(top, same))
    for file, object_id in same.items():
        if object_id not in stored:
            reasons[file] = f"git has no object for the committed content of {quoted(file)}"
    return reasons


def _is_as_stored(top: str, path: str, mode: str, object_id: str) -> bool:
    """Whether a regular file has the bytes that git would check out."""
    if not mode.startswith("100"):
        return False
    try:
        descriptor = os.open(os.path.join(top, path), _FLAGS)
        with open(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGEST:
                return False
            data = file.read(_LARGEST + 1)
    except OSError:
        return False
    if _is_content(data, object_id):
        return True
    text = data.replace(b"\r\n", b"\n")
    return (
        text.replace(b"\n", b"\r\n") == data
        and b"\r" not in text
        and b"\0" not in text
        and _is_content(text, object_id)
        and _checks_out_crlf(top, path)
    )


def _checks_out_crlf(top: str, path: str) -> bool:
    """Whether git checks a text file out with CRLF in place of LF."""
    answer = git.run(top, "check-attr", "-z", "text", "eol", "--", path).split(b"\0")
    text, eol = answer[2], answer[5]
    if text == b"unset" or eol == b"lf":
        return False
    if eol == b"crlf":
        return True
    if _setting(top, "core.autocrlf") in ("true", "yes", "on", "1"):
        return True
    is_crlf = _setting(top, "core.eol") == "crlf" and not _setting(top, "core.autocrlf")
    return is_crlf and text in (b"set", b"auto")


def _setting(top: str, key: str) -> str:
    answer = git.run(top, "config", "--get", key, statuses=(0, 1))
    return answer.decode("utf-8", "replace").strip().lower()


def _stored(top: str, same: dict[str, str]) -> Iterator[str]:
    """Yields the object ids of these files that git has intact; requests them in batches."""
    batch: list[str] = []
    size = 0
    for number, (file, object_id) in enumerate(same.items(), 1):
        batch.append(object_id)
        with contextlib.suppress(OSError):  # deleted in the meantime
            size += os.stat(file).st_size
        if size >= _BATCH_BYTES or number == len(same):
            data = "".join(name + "\n" for name in batch).encode()
            yield from _whole(git.run(top, "cat-file", "--batch", data=data))
            batch, size = [], 0


def _whole(answer: bytes) -> Iterator[str]:
    """The blobs in the output of `git cat-file --batch` whose content matches their object id."""
    at = 0
    while at < len(answer):
        end = answer.index(b"\n", at)
        header = answer[at:end].decode("ascii", "replace").split(" ")
        at = end + 1
        if len(header) == 3 and header[2].isdigit():
            content = answer[at : at + int(header[2])]
            at += int(header[2]) + 1
            if header[1] == "blob" and _is_content(content, header[0]):
                yield header[0]


def _is_content(data: bytes, object_id: str) -> bool:
    """Whether a blob with this content has the object id, SHA-1 or SHA-256."""
    algorithm = "sha1" if len(object_id) == 40 else "sha256"
    hashed = hashlib.new(algorithm, b"blob %d\0" % len(data), usedforsecurity=False)
    hashed.update(data)
    return hashed.hexdigest() == object_id
