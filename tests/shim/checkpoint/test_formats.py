"""The readers and writers of TensorFlow's formats, against TensorFlow."""

import glob
import os

import numpy as np
import pytest
import recorded_files
import tensorflow as tf

from tf_lossscale._checkpoint import bundle, crc32c, object_graph
from tf_lossscale._checkpoint.tensors import OBJECT_GRAPH, Reader

tf1 = tf.compat.v1
KINDS = sorted(glob.glob(os.path.join(recorded_files.FIXTURES, "*", "*")))


def bytes_of(value):
    """What a data file has for a value, without its checksums."""
    if value.dtype == object:
        return bundle.encode_strings([bytes(each) for each in value.ravel()])
    return value.tobytes()


def assert_reads_as_tensorflow(prefix):
    ours, theirs = Reader(prefix), tf.train.load_checkpoint(prefix)
    shapes, dtypes = theirs.get_variable_to_shape_map(), theirs.get_variable_to_dtype_map()
    assert {key: (tf.as_dtype(dtypes[key]).name, tuple(shapes[key])) for key in shapes} == {
        key: tuple(entry) for key, entry in ours.tensors.items()
    }
    for key in shapes:
        value = theirs.get_tensor(key)
        value = np.array(value, object) if isinstance(value, (bytes, str)) else np.asarray(value)
        ((_, _, chunks),) = ours.stored(key, key)
        assert b"".join(chunks) == bytes_of(value), key


@pytest.mark.parametrize("kind", KINDS, ids=lambda path: os.path.relpath(path, KINDS[0]))
def test_every_tensor_is_read_as_tensorflow_reads_it(kind):
    indexes = glob.glob(os.path.join(glob.escape(kind), "**", "*.index"), recursive=True)
    for index in indexes:
        assert_reads_as_tensorflow(index[: -len(".index")])
    assert indexes or not glob.glob(os.path.join(glob.escape(kind), "**", "*.data-*"))


def test_checkpoints_of_one_file(tmp_path):
    values = {
        "float32": np.array([[1.5, -2]], np.float32),
        "float64": np.array(3.25),
        "int32": np.array([-1, 2**31 - 1], np.int32),
        "int64": np.array([-(2**63), 5], np.int64),
        "uint8": np.array([0, 255], np.uint8),
        "int8": np.array([-128, 127], np.int8),
        "int16": np.array([-3], np.int16),
        "bool": np.array([True, False]),
        "complex64": np.array([1 - 2j], np.complex64),
        "half": np.array([1.5, -0.25], np.float16),
        "string": np.array([b"", b"\xff\x00"], object),
    }
    with tf.Graph().as_default(), tf1.Session() as session:
        tensors = [tf.constant(each) for each in values.values()]
        session.run(
            tf.raw_ops.SaveSlices(
                filename=str(tmp_path / "old"),
                tensor_names=list(values),
                shapes_and_slices=[""] * len(values),
                data=tensors,
            )
        )
    reader = Reader(str(tmp_path / "old"))
    listed = dict(tf.train.list_variables(str(tmp_path / "old")))
    assert {key: list(entry.shape) for key, entry in reader.tensors.items()} == listed
    for key, value in values.items():
        ((_, _, chunks),) = reader.stored(key, key)
        assert b"".join(chunks) == bytes_of(value), key


def test_a_graph_of_objects_is_written_as_it_was_read():
    for path in glob.glob(os.path.join(recorded_files.FIXTURES, "*", "*", "*", "*.index")):
        reader = Reader(path[: -len(".index")])
        if reader.has_objects:
            ((_, _, chunks),) = reader.stored(OBJECT_GRAPH, OBJECT_GRAPH)
            rewritten = object_graph.serialize(reader.object_graph())
            assert bundle.encode_strings([rewritten]) == b"".join(chunks)


def test_many_tensors_take_several_blocks(tmp_path):
    items = [
        (b"name/%05d" % number, bundle.Record(3, ()), [number.to_bytes(4, "little")])
        for number in range(1000)
    ]
    bundle.write(str(tmp_path / "many"), items)
    assert os.path.getsize(str(tmp_path / "many.index")) > 5 * 4096
    assert_reads_as_tensorflow(str(tmp_path / "many"))


def test_keys_of_slices_are_split_and_joined():
    """As TensorFlow makes them: of a partitioned variable with bytes that need an escape."""
    for name in (b"table", b"\0a\xff\0\xff", b""):
        key = bundle.slice_key(name, b"\x01\x02\x80\x85")
        assert bundle.split_slice_key(key) == (name, b"\x01\x02\x80\x85")


@pytest.mark.parametrize("size", [0, 1, 9, 2**20 - 1, 2**20, 2**21 + 7])
def test_the_checksum(size, monkeypatch):
    data = np.random.RandomState(size % 1000).bytes(size)
    whole = crc32c.extend(0, data)
    assert crc32c.extend(crc32c.extend(0, data[: size // 3]), data[size // 3 :]) == whole
    monkeypatch.setattr(crc32c, "_numpy", lambda: None)
    assert crc32c.extend(0, data) == whole
    assert crc32c.extend(0, b"123456789") == 0xE3069283
