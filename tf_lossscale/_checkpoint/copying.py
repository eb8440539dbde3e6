"""Writes a planned checkpoint beside its destination, and moves it there when it is whole.

TensorFlow's own operations read and write the tensors, in parts of limited size: no tensor passes
through Python, and memory holds one part (or one tensor, if that is larger) at a time.
"""

import glob
import os
import shutil
import tempfile
from typing import Any, Iterator, List, Mapping, Sequence

from tf_lossscale._checkpoint.errors import CheckpointError
from tf_lossscale._checkpoint.names import Entry
from tf_lossscale._checkpoint.plan import Plan, Tensor
from tf_lossscale._checkpoint.tensors import Reader

__all__ = ["check_destination", "write"]

PART_BYTES = 256 * 2**20
_BOOKKEEPING = "checkpoint"


def check_destination(source: str, destination: str, force: bool) -> None:
    """Raises CheckpointError where nothing can or may be written."""
    if "://" in destination:
        raise CheckpointError(
            f"{destination}: DST must be a local path, which is written atomically; copy it from "
            "there"
        )
    if destination.endswith(os.sep) or os.path.isdir(destination):
        raise CheckpointError(
            f"{destination} is a directory. DST is a prefix, such as "
            f"{os.path.join(destination, os.path.basename(source))}"
        )
    if os.path.basename(destination) == _BOOKKEEPING:
        raise CheckpointError(f"{destination}: TensorFlow keeps its own notes under this name")
    if os.path.realpath(source) == os.path.realpath(destination) or any(
        os.path.realpath(theirs) == os.path.realpath(ours)
        for theirs in _files(source)
        for ours in _files(destination)
    ):
        raise CheckpointError(f"{destination}: DST is SRC, which is never changed")
    if _files(destination) and not force:
        raise CheckpointError(f"{destination} exists; --force replaces it")


def write(
    source: str, tensors: Mapping[str, Entry], plan: Plan, destination: str, force: bool
) -> None:
    """Writes the new checkpoint.

    A kill at any moment leaves no half-written checkpoint: the index, without which TensorFlow sees
    none, is the last file to appear, and the first to go where an old one is replaced.

    Args:
      source: the prefix of the old checkpoint.
      tensors: what its index says, by key.
      plan: what the new one is to hold.
      destination: the prefix of the new one.
      force: whether it may exist.

    Raises:
      CheckpointError: it could not be written; the destination is as it was.
    """
    folder, name = os.path.split(os.path.abspath(destination))
    os.makedirs(folder, exist_ok=True)
    hidden = tempfile.mkdtemp(prefix=f".{name}.tf-lossscale-", dir=folder)
    try:
        whole = os.path.join(hidden, name)
        _save(source, tensors, plan, whole)
        _check(whole, tensors, plan)
        check_destination(source, destination, force)  # again: that took a while
        _move(whole, destination)
    finally:
        shutil.rmtree(hidden, ignore_errors=True)
    _keep_books(folder, name)


def _save(source: str, tensors: Mapping[str, Entry], plan: Plan, whole: str) -> None:
    from tf_lossscale._versions import tf, tf1

    prefixes = []
    try:
        for number, part in enumerate(_parts(tf, plan.tensors, tensors)):
            prefixes.append(f"{whole}.part-{number}")
            with tf.Graph().as_default() as graph, tf.device("/cpu:0"):
                saved = _copy(tf, source, tensors, part, prefixes[-1])
                _run(tf1, graph, saved)
        with tf.Graph().as_default() as graph, tf.device("/cpu:0"):
            merged = tf.raw_ops.MergeV2Checkpoints(
                checkpoint_prefixes=prefixes, destination_prefix=whole, delete_old_dirs=False
            )
            _run(tf1, graph, merged)
    except tf.errors.OpError as error:
        raise CheckpointError(f"TensorFlow cannot copy {source}: {error.message}") from error


def _run(tf1: Any, graph: Any, operation: Any) -> None:
    config = tf1.ConfigProto(device_count={"GPU": 0})
    with tf1.Session(graph=graph, config=config) as session:
        session.run(operation)


def _copy(
    tf: Any, source: str, tensors: Mapping[str, Entry], part: Sequence[Tensor], prefix: str
) -> Any:
    read = [each for each in part if each.source is not None]
    values = {}
    if read:
        restored = tf.raw_ops.RestoreV2(
            prefix=source,
            tensor_names=[each.source for each in read],
            shape_and_slices=[""] * len(read),
            dtypes=[tensors[each.source or ""].dtype for each in read],
        )
        values = {each.key: value for each, value in zip(read, restored)}
    for each in part:
        if each.source is None:
            values[each.key] = tf.constant(each.value, each.dtype)
        elif values[each.key].dtype.name != each.dtype:
            values[each.key] = tf.cast(values[each.key], each.dtype)
    return tf.raw_ops.SaveV2(
        prefix=prefix,
        tensor_names=[each.key for each in part],
        shape_and_slices=[""] * len(part),
        tensors=[values[each.key] for each in part],
    )


def _parts(
    tf: Any, planned: Sequence[Tensor], tensors: Mapping[str, Entry]
) -> Iterator[List[Tensor]]:
    part: List[Tensor] = []
    size = 0
    for each in planned:
        bytes_ = 0 if each.source is None else _bytes(tf, tensors[each.source])
        if part and size + bytes_ > PART_BYTES:
            yield part
            part, size = [], 0
        part.append(each)
        size += bytes_
    yield part


def _bytes(tf: Any, entry: Entry) -> int:
    size = int(tf.as_dtype(entry.dtype).size or 1)
    for dimension in entry.shape:
        size *= dimension
    return size


def _check(whole: str, tensors: Mapping[str, Entry], plan: Plan) -> None:
    """Reads the index of what was written."""
    written = Reader(whole).tensors
    wanted = {
        each.key: Entry(each.dtype, tensors[each.source].shape if each.source else ())
        for each in plan.tensors
    }
    if written != wanted:
        differing = sorted(
            key for key in {*written, *wanted} if written.get(key) != wanted.get(key)
        )
        raise CheckpointError(f"TensorFlow wrote other tensors than planned: {differing[:5]}")


def _files(prefix: str) -> List[str]:
    found = glob.glob(glob.escape(prefix) + ".data-*-of-*")
    return found + [path for path in (prefix, prefix + ".index") if os.path.isfile(path)]


def _move(whole: str, destination: str) -> None:
    for path in sorted(_files(destination), key=lambda path: not path.endswith(".index")):
        os.remove(path)
    for path in sorted(_files(whole), key=lambda path: path.endswith(".index")):
        os.rename(path, destination + path[len(whole) :])


def _keep_books(folder: str, name: str) -> None:
    """Notes the checkpoint as the latest of its directory, unless the directory has such notes."""
    from tf_lossscale._versions import tf1

    path = os.path.join(folder, _BOOKKEEPING)
    if not os.path.exists(path):
        with open(path, "w", encoding="utf-8") as file:
            file.write(str(tf1.train.generate_checkpoint_state_proto(folder, name)))
