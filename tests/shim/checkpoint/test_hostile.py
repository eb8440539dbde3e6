"""Malicious checkpoints, with correct checksums and invalid contents: status 2 and one line."""

import os
import random
import shutil
import time

import numpy as np
import pytest
import recorded_files
import tables
import tensorflow as tf

tf1 = tf.compat.v1
CASES = {"small": 12, "long": 200}  # of each, two or three processes
SOURCE = recorded_files.file_of("2.2.3/keras_experimental.LossScaleOptimizer/dynamic_adam")
GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"
DATA = ".data-00000-of-00001"


SLOW_LINES = {
    "empty lines": b"\n" * 200_000,
    "lines of spaces": b" \n" * 100_000,
    "a line of spaces": b" " * 200_000 + b"\n",
    "a name of spaces": b"model_checkpoint_path:" + b" " * 200_000 + b"\n",
    "spaces after the name": b'model_checkpoint_path: "x"' + b" \n" * 100_000 + b"y",
    "names": b"model_checkpoint_path:\n" * 20_000,
}


@pytest.mark.parametrize("name", sorted(SLOW_LINES))
def test_the_latest_checkpoint_is_searched_in_linear_time(name, tmp_path, refused):
    (tmp_path / "checkpoint").write_bytes(SLOW_LINES[name])
    begun = time.process_time()
    refused(("inspect", tmp_path))
    assert time.process_time() - begun < 2


def changed(value, seeded):
    """Some bytes of a message removed, added, or changed."""
    value = bytearray(value)
    for _ in range(seeded.randint(1, 3)):
        place = seeded.randrange(len(value) + 1)
        what = seeded.randrange(4)
        if what == 0:
            value[place : place + seeded.randint(1, 4)] = b""
        elif what == 1:
            value[place:place] = bytes(seeded.choices((0, 1, 8, 0x7F, 0x80, 0xFF), k=3))
        elif what == 2:
            value[place:place] = tables.varint(seeded.choice((2**31, 2**40, 2**63, 2**64 - 1)))
        elif place < len(value):
            value[place] = seeded.randrange(256)
    return bytes(value)


def with_one_changed(source, destination, seeded):
    """Copies a table, and changes an entry."""
    entries = tables.read(source)
    place = seeded.randrange(len(entries))
    entries[place] = (entries[place][0], changed(entries[place][1], seeded))
    tables.write(destination, entries)


def index(prefix, seeded):
    """An index with one changed entry."""
    with_one_changed(SOURCE + ".index", prefix + ".index", seeded)
    shutil.copy(SOURCE + DATA, prefix + DATA)


def graph_of_objects(prefix, seeded):
    """A changed object graph."""
    values = recorded_files.tensors(SOURCE)
    values[GRAPH] = changed(values[GRAPH], seeded)
    recorded_files.save_tensors(prefix, values)


def one_file(prefix, seeded):
    """A single-file checkpoint with one changed entry."""
    with tf.Graph().as_default(), tf1.Session() as session:
        session.run(
            tf.raw_ops.SaveSlices(
                filename=prefix,
                tensor_names=["current_loss_scale", "good_steps", "other"],
                shapes_and_slices=[""] * 3,
                data=[np.float32(8), np.int64(3), np.arange(6, dtype=np.int32).reshape(2, 3)],
            )
        )
    with_one_changed(prefix, prefix, seeded)


@pytest.mark.parametrize(
    ("write", "to"), [(index, "keras"), (graph_of_objects, "keras"), (one_file, "contrib")]
)
def test_changed_contents_with_right_checksums(write, to, size, tmp_path, checkpoint):
    seeded, found = random.Random(1), set()
    prefix = str(tmp_path / "old" / "model")
    os.mkdir(os.path.dirname(prefix))
    for number in range(CASES[size]):
        write(prefix, seeded)
        new = str(tmp_path / "new" / "model")
        for arguments in (("inspect", prefix), ("convert", prefix, new, "--to", to)):
            status, _, err = checkpoint(*arguments)
            assert status in (0, 1, 2), number
            assert err.count("\n") == (status == 2 or (status and arguments[0] == "convert")), err
            assert "cannot be read: " not in err, (number, err)
            found.add(status)
        assert status == 0 or not os.path.exists(new + ".index")
        shutil.rmtree(str(tmp_path / "new"), ignore_errors=True)
    # Every key of the index is in the object graph, too, so a changed one hardly goes unnoticed.
    assert found >= ({2} if write is index else {0, 2})


def entry(**values):
    fields = dict({"dtype": 1, "shape": (), "shard": 0, "offset": 0, "size": 4}, **values)
    shape = tables.message(*((2, tables.message((1, size))) for size in fields["shape"]))
    zeros = bytes(min(fields["size"], 8))
    checksum = tables.checksum(zeros).to_bytes(4, "little")
    numbers = [(3, fields["shard"]), (4, fields["offset"]), (5, fields["size"])]
    return (
        tables.message((1, fields["dtype"]), (2, shape), *numbers)
        + tables.varint(6 << 3 | 5)
        + checksum
    )


ENTRIES = {
    "a huge tensor": entry(shape=(2**40,), size=2**42),
    "a product that overflows": entry(shape=(2**32, 2**32), size=0),
    "a negative dimension": entry(shape=(-1,), size=2**64 - 4),
    "a negative offset": entry(offset=2**64 - 4),
    "an end that overflows": entry(offset=2**63 - 1),
    "a data file that cannot be": entry(shard=7),
    "a negative data file": entry(shard=2**64 - 1),
    "many strings": entry(dtype=7, shape=(2**60,), size=4),
    "a size that is not its shape's": entry(size=3),
    "many dimensions": entry(shape=(1,) * 255),
    "a type that TensorFlow lacks": entry(dtype=99),
}


@pytest.mark.parametrize("what", sorted(ENTRIES))
def test_an_entry_that_cannot_be(what, tmp_path, checkpoint, refused):
    """No copy is written; the loss scale, which is intact, may be shown."""
    header = tables.read(SOURCE + ".index")[0]
    good = [(b"current_loss_scale", entry()), (b"good_steps", entry(dtype=9, size=8))]
    prefix = str(tmp_path / "model")
    tables.write(prefix + ".index", [header, *good, (b"other", ENTRIES[what])])
    with open(prefix + DATA, "wb") as file:
        file.write(bytes(16))
    status, _, err = checkpoint("inspect", prefix)
    assert (status, err.count("\n")) in ((0, 0), (2, 1)), err
    refused(("convert", prefix, tmp_path / "new", "--to", "contrib"))
    assert sorted(os.listdir(str(tmp_path))) == ["model" + DATA, "model.index"]


def test_a_large_index_with_a_damaged_block(tmp_path, checkpoint, refused):
    """TensorFlow reads such an index without an error, and without the tensors of the block."""
    prefix, zero = str(tmp_path / "model"), np.float32(0)
    values = {f"layer_{number:05}_with_a_long_name/kernel": zero for number in range(10000)}
    recorded_files.save_tensors(prefix, dict(values, **recorded_files.V1_STATE))
    assert checkpoint("inspect", prefix)[0] == 0
    size = os.path.getsize(prefix + ".index")
    with open(prefix + ".index", "rb") as file:
        contents = file.read()
    for place in (100, size * 4 // 5):
        with open(prefix + ".index", "wb") as file:
            file.write(contents[:place] + bytes([contents[place] ^ 4]) + contents[place + 1 :])
        assert len(tf.train.list_variables(prefix)) < len(values)
        refused(("inspect", prefix), "damaged")
        refused(("convert", prefix, prefix + "2", "--to", "v1"), "damaged")


def test_a_data_file_that_never_ends(tmp_path, refused):
    prefix = str(tmp_path / "model")
    recorded_files.save_tensors(prefix, recorded_files.V1_STATE)
    os.remove(prefix + DATA)
    os.mkfifo(prefix + DATA)
    refused(("inspect", prefix), "not a regular file")


def test_names_are_escaped(tmp_path, checkpoint):
    name = "\n::error ::\x1b[31m/"
    names = (name + "current_loss_scale", name + "good_steps", "\x1b[31m/loss_scale")
    prefix = str(tmp_path / "model")
    values = (np.float32(0), np.int64(0), np.float32(0))
    recorded_files.save_tensors(prefix, dict(zip(names, values)))
    status, out, err = checkpoint("inspect", prefix)
    assert status == 0, err
    assert "\x1b" not in out
    assert "\\x1b[31m/loss_scale" in out
    assert not [line for line in out.splitlines() if line.startswith("::")]
    status, out, err = checkpoint("convert", prefix, tmp_path / "new", "--to", "v1")
    assert status == 2
    assert err.count("\n") == 1
    assert "\x1b" not in out + err
