"""Checks whether git could restore the files that a run is about to overwrite.

Each file is looked up in the work tree that contains it, which may be a nested repository, a
submodule, or the work tree of the target of a link. The content is compared here with what git has
stored, because `git status` can run programs that the repository chooses (see `git`).
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Optional

from . import git
from .discover import Candidate, Excludes, discover
from .printable import quoted, visible

__all__ = ["not_restorable"]


def not_restorable(files: Iterable[str]) -> dict[str, str]:
    """Returns the files that must not be overwritten, each with the reason.

    A file outside any work tree may be overwritten. In a work tree, the file must be tracked and
    unchanged since the commit, git must have its content, and the work tree must be clean: no
    tracked file has uncommitted changes, and no Python file or notebook is untracked.

    Args:
      files: absolute paths without symbolic links.
    """
    trees: dict[str, list[str]] = {}
    directory_to_top = functools.lru_cache(maxsize=None)(git.top_of)
    for file in files:
        top = directory_to_top(os.path.dirname(file))
        if top is not None:
            trees.setdefault(top, []).append(file)
    reasons: dict[str, str] = {}
    late: Optional[str] = None
    for top, inside in trees.items():
        if late is not None:  # do not wait again for the other work trees
            reasons.update(dict.fromkeys(inside, late))
            continue
        try:
            tree = _WorkTree(top)
            why = tree.why_dirty()
            reasons.update(dict.fromkeys(inside, why) if why else tree.differing(inside))
        except git.GitError as error:
            why = f"cannot check the git work tree {quoted(top)}: git {visible(str(error))}"
            reasons.update(dict.fromkeys(inside, why))
            late = why if isinstance(error, git.LateError) else None
    return reasons


class _Entry(NamedTuple):
    """An entry of the index.

    Attributes:
      mode: octal: 100644, 100755, 120000 (a link) or 160000 (a submodule).
      object_id: the object id of the content.
      stage: 0 except during a merge with conflicts.
      mtime: the modification time of the file when git last compared it, as seconds and
        nanoseconds; None if unknown.
      size: the size of the file at that time, modulo 2**32.
      flags: the flags of the entry in git's in-memory index.
    """

    mode: str
    object_id: str
    stage: int
    mtime: Optional[tuple[int, int]]
    size: int
    flags: int

    @property
    def is_regular(self) -> bool:
        return self.mode.startswith("100")

    @property
    def is_left_out(self) -> bool:
        """Whether git assumes that the file is unchanged, or does not check it out."""
        return bool(self.flags & (_ASSUME_UNCHANGED | _SKIP_WORKTREE))


_ASSUME_UNCHANGED = 0x8000
_SKIP_WORKTREE = 0x40000000

_ENTRY = re.compile(
    rb"(\d{6}) ([0-9a-f]{40,64}) ([0-3])\t([^\0]+)\0"
    rb"(?:  ctime: \d+:\d+\n  mtime: (\d+):(\d+)\n  dev: \d+\tino: \d+\n  uid: \d+\tgid: \d+\n"
    rb"  size: (\d+)\tflags: ([0-9a-f]+)\n)?"
)

_NO_WAIT = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)

_LARGEST = 1024**3
"""Bytes of a file to compare; a larger file whose time differs counts as changed."""

_LARGEST_TEXT = 16 * 1024**2
"""Bytes of a file for which converted line ends are considered."""

_BATCH_BYTES = 16 * 1024**2
"""Bytes to request from git at a time."""


class _WorkTree:
    """A work tree, with its index."""

    def __init__(self, top: str) -> None:
        self._top = top
        self._top_of = functools.lru_cache(maxsize=None)(git.top_of)
        self._index = self._read_index()
        where = self._git("rev-parse", "--git-path", "index").rstrip(b"\n")
        try:
            self._index_time = os.stat(os.path.join(os.fsencode(top), where)).st_mtime_ns
        except OSError:  # nothing was ever added
            self._index_time = 0

    def _git(self, *arguments: str, data: bytes = b"", statuses: Sequence[int] = (0,)) -> bytes:
        return git.run(self._top, *arguments, data=data, statuses=statuses)

    def _read_index(self) -> dict[bytes, _Entry]:
        # Git's manual says that the --debug format may change; without it, files are read instead.
        for more in (["--debug"], []):
            listed = self._git("ls-files", "--stage", "-z", *more)
            found: dict[bytes, _Entry] = {}
            end = 0
            for match in _ENTRY.finditer(listed):
                if match.start() != end:
                    break
                end = match.end()
                mode, object_id, stage, path, seconds, nanoseconds, size, flags = match.groups()
                found[path] = _Entry(
                    mode.decode(),
                    object_id.decode(),
                    int(stage),
                    None if seconds is None else (int(seconds), int(nanoseconds)),
                    int(size or 0),
                    int(flags or b"0", 16),
                )
            if end == len(listed):
                return found
        raise git.GitError("lists its files in an unknown format")

    def why_dirty(self) -> Optional[str]:
        """Describes the uncommitted changes in the work tree; None if there are none."""
        changed = sorted({*self._staged(), *self._changed(), *self._untracked()})
        if not changed:
            return None
        more = f" and {len(changed) - 1:,} more" if len(changed) > 1 else ""
        first = quoted(os.fsdecode(changed[0]))
        return f"{quoted(self._top)} has uncommitted changes: {first}{more}"

    def _staged(self) -> Iterable[bytes]:
        if not self._git("rev-parse", "--quiet", "--verify", "HEAD^{commit}", statuses=(0, 1)):
            return self._index  # there is no commit yet
        options = ["--no-ext-diff", "--no-textconv", "--no-renames", "--ignore-submodules=all"]
        names = self._git("diff-index", "--cached", "--name-only", "-z", *options, "HEAD", "--")
        return names.split(b"\0")[:-1]

    def _changed(self) -> Iterator[bytes]:
        for path, entry in self._index.items():
            if entry.stage or self._is_changed(path, entry):
                yield path

    def _is_changed(self, path: bytes, entry: _Entry) -> bool:
        if entry.mode == "160000" or entry.is_left_out:
            return False
        real = os.path.join(os.fsencode(self._top), path)
        try:
            status = os.lstat(real)
            if stat.S_ISLNK(status.st_mode):
                link = entry.mode == "120000"
                return not link or not _is_content(os.readlink(real), entry.object_id)
            if not (stat.S_ISREG(status.st_mode) and entry.is_regular):
                return True
            return not self._looks_unchanged(status, entry) and not self._has_content(real, entry)
        except OSError:
            return True

    def _looks_unchanged(self, status: os.stat_result, entry: _Entry) -> bool:
        """Whether time and size match the index, and the file is older than the index."""
        if entry.mtime is None or status.st_mtime_ns >= self._index_time:
            return False
        seconds, nanoseconds = divmod(status.st_mtime_ns, 10**9)
        same_time = entry.mtime in ((seconds % 2**32, nanoseconds), (seconds % 2**32, 0))
        return same_time and entry.size == status.st_size % 2**32

    def _has_content(self, real: bytes, entry: _Entry) -> bool:
        """Whether the file has the bytes that git would check out."""
        # An index can contain any path, and links can lead to files in /proc that block a reader.
        descriptor = os.open(real, os.O_RDONLY | _NO_WAIT)
        with open(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            size = status.st_size
            largest = _LARGEST if entry.size in (0, size % 2**32) else _LARGEST_TEXT
            if not stat.S_ISREG(status.st_mode) or size > largest:
                return False
            hashed = _new_hash(entry.object_id, size)
            left = size
            while left:
                block = file.read(min(left, 1024**2))
                if not block:
                    return False
                hashed.update(block)
                left -= len(block)
            if file.read(1):  # the file grows, or reports size 0 like those in /proc
                return False
            if hashed.hexdigest() == entry.object_id:
                return True
            if size > _LARGEST_TEXT:
                return False
            file.seek(0)
            data = file.read(_LARGEST_TEXT)
        text = data.replace(b"\r\n", b"\n")
        return (
            text.replace(b"\n", b"\r\n") == data
            and b"\r" not in text
            and b"\0" not in text
            and _is_content(text, entry.object_id)
            and self._checks_out_crlf(real)
        )

    def _checks_out_crlf(self, real: bytes) -> bool:
        """Whether git checks this file out with CRLF in place of LF."""
        relative = os.fsdecode(os.path.relpath(real, os.fsencode(self._top)))
        answer = self._git("check-attr", "-z", "text", "eol", "--", relative).split(b"\0")
        text, eol = answer[2], answer[5]
        if text == b"unset" or eol == b"lf":
            return False
        if eol == b"crlf":
            return True
        if self._setting("core.autocrlf") in ("true", "yes", "on", "1"):
            return True
        eol_of_text = self._setting("core.eol") == "crlf" and not self._setting("core.autocrlf")
        return eol_of_text and text in (b"set", b"auto")

    def _setting(self, key: str) -> str:
        answer = self._git("config", "--get", key, statuses=(0, 1))
        return answer.decode("utf-8", "replace").strip().lower()

    def _untracked(self) -> Iterator[bytes]:
        for found in discover([self._top], Excludes()):
            if isinstance(found, Candidate):
                path = self._relative(found.real)
                if path is not None and path not in self._index and not found.is_ignored:
                    yield path

    def _relative(self, real: str) -> Optional[bytes]:
        """The path in the index; None if the file is in another work tree."""
        if self._top_of(os.path.dirname(real)) != self._top:
            return None
        return os.fsencode(os.path.relpath(real, self._top).replace(os.sep, "/"))

    def differing(self, files: Iterable[str]) -> dict[str, str]:
        """Returns the files that git could not restore byte for byte, each with the reason."""
        reasons: dict[str, str] = {}
        same: dict[str, str] = {}
        for file in files:
            path = self._relative(file)
            entry = None if path is None else self._index.get(path)
            if entry is None or not entry.is_regular:
                reasons[file] = f"git does not track {quoted(file)} and could not restore it"
            elif not self._is_as_stored(os.fsencode(file), entry):
                reasons[file] = f"{quoted(file)} has uncommitted changes"
            else:
                same[file] = entry.object_id
        stored = set(self._stored(same))
        for file, object_id in same.items():
            if object_id not in stored:
                reasons[file] = f"git has no object for the committed content of {quoted(file)}"
        return reasons

    def _is_as_stored(self, real: bytes, entry: _Entry) -> bool:
        try:
            return self._has_content(real, entry)
        except OSError:
            return False

    def _stored(self, same: dict[str, str]) -> Iterator[str]:
        """Yields the object ids of these files that git has intact; requests them in batches."""
        batch: list[str] = []
        size = 0
        for number, (file, object_id) in enumerate(same.items(), 1):
            batch.append(object_id)
            with contextlib.suppress(OSError):  # deleted in the meantime
                size += os.stat(file).st_size
            if size >= _BATCH_BYTES or number == len(same):
                data = "".join(one + "\n" for one in batch).encode()
                yield from _whole(self._git("cat-file", "--batch", data=data))
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
    hashed = _new_hash(object_id, len(data))
    hashed.update(data)
    return hashed.hexdigest() == object_id


def _new_hash(object_id: str, size: int) -> hashlib._Hash:
    """The hash for git's object ids, SHA-1 or SHA-256, with the header of a blob."""
    name = "sha1" if len(object_id) == 40 else "sha256"
    return hashlib.new(name, b"blob %d\0" % size, usedforsecurity=False)
