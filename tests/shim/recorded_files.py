"""The files of the real classes in `tests/data/fixtures`, what each holds, and small new ones."""

import glob
import json
import os
import tarfile

import numpy as np
import processes

FIXTURES = os.path.join(processes.REPOSITORY, "tests", "data", "fixtures")
NAMES = {"dynamic_scale": "loss_scale", "step_counter": "good_steps"}
"""What Keras 3 calls its variables, and what the others do."""


def folders(pattern):
    found = sorted(glob.glob(os.path.join(FIXTURES, *pattern.split("/"))))
    assert found, pattern
    return found


def facts(folder):
    with open(os.path.join(folder, "expected.json"), encoding="utf-8") as file:
        return json.load(file)


def same_names(state):
    return {NAMES.get(key, key): value for key, value in state.items()}


def files(folder):
    """The files of a recording that can be inspected where they lie."""
    expected = facts(folder)
    keys = ("prefix", "file", "saver_prefix", "checkpoint_prefix")
    names = [expected[key] for key in keys if key in expected]
    return [os.path.join(folder, name) for name in names if not name.endswith(".tar.gz")]


def file_of(pattern):
    """The first file of the first recording."""
    return files(folders(pattern)[0])[0]


def prefix_of(pattern, key="checkpoint_prefix"):
    """The prefix of the checkpoint of the only recording, and what is recorded of it."""
    (folder,) = folders(pattern)
    expected = facts(folder)
    return os.path.join(folder, expected[key]), expected


def saved_model(folder, unpacked):
    """The file of a recorded model; a SavedModel is unpacked to a folder where it is packed."""
    path = os.path.join(folder, facts(folder)["file"])
    if not path.endswith(".tar.gz"):
        return path
    with tarfile.open(path) as opened:
        safely = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        opened.extractall(str(unpacked), **safely)
    return str(unpacked / "sm")


def label(path):
    return os.path.relpath(path, FIXTURES).replace(os.sep, "-")


def bytes_of(prefix):
    """All files of a checkpoint."""
    contents = {}
    for path in sorted(glob.glob(glob.escape(prefix) + ".*")):
        with open(path, "rb") as file:
            contents[path[len(prefix) :]] = file.read()
    assert contents, prefix
    return contents


CONTRIB_STATE = {"loss_scale": np.float32(8), "good_steps": np.int32(2), "bad_steps": np.int32(0)}
V1_STATE = {"current_loss_scale": np.float32(8), "good_steps": np.int64(2)}


def save(path, values, version="V2"):
    """Saves variables of these names and values with a `tf.train.Saver`, and returns the prefix."""
    import tensorflow as tf

    tf1 = tf.compat.v1
    with tf.Graph().as_default(), tf1.Session() as session:
        for name, value in values.items():
            tf1.get_variable(name, initializer=value)
        session.run(tf1.global_variables_initializer())
        saver = tf1.train.Saver(write_version=getattr(tf1.train.SaverDef, version))
        return saver.save(session, str(path), write_meta_graph=False)


def save_tensors(prefix, values):
    """Saves tensors of any names and values."""
    import tensorflow as tf

    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        different = {id(value): value for value in values.values()}
        constants = {key: tf.constant(value) for key, value in different.items()}
        session.run(
            tf.raw_ops.SaveV2(
                prefix=prefix,
                tensor_names=list(values),
                shape_and_slices=[""] * len(values),
                tensors=[constants[id(value)] for value in values.values()],
            )
        )


def tensors(prefix):
    """The tensors of a checkpoint, by name."""
    import tensorflow as tf

    reader = tf.train.load_checkpoint(str(prefix))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def assert_equal(old, new, but=None):
    """Two checkpoints hold the same; but for the value of one tensor."""
    old, new = tensors(old), tensors(new)
    assert set(new) == set(old)
    for name, value in old.items():
        shown = [
            (type(tensor), np.shape(tensor), np.asarray(tensor).dtype)
            for tensor in (new[name], value)
        ]
        assert shown[0] == shown[1], name
        if name != but:
            np.testing.assert_array_equal(new[name], value, name)
