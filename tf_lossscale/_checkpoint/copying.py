"""Writes a planned checkpoint next to its destination, and moves it there when it is complete.

The bytes of the tensors are copied a few megabytes at a time, and their checksums are verified.
"""

import glob
import os
import shutil
import tempfile
from typing import Iterator, List, Union

from tf_lossscale._checkpoint import bookkeeping, bundle, dtypes, scalars
from tf_lossscale._checkpoint.errors import CheckpointError
from tf_lossscale._checkpoint.names import Entry
from tf_lossscale._checkpoint.plan import Plan, Tensor
from tf_lossscale._checkpoint.tensors import Reader, Stored

__all__ = ["check_destination", "write"]


def check_destination(source: str, destination: str, force: bool) -> None:
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
    if os.path.basename(destination) == bookkeeping.NAME:
        raise CheckpointError(f"{destination}: TensorFlow uses this name for its own records")
    if os.path.realpath(source) == os.path.realpath(destination) or any(
        os.path.realpath(theirs) == os.path.realpath(ours)
        for theirs in _files(source)
        for ours in _files(destination)
    ):
        raise CheckpointError(f"{destination}: DST is the same as SRC, which is never changed")
    if _files(destination) and not force:
        raise CheckpointError(f"{destination} exists; pass --force to replace it")


def write(reader: Reader, plan: Plan, destination: str, force: bool) -> None:
    """Writes the new checkpoint.

    If the process is killed, no half-written checkpoint remains: without its index, TensorFlow does
    not find a checkpoint. The new index is written last, and an old index is removed first.

    Args:
      reader: the old checkpoint.
      plan: the contents of the new checkpoint.
      destination: the prefix of the new checkpoint.
      force: whether the destination may exist.

    Raises:
      CheckpointError: the checkpoint could not be written; the destination is unchanged.
    """
    folder, name = os.path.split(os.path.abspath(destination))
    os.makedirs(folder, exist_ok=True)
    hidden = tempfile.mkdtemp(prefix=f".{name}.tf-lossscale-", dir=folder)
    try:
        whole = os.path.join(hidden, name)
        bundle.write(whole, _contents(reader, plan))
        _check(whole, reader, plan)
        check_destination(reader.prefix, destination, force)  # again, as writing took a while
        _move(whole, destination)
    finally:
        shutil.rmtree(hidden, ignore_errors=True)
    _keep_books(folder, name)


def _contents(reader: Reader, plan: Plan) -> Iterator[Stored]:
    for each in plan.tensors:
        if each.source is None:
            yield _made(each, each.value)
        elif each.dtype == reader.tensors[each.source].dtype:
            yield from reader.stored(each.source, each.key)
        else:
            yield _made(each, int(reader.number(each.source) or 0))


def _made(tensor: Tensor, value: Union[int, bytes, None]) -> Stored:
    data = bundle.encode_strings([value]) if isinstance(value, bytes) else b""
    if not isinstance(value, bytes):
        data = scalars.encode(value or 0, tensor.dtype)
    return tensor.key.encode("utf-8"), bundle.Record(dtypes.number_of(tensor.dtype), ()), [data]


def _check(whole: str, reader: Reader, plan: Plan) -> None:
    """Reads the index of the new checkpoint, to verify it."""
    written = Reader(whole).tensors
    wanted = {
        each.key: Entry(each.dtype, reader.tensors[each.source].shape if each.source else ())
        for each in plan.tensors
    }
    if written != wanted:
        differing = sorted(
            key for key in {*written, *wanted} if written.get(key) != wanted.get(key)
        )
        raise CheckpointError(f"what was written differs from the plan: {differing[:5]}")


def _files(prefix: str) -> List[str]:
    found = glob.glob(glob.escape(prefix) + ".data-*-of-*")
    return found + [path for path in (prefix, prefix + ".index") if os.path.isfile(path)]


def _move(whole: str, destination: str) -> None:
    for path in sorted(_files(destination), key=lambda path: not path.endswith(".index")):
        os.remove(path)
    for path in sorted(_files(whole), key=lambda path: path.endswith(".index")):
        os.rename(path, destination + path[len(whole) :])


def _keep_books(folder: str, name: str) -> None:
    """Records the checkpoint as the latest of its directory, unless the directory records one."""
    path = os.path.join(folder, bookkeeping.NAME)
    if not os.path.exists(path):
        with open(path, "w", encoding="utf-8") as file:
            file.write(bookkeeping.entry(name))
