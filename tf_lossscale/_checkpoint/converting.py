"""`tf-lossscale checkpoint convert`: writes a complete copy next to DST, and moves it there.

The child process of `isolated` writes the copy; this module owns the destination.
"""

import argparse
import glob
import os
import secrets
import shutil
from typing import List, Tuple

from tf_lossscale._checkpoint import isolated
from tf_lossscale._checkpoint.locate import (
    BOOKKEEPING,
    HDF5,
    KERAS,
    SAVED_MODEL,
    CheckpointError,
    locate,
    without_suffix,
)

__all__ = ["convert"]


def convert(parsed: argparse.Namespace) -> Tuple[int, List[str]]:
    """Writes the copy.

    If the process is killed, no half-written checkpoint remains: without its index, TensorFlow does
    not find a checkpoint. The new index is moved last, and an old index is removed first.

    Returns:
      The exit status, and what to print.

    Raises:
      CheckpointError: the conversion is refused, or failed; the destination is unchanged.
    """
    place = locate(parsed.path)
    if place.format in (HDF5, KERAS, SAVED_MODEL):
        raise CheckpointError(
            f"{parsed.path}: only TensorFlow checkpoints can be converted. A {place.format} also "
            "describes its optimizer, so a copy with other state would not load. `inspect` shows "
            "the values to start with."
        )
    destination = without_suffix(parsed.destination)
    _check_destination(place.path, destination, parsed.force)
    folder, name = os.path.split(os.path.abspath(destination))
    hidden = os.path.join(folder, f".{name}.tf-lossscale-{secrets.token_hex(4)}")
    written = None if parsed.dry_run else os.path.join(hidden, name)
    options = {
        "to": parsed.to,
        "control_flow": parsed.control_flow,
        "renames": dict(parsed.rename),
        "written": written,
    }
    try:
        answer = isolated.answer(place, convert=options)
        if not answer["tensors"]:
            return 1, [
                f"{place.path}: nothing to convert: there is no loss-scale state. A fixed loss "
                "scale has none."
            ]
        if written is not None:
            # Again, as writing took a while.
            _check_destination(place.path, destination, parsed.force)
            _move(written, destination)
            if not os.path.exists(os.path.join(folder, BOOKKEEPING)):
                os.rename(os.path.join(hidden, BOOKKEEPING), os.path.join(folder, BOOKKEEPING))
    finally:
        shutil.rmtree(hidden, ignore_errors=True)
    verb = "would write" if parsed.dry_run else "wrote"
    title = f"{verb} {destination}: {answer['tensors']} tensors of {place.path}"
    return 0, [title, *answer["lines"]]


def _check_destination(source: str, destination: str, force: bool) -> None:
    """Raises CheckpointError if the destination cannot or must not be written."""
    if "://" in destination:
        raise CheckpointError(
            f"{destination}: DST must be a local path, so that it can be written atomically; copy "
            "it from there"
        )
    if destination.endswith(os.sep) or os.path.isdir(destination):
        raise CheckpointError(
            f"{destination} is a directory. DST is a prefix, such as "
            f"{os.path.join(destination, os.path.basename(source))}"
        )
    if os.path.basename(destination) == BOOKKEEPING:
        raise CheckpointError(f"{destination}: TensorFlow uses this name for its own records")
    if os.path.realpath(source) == os.path.realpath(destination) or any(
        os.path.realpath(theirs) == os.path.realpath(ours)
        for theirs in _files(source)
        for ours in _files(destination)
    ):
        raise CheckpointError(f"{destination}: DST is the same as SRC, which is never changed")
    if _files(destination) and not force:
        raise CheckpointError(f"{destination} exists; pass --force to replace it")


def _files(prefix: str) -> List[str]:
    found = glob.glob(glob.escape(prefix) + ".data-*-of-*")
    return found + [path for path in (prefix, prefix + ".index") if os.path.isfile(path)]


def _move(written: str, destination: str) -> None:
    for path in sorted(_files(destination), key=lambda path: not path.endswith(".index")):
        os.remove(path)
    for path in sorted(_files(written), key=lambda path: path.endswith(".index")):
        os.rename(path, destination + path[len(written) :])
