"""Malicious checkpoints, with correct checksums and invalid contents."""

import glob
import os
import random
import resource

import numpy as np
import pytest
import recorded_files
import tensorflow as tf

from tf_lossscale._checkpoint import bundle, crc32c, object_graph, table, wire
from tf_lossscale._checkpoint.tensors import OBJECT_GRAPH, Reader

tf1 = tf.compat.v1
CASES = {"small": 150, "full": 600, "long": 20000}
SOURCE = "2.2.3/keras_experimental.LossScaleOptimizer/dynamic_adam"


@pytest.fixture(scope="module")
def original():
    return recorded_files.files(recorded_files.folders(SOURCE)[0])[0]


def index_of(prefix):
    path = prefix + ".index"
    with open(path, "rb") as file:
        return list(table.entries(file, os.path.getsize(path)))


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
            value[place:place] = wire.varint(seeded.choice((2**31, 2**40, 2**63, 2**64 - 1)))
        elif place < len(value):
            value[place] = seeded.randrange(256)
    return bytes(value)


def assert_handled(checkpoint, prefix, what, found, to="keras"):
    for arguments in (("inspect", prefix), ("convert", prefix, prefix + ".new", "--to", to)):
        status, _, err = checkpoint(*arguments)
        assert status in (0, 1, 2), what
        assert err.count("\n") == (status == 2 or (status and arguments[0] == "convert")), what
        assert "cannot be read: " not in err, (what, err)
        found.add(status)
        for path in glob.glob(prefix + ".new*"):
            os.remove(path)


def test_an_index_with_right_checksums_and_wrong_contents(original, size, tmp_path, checkpoint):
    entries = index_of(original)
    with open(original + ".data-00000-of-00001", "rb") as file:
        (tmp_path / "model.data-00000-of-00001").write_bytes(file.read())
    seeded, found = random.Random(1), set()
    for number in range(CASES[size]):
        new = list(entries)
        place = seeded.randrange(len(new))
        new[place] = (new[place][0], changed(new[place][1], seeded))
        with open(str(tmp_path / "model.index"), "wb") as file:
            table.write(file, new)
        assert_handled(checkpoint, str(tmp_path / "model"), (number, new[place]), found)
    assert found >= {0, 2}


def test_a_graph_of_objects_with_right_checksums_and_wrong_contents(
    original, size, tmp_path, checkpoint
):
    reader = Reader(original)
    graph = object_graph.serialize(reader.object_graph())
    seeded, found = random.Random(2), set()
    for number in range(CASES[size]):
        mutated = changed(graph, seeded)
        items = [
            stored
            for key in reader.tensors
            if key != OBJECT_GRAPH
            for stored in reader.stored(key, key)
        ]
        items.append(
            (OBJECT_GRAPH.encode(), bundle.Record(7, ()), [bundle.encode_strings([mutated])])
        )
        bundle.write(str(tmp_path / "model"), items)
        assert_handled(checkpoint, str(tmp_path / "model"), (number, mutated), found)
    assert found >= {0, 2}


def test_one_file_with_right_checksums_and_wrong_contents(size, tmp_path, checkpoint):
    with tf.Graph().as_default(), tf1.Session() as session:
        tf1.get_variable("current_loss_scale", initializer=np.float32(8.0))
        tf1.get_variable("good_steps", initializer=np.int64(3))
        tf1.get_variable("other", initializer=np.arange(6, dtype=np.int32).reshape(2, 3))
        session.run(tf1.global_variables_initializer())
        saver = tf1.train.Saver(write_version=tf1.train.SaverDef.V1)
        path = saver.save(session, str(tmp_path / "model"), write_meta_graph=False)
    with open(path, "rb") as file:
        entries = list(table.entries(file, os.path.getsize(path)))
    seeded, found = random.Random(3), set()
    for number in range(CASES[size]):
        new = list(entries)
        place = seeded.randrange(len(new))
        new[place] = (new[place][0], changed(new[place][1], seeded))
        with open(path, "wb") as file:
            table.write(file, new)
        assert_handled(checkpoint, path, (number, new[place]), found, to="contrib")
    assert found >= {0, 2}


def entry(**values):
    fields = dict({"dtype": 1, "shape": (), "size": 4}, **values)
    shape = b"".join(wire.bytes_field(2, wire.varint_field(1, each)) for each in fields["shape"])
    return (
        wire.varint_field(1, fields["dtype"])
        + wire.bytes_field(2, shape)
        + wire.varint_field(3, fields.get("shard", 0))
        + wire.varint_field(4, fields.get("offset", 0))
        + wire.varint_field(5, fields["size"])
        + wire.fixed32_field(6, crc32c.masked(crc32c.extend(0, bytes(min(fields["size"], 8)))))
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
}


@pytest.mark.parametrize("what", sorted(ENTRIES))
@pytest.mark.parametrize("action", ["inspect", "convert"])
def test_an_entry_that_cannot_be(what, action, tmp_path, checkpoint):
    header = index_of(recorded_files.files(recorded_files.folders(SOURCE)[0])[0])[0]
    good = [(b"current_loss_scale", entry()), (b"good_steps", entry(dtype=9, size=8))]
    with open(str(tmp_path / "model.index"), "wb") as file:
        table.write(file, [header, *good, (b"other", ENTRIES[what])])
    (tmp_path / "model.data-00000-of-00001").write_bytes(bytes(16))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    more = (tmp_path / "new", "--to", "contrib") if action == "convert" else ()
    status, out, err = checkpoint(action, tmp_path / "model", *more)
    if (what, action) == ("many strings", "inspect"):  # which are not read
        assert (status, err) == (0, "")
    else:
        assert (status, out, err.count("\n")) == (2, "", 1), err
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2**16  # 64 MiB


def test_names_are_escaped(tmp_path, checkpoint):
    name = b"\n::error ::\x1b[31m\xff/current_loss_scale"
    items = [
        (name, bundle.Record(1, ()), [bytes(4)]),
        (name.replace(b"current_loss_scale", b"good_steps"), bundle.Record(9, ()), [bytes(8)]),
        (b"\x1b[31m/loss_scale", bundle.Record(1, ()), [bytes(4)]),
    ]
    bundle.write(str(tmp_path / "model"), items)
    status, out, _ = checkpoint("inspect", tmp_path / "model")
    assert status == 0
    assert "\x1b" not in out
    assert "\\x1b[31m/loss_scale" in out
    assert not [line for line in out.splitlines() if line.startswith("::")]
    status, out, err = checkpoint("convert", tmp_path / "model", tmp_path / "new", "--to", "v1")
    assert status == 2
    assert err.count("\n") == 1
    assert "\x1b" not in out + err
