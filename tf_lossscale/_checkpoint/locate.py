"""Finds the file or checkpoint that a path on the command line refers to."""

import os
from typing import List, NamedTuple, Optional

from tf_lossscale._checkpoint import bookkeeping, storage
from tf_lossscale._checkpoint.errors import CheckpointError

__all__ = ["HDF5", "KERAS", "SAVED_MODEL", "TENSORFLOW", "Place", "locate", "without_suffix"]

TENSORFLOW = "TensorFlow checkpoint"
SAVED_MODEL = "SavedModel"
HDF5 = "HDF5 file of Keras"
KERAS = ".keras file"

_HDF5_SIGNATURE = b"\x89HDF\r\n\x1a\n"
_ZIP_SIGNATURE = b"PK\x03\x04"
_SUFFIXES = (".index", ".meta")


class Place(NamedTuple):
    """A file, or the prefix of a TensorFlow checkpoint, and its format."""

    format: str
    path: str


def locate(path: str) -> Place:
    """Finds the file or checkpoint that `path` refers to.

    Args:
      path: a Keras file, a checkpoint prefix, one file of a checkpoint, or a directory with a
        SavedModel or with checkpoints (the latest is used).

    Raises:
      CheckpointError: if there is none.
    """
    if storage.is_directory(path):
        return _in_directory(path)
    start = _start_of(path) if storage.is_file(path) else b""
    if start == _HDF5_SIGNATURE:
        return Place(HDF5, path)
    if start.startswith(_ZIP_SIGNATURE):
        return Place(KERAS, path)
    for prefix in (path, without_suffix(path)):
        if storage.is_file(prefix + ".index"):
            return Place(TENSORFLOW, prefix)
    if storage.is_file(path):
        _check_contents(path, start)
        return Place(TENSORFLOW, path)  # the format of one file, from before TensorFlow 1.0
    raise CheckpointError(_not_found(path))


def _start_of(path: str) -> bytes:
    with storage.opened(path) as file:
        return file.read(len(_HDF5_SIGNATURE))


def _check_contents(path: str, start: bytes) -> None:
    """Raises CheckpointError if the name or size of a file shows that it is something else."""
    stem = without_suffix(path)
    if stem != path:
        raise CheckpointError(f"{stem}.index: the index of this checkpoint is missing")
    if not start:
        raise CheckpointError(f"{path}: the file is empty")
    suffix = os.path.splitext(path)[1].lower()
    if suffix in (".h5", ".hdf5"):
        raise CheckpointError(f"{path}: not an HDF5 file: the signature is missing")
    if suffix == ".keras":
        raise CheckpointError(f"{path}: not a .keras file: it is not a zip archive")


def without_suffix(path: str) -> str:
    """Returns the prefix of the checkpoint that one of its files belongs to."""
    for suffix in _SUFFIXES:
        if path.endswith(suffix):
            return path[: -len(suffix)]
    stem, dot, rest = path.rpartition(".data-")
    return stem if dot and "-of-" in rest else path


def _in_directory(path: str) -> Place:
    if any(storage.exists(os.path.join(path, "saved_model" + x)) for x in (".pb", ".pbtxt")):
        prefix = os.path.join(path, "variables", "variables")
        if storage.is_file(prefix + ".index"):
            return Place(SAVED_MODEL, prefix)
        if storage.glob(os.path.join(path, "variables"), "variables.data-*"):
            raise CheckpointError(f"{prefix}.index: the index of this SavedModel is missing")
        raise CheckpointError(f"{path}: this SavedModel has no variables and no loss scale.")
    latest = _latest(path)
    if latest is not None:
        return Place(TENSORFLOW, latest)
    found = _prefixes(path)
    if len(found) == 1:
        return Place(TENSORFLOW, found[0])
    if found:
        raise CheckpointError(
            "{}: no `checkpoint` file names the latest checkpoint. Choose one: {}".format(
                path, ", ".join(found)
            )
        )
    raise CheckpointError(
        f"{path}: this directory contains neither a SavedModel nor a TensorFlow checkpoint."
    )


def _latest(path: str) -> Optional[str]:
    named = bookkeeping.latest(path)
    if named is None:
        return None
    # A relative path is relative to the directory. The file may also contain an absolute path,
    # which becomes wrong when the directory is moved.
    for prefix in (os.path.join(path, named), os.path.join(path, os.path.basename(named))):
        if storage.is_file(prefix + ".index"):
            return prefix
    raise CheckpointError(
        f"{path}: its file `checkpoint` names {named} as the latest, which does not exist. Pass "
        "the prefix of a checkpoint."
    )


def _prefixes(path: str) -> List[str]:
    return [each[: -len(".index")] for each in storage.glob(path, "*.index")]


def _not_found(path: str) -> str:
    message = f"{path}: there is no checkpoint, SavedModel, .h5 or .keras file at this path."
    folder = os.path.dirname(path) or "."
    near = _prefixes(folder) if storage.is_directory(folder) else []
    if near:
        more = ", ..." if len(near) > 5 else ""
        message += " Checkpoints there: {}".format(", ".join(near[:5]) + more)
    return message
