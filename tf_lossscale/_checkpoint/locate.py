"""What a path on the command line stands for."""

import os
from typing import Any, List, NamedTuple, Optional

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
    """Finds the file or the checkpoint that `path` means.

    Args:
      path: a file of Keras, a prefix, one file of a checkpoint, or a directory with a SavedModel or
        with checkpoints (the latest is taken).

    Raises:
      CheckpointError: there is none.
    """
    if os.path.isfile(path):
        with open(path, "rb") as file:
            start = file.read(8)
        if start == _HDF5_SIGNATURE:
            return Place(HDF5, path)
        if start.startswith(_ZIP_SIGNATURE):
            return Place(KERAS, path)
    from tf_lossscale._versions import tf

    if tf.io.gfile.isdir(path):
        return _in_directory(tf, path)
    for prefix in (path, without_suffix(path)):
        if tf.io.gfile.exists(prefix + ".index"):
            return Place(TENSORFLOW, prefix)
    if os.path.isfile(path):
        return Place(TENSORFLOW, path)  # the format of one file, from before TensorFlow 1.0
    raise CheckpointError(_not_found(tf, path))


def without_suffix(path: str) -> str:
    """Returns the prefix of the checkpoint that one of its files belongs to."""
    for suffix in _SUFFIXES:
        if path.endswith(suffix):
            return path[: -len(suffix)]
    stem, dot, rest = path.rpartition(".data-")
    return stem if dot and "-of-" in rest else path


def _in_directory(tf: Any, path: str) -> Place:
    if any(tf.io.gfile.exists(os.path.join(path, "saved_model" + x)) for x in (".pb", ".pbtxt")):
        prefix = os.path.join(path, "variables", "variables")
        if not tf.io.gfile.exists(prefix + ".index"):
            raise CheckpointError(f"{path}: this SavedModel has no variables, so no loss scale.")
        return Place(SAVED_MODEL, prefix)
    latest = _latest(tf, path)
    if latest is not None:
        return Place(TENSORFLOW, latest)
    found = _prefixes(tf, path)
    if len(found) == 1:
        return Place(TENSORFLOW, found[0])
    if found:
        raise CheckpointError(
            "{}: no file `checkpoint` says which of these is the latest. Name one: {}".format(
                path, ", ".join(found)
            )
        )
    raise CheckpointError(
        f"{path}: neither a SavedModel nor a TensorFlow checkpoint is in this directory."
    )


def _latest(tf: Any, path: str) -> Optional[str]:
    state = tf.train.get_checkpoint_state(path)
    if state is None or not state.model_checkpoint_path:
        return None
    named = state.model_checkpoint_path
    # The file may hold an absolute path, which is wrong once the directory was moved.
    for prefix in (named, os.path.join(path, os.path.basename(named))):
        if tf.io.gfile.exists(prefix + ".index"):
            return str(prefix)
    raise CheckpointError(
        f"{path}: its file `checkpoint` names {named} as the latest, which does not exist. Name a "
        "checkpoint by its prefix."
    )


def _prefixes(tf: Any, path: str) -> List[str]:
    return sorted(
        str(each)[: -len(".index")] for each in tf.io.gfile.glob(os.path.join(path, "*.index"))
    )


def _not_found(tf: Any, path: str) -> str:
    message = f"{path}: no checkpoint, SavedModel, .h5 or .keras file has this path."
    folder = os.path.dirname(path) or "."
    near = _prefixes(tf, folder) if tf.io.gfile.isdir(folder) else []
    if near:
        more = ", ..." if len(near) > 5 else ""
        message += " Checkpoints there: {}".format(", ".join(near[:5]) + more)
    return message
