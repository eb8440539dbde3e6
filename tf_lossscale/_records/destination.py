"""Where a record is written: under a temporary name, and from its first step on under its own.

So a run that records nothing leaves no file, and no file is replaced before there is a record to
put in its place. The temporary name follows from the name of the record. If a process is killed
before its first step, the next recording to the same file reuses what it left.
"""

import contextlib
import gzip
import os
import stat
import zlib
from typing import Any, Iterator, Optional, Set

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

MARK = b'"tf_lossscale_record"'
"""What the first line of each record begins with, after the brace."""
_LONGEST_NAME = 200  # of a file whose temporary name is longer by some characters


class RecordingError(RuntimeError):
    """Training cannot be recorded; the message says why, and what can be done."""


def is_record(path: str) -> bool:
    """Returns whether a file begins as a record does, compressed or not."""
    with open(path, "rb") as file:
        start = file.read(64)
    if start[:2] == b"\x1f\x8b":
        with contextlib.suppress(OSError, EOFError, zlib.error), gzip.open(path) as content:
            start = content.read(64)
    return MARK in start


_held: Set[int] = set()
"""The descriptors of all files that this process has locked."""


class Destination:
    """The file of a record, which this process alone may write.

    Attributes:
      path: the name that the record gets with its first step.
      current: the name of the file that is written now.
      descriptor: the open file, which holds the lock; None if it was not opened.
    """

    def __init__(
        self, path: str, overwrite: bool = False, descriptor: Optional[int] = None
    ) -> None:
        # The program can change the working directory; and a link stays what it is.
        self.path = os.path.realpath(path)
        self.overwrite = overwrite
        self.descriptor = descriptor
        is_special = os.path.exists(self.path) and not os.path.isfile(self.path)
        self.current = self.path if is_special else _temporary(self.path)

    def hold(self) -> None:
        """Creates the temporary file and locks it.

        The lock belongs to the open file, so it stays while `tf-lossscale` becomes the script, and
        it ends with the process, however that ends.

        Raises:
          RecordingError: the file exists and may not be replaced, or another process records to it.
          OSError: the file cannot be written.
        """
        self.check()
        descriptor = os.open(self.current, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        _held.add(descriptor)
        self.descriptor = descriptor
        with self._released_on_error():
            if self.current != self.path:
                _lock(descriptor, self.path)
                os.ftruncate(descriptor, 0)  # what a killed process has left

    def check(self) -> None:
        """Raises RecordingError if the file exists and may not be replaced."""
        if os.path.isdir(self.path):
            raise RecordingError(f"{self.path} is a directory; name a file in it.")
        if self.current == self.path or not os.path.lexists(self.path):
            return
        if not self.overwrite:
            raise RecordingError(
                f"{self.path} exists. Name another file, or replace the record in it with "
                "--overwrite (in Python, overwrite=True)."
            )
        if os.path.getsize(self.path) and not is_record(self.path):
            raise RecordingError(
                f"{self.path} is not a record, and is not overwritten; name another file."
            )
        descriptor = os.open(self.path, os.O_RDONLY)
        try:
            _lock(descriptor, self.path)
        finally:
            os.close(descriptor)

    @contextlib.contextmanager
    def _released_on_error(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self.release()
            raise

    def publish(self) -> None:
        """Gives the file its own name.

        Raises:
          FileExistsError: a file of this name was created after `hold`.
        """
        if self.current == self.path:
            return
        if self.overwrite:
            with contextlib.suppress(OSError):  # there is none
                os.chmod(self.current, stat.S_IMODE(os.stat(self.path).st_mode))
            os.replace(self.current, self.path)
        else:
            _rename(self.current, self.path)
        self.current = self.path

    def use_free_name(self) -> None:
        """Takes a name that no file has, with the number of this process."""
        root, extension = os.path.splitext(self.path)
        numbered = f"{root}.{os.getpid()}"
        self.path, count = numbered + extension, 1
        while os.path.lexists(self.path):
            count += 1
            self.path = f"{numbered}-{count}{extension}"

    def discard(self) -> None:
        """Removes the file if it does not have its own name yet, and ends the lock."""
        if self.current != self.path and self.descriptor in _held:
            with contextlib.suppress(OSError):
                os.remove(self.current)
        self.release()

    def release(self) -> None:
        """Closes the file, and so ends the lock; does nothing in a forked process."""
        if self.descriptor is not None and self.descriptor in _held:
            _held.remove(self.descriptor)
            os.close(self.descriptor)
        self.descriptor = None

    def hand_over(self) -> Optional[int]:
        """Prepares the lock for the program that this process becomes with `exec`.

        Returns the descriptor, which that program passes to the constructor; None on Windows,
        where that program is another process, which holds the file itself.
        """
        if os.name == "nt":
            self.discard()
        elif self.descriptor is not None:
            os.set_inheritable(self.descriptor, True)
        return self.descriptor

    def take_over(self) -> None:
        """Ends what `hand_over` has prepared, in the program that this process has become.

        Raises the errors of `hold` where there is no such file any more, as on Windows, or in a
        script that has replaced itself by another program.
        """
        if self.descriptor is not None and self._is_open(self.descriptor):
            _held.add(self.descriptor)
            os.set_inheritable(self.descriptor, False)
        else:
            self.descriptor = None
            self.hold()

    def _is_open(self, descriptor: int) -> bool:
        with contextlib.suppress(OSError):
            return os.path.samestat(os.fstat(descriptor), os.stat(self.current))
        return False


def _temporary(path: str) -> str:
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name[:_LONGEST_NAME]}.recording")


def _lock(descriptor: int, path: str) -> None:
    """Locks the file of a record; raises RecordingError if another process holds it."""
    if fcntl is None:
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise RecordingError(
            f"Another process is recording to {path}. Each process needs a file of its own, such "
            "as run-0.jsonl and run-1.jsonl for two workers."
        ) from None
    except OSError:
        pass  # a file system without locks


def _rename(old: str, new: str) -> None:
    """Renames a file; raises FileExistsError, and does not replace one of the new name."""
    try:
        os.link(old, new)
    except FileExistsError:
        raise
    except (OSError, AttributeError, NotImplementedError):  # a file system without hard links
        if os.path.lexists(new):
            raise FileExistsError(new) from None
        os.rename(old, new)
    else:
        os.remove(old)


def _release_all() -> None:
    for descriptor in list(_held):
        _held.remove(descriptor)
        os.close(descriptor)


# A forked process does not record to the file, and can live longer than the one that does.
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_release_all)
