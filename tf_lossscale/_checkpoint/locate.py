"""Finds the file or checkpoint that a path on the command line refers to.

Local paths are read with Python, others (`gs://`, `hdfs://`) through TensorFlow.
"""

import codecs
import glob as local_glob
import os
import re
from typing import Any, Dict, List, NamedTuple

TENSORFLOW = "TensorFlow checkpoint"
SAVED_MODEL = "SavedModel"
HDF5 = "HDF5 file of Keras"
KERAS = ".keras file"

# The file in a directory in which TensorFlow records the latest checkpoint.
BOOKKEEPING = "checkpoint"

_HDF5_SIGNATURE = b"\x89HDF\r\n\x1a\n"
_ZIP_SIGNATURE = b"PK\x03\x04"
# Within a line: many empty lines would otherwise take a time that is quadratic in their number.
_LATEST = re.compile(
    rb"^[ \t]*model_checkpoint_path[ \t]*:[ \t]*\"((?:[^\"\\\n]|\\.)*)\"[ \t\r]*$", re.MULTILINE
)
_LARGEST_BOOKKEEPING = 2**24


class CheckpointError(Exception):
    """A file cannot be read, converted or written; the message is one line for the user."""


class Place(NamedTuple):
    """A file, or the prefix of a TensorFlow checkpoint, and its format."""

    format: str
    path: str


def locate(path: str) -> Place:
    """Finds the file or checkpoint that `path` refers to.

    That is a Keras file, a checkpoint prefix, one file of a checkpoint, or a directory with a
    SavedModel or with checkpoints, of which the latest is used.
    """
    if _is_directory(path):
        return _in_directory(path)
    start = _first_bytes(path, len(_HDF5_SIGNATURE)) if _is_file(path) else b""
    if start == _HDF5_SIGNATURE:
        return Place(HDF5, path)
    if start.startswith(_ZIP_SIGNATURE):
        return Place(KERAS, path)
    for prefix in (path, without_suffix(path)):
        if _is_file(prefix + ".index"):
            return Place(TENSORFLOW, prefix)
    if not _is_file(path):
        _check_access(path)
        raise CheckpointError(_nothing_there(path))
    _check_may_be_one_file(path, start)
    return Place(TENSORFLOW, path)  # the format of one file, from before TensorFlow 1.0


def _check_access(path: str) -> None:
    """Raises CheckpointError for a path in a directory that must not be read.

    `os.path.isfile` answers as if nothing were there.
    """
    if "://" in path:
        return
    for name in (path, path + ".index"):
        try:
            os.stat(name)
        except PermissionError as error:
            raise CheckpointError(f"{name}: permission denied") from error
        except OSError:
            pass


def _nothing_there(path: str) -> str:
    """Returns the message for a path without a file, with the checkpoints in its directory."""
    message = f"{path}: there is no checkpoint, SavedModel, .h5 or .keras file at this path."
    folder = os.path.dirname(path) or "."
    near = _prefixes(folder) if _is_directory(folder) else []
    if not near:
        return message
    more = ", ..." if len(near) > 5 else ""
    return f"{message} Checkpoints there: {', '.join(near[:5])}{more}"


def _check_may_be_one_file(path: str, start: bytes) -> None:
    """Raises CheckpointError for a file that its name or size shows to be none."""
    stem, suffix = without_suffix(path), os.path.splitext(path)[1].lower()
    if stem != path:
        raise CheckpointError(f"{stem}.index: the index of this checkpoint is missing")
    if not start:
        raise CheckpointError(f"{path}: the file is empty")
    if suffix in (".h5", ".hdf5"):
        raise CheckpointError(f"{path}: not an HDF5 file: the signature is missing")
    if suffix == ".keras":
        raise CheckpointError(f"{path}: not a .keras file: it is not a zip archive")


def without_suffix(path: str) -> str:
    """Returns the prefix of the checkpoint that one of its files belongs to."""
    if path.endswith((".index", ".meta")):
        return path.rpartition(".")[0]
    stem, dot, rest = path.rpartition(".data-")
    return stem if dot and "-of-" in rest else path


def sizes_of_files(path: str) -> Dict[str, int]:
    """Returns the size of each file of a checkpoint, or of one file, in bytes."""
    files = [path]
    if _is_file(path + ".index"):
        files = [path + ".index", *_data_files(path)]
    for file in files:  # which may be a pipe or a device, and never end
        if not _is_file(file):
            raise CheckpointError(f"{file}: not a regular file")
    return {file: _size(file) for file in files}


def _in_directory(path: str) -> Place:
    """Returns what a directory contains: a SavedModel, or the checkpoint that is its latest.

    Several checkpoints without the file that names the latest are an error: which of them is meant
    must not be guessed.
    """
    if any(_is_file(os.path.join(path, "saved_model" + suffix)) for suffix in (".pb", ".pbtxt")):
        prefix = os.path.join(path, "variables", "variables")
        if _is_file(prefix + ".index"):
            return Place(SAVED_MODEL, prefix)
        if _data_files(prefix):
            raise CheckpointError(f"{prefix}.index: the index of this SavedModel is missing")
        raise CheckpointError(f"{path}: this SavedModel has no variables and no loss scale.")
    latest = _latest(path)
    found = [latest] if latest else _prefixes(path)
    if len(found) == 1:
        return Place(TENSORFLOW, found[0])
    if found:
        raise CheckpointError(
            f"{path}: no `checkpoint` file names the latest checkpoint. Choose one: "
            + ", ".join(found)
        )
    raise CheckpointError(
        f"{path}: this directory contains neither a SavedModel nor a TensorFlow checkpoint."
    )


def _latest(folder: str) -> str:
    """Returns the prefix that the bookkeeping file names as the latest; empty if there is none."""
    path = os.path.join(folder, BOOKKEEPING)
    if not _is_file(path):
        return ""
    if _size(path) > _LARGEST_BOOKKEEPING:
        raise CheckpointError(f"{path}: too large for a `checkpoint` file of TensorFlow")
    text = _first_bytes(path, _LARGEST_BOOKKEEPING)
    match = _LATEST.search(text)
    if match is None and text.strip():
        raise CheckpointError(
            f"{path}: damaged: it does not name the latest checkpoint. Pass the prefix of a "
            "checkpoint."
        )
    named = os.fsdecode(codecs.escape_decode(match[1])[0]) if match else ""
    if not named:
        return ""
    # A relative path is relative to the directory. The file may also contain an absolute path,
    # which becomes wrong when the directory is moved.
    for name in (named, os.path.basename(named)):
        prefix = os.path.join(folder, name)
        if _is_file(prefix + ".index"):
            return prefix
    raise CheckpointError(
        f"{folder}: its file `checkpoint` names {named} as the latest, which does not exist. Pass "
        "the prefix of a checkpoint."
    )


def _data_files(prefix: str) -> List[str]:
    folder, name = os.path.split(prefix)
    return _glob(folder, local_glob.escape(name) + ".data-?????-of-?????")


def _prefixes(path: str) -> List[str]:
    return [name[: -len(".index")] for name in _glob(path, "*.index")]


def _gfile(path: str) -> Any:
    """Returns the module that reads a remote path; None for a local one."""
    if "://" not in path:
        return None
    from tf_lossscale._versions.base import tf

    return tf.io.gfile


def _is_file(path: str) -> bool:
    """Whether a path is a regular file, which a pipe or a device is not."""
    gfile = _gfile(path)
    return bool(gfile.exists(path) and not gfile.isdir(path)) if gfile else os.path.isfile(path)


def _is_directory(path: str) -> bool:
    return bool((_gfile(path) or os.path).isdir(path))


def _glob(folder: str, pattern: str) -> List[str]:
    gfile = _gfile(folder)
    if gfile:
        return sorted(map(str, gfile.glob(os.path.join(folder, pattern))))
    return sorted(local_glob.glob(os.path.join(local_glob.escape(folder), pattern)))


def _size(path: str) -> int:
    gfile = _gfile(path)
    return int(gfile.stat(path).length) if gfile else os.path.getsize(path)


def _first_bytes(path: str, count: int) -> bytes:
    gfile = _gfile(path)
    with gfile.GFile(path, "rb") if gfile else open(path, "rb") as file:
        return bytes(file.read(count))
