"""Reads files: local ones with Python, others (`gs://`, `hdfs://`) through TensorFlow."""

import contextlib
import glob as local_glob
import os
from typing import Any, BinaryIO, Iterator, List

__all__ = ["exists", "glob", "is_directory", "is_file", "opened", "size"]


def _is_remote(path: str) -> bool:
    return "://" in path


def _gfile() -> Any:
    from tf_lossscale._versions.base import tf

    return tf.io.gfile


def exists(path: str) -> bool:
    """Whether there is anything at a path."""
    return bool(_gfile().exists(path)) if _is_remote(path) else os.path.exists(path)


def is_file(path: str) -> bool:
    """Whether a path is a regular file, which a pipe or a device is not."""
    if _is_remote(path):
        return bool(_gfile().exists(path)) and not _gfile().isdir(path)
    return os.path.isfile(path)


def is_directory(path: str) -> bool:
    """Whether a path is a directory."""
    return bool(_gfile().isdir(path)) if _is_remote(path) else os.path.isdir(path)


def glob(folder: str, pattern: str) -> List[str]:
    """Returns the paths in a directory whose names match a pattern."""
    if _is_remote(folder):
        return sorted(map(str, _gfile().glob(os.path.join(folder, pattern))))
    return sorted(local_glob.glob(os.path.join(local_glob.escape(folder), pattern)))


def size(path: str) -> int:
    """Returns the size of a file in bytes."""
    return int(_gfile().stat(path).length) if _is_remote(path) else os.path.getsize(path)


@contextlib.contextmanager
def opened(path: str) -> Iterator[BinaryIO]:
    """Opens a file for reading."""
    file: Any = _gfile().GFile(path, "rb") if _is_remote(path) else open(path, "rb")  # noqa: SIM115 - closed below
    with file:
        yield file
