"""`tf-lossscale checkpoint convert` writes a complete copy or none, and changes no other file."""

import os
import shutil

import numpy as np
import pytest
import recorded_files
import tables
import tensorflow as tf
from recorded_files import CONTRIB_STATE

tf1 = tf.compat.v1
CONTRIB = "1.15.5/contrib.LossScaleOptimizer/exponential_adam_refvars"


@pytest.fixture
def source(tmp_path):
    folder = recorded_files.folders(CONTRIB)[0]
    shutil.copytree(os.path.join(folder, "saver"), str(tmp_path / "old"))
    return tmp_path / "old" / "model"


def listing(folder):
    return sorted(
        os.path.relpath(os.path.join(directory, name), str(folder))
        for directory, _, names in os.walk(str(folder))
        for name in names
    )


def test_nothing_is_overwritten_without_force(source, tmp_path, checkpoint, refused):
    new = tmp_path / "model"
    arguments = ("convert", source, new, "--to", "v1")
    assert checkpoint(*arguments)[0] == 0
    first = recorded_files.bytes_of(str(new))
    refused((*arguments, "--control-flow", "v2"), "--force")
    assert recorded_files.bytes_of(str(new)) == first
    assert checkpoint(*arguments, "--control-flow", "v2", "--force")[0] == 0
    assert "beta1_power" in {name for name, _ in tf.train.list_variables(str(new))}


@pytest.mark.parametrize("spelling", ["{0}", "{1}/../old/model", "{2}"])
@pytest.mark.parametrize("force", [[], ["--force"]])
def test_the_source_is_never_the_destination(spelling, force, source, tmp_path, refused):
    link = tmp_path / "link"
    os.symlink(str(tmp_path / "old"), str(link))
    before = recorded_files.bytes_of(str(source))
    destination = spelling.format(source, tmp_path / "old", link / "model")
    refused(("convert", source, destination, "--to", "v1", *force), "never changed")
    assert recorded_files.bytes_of(str(source)) == before


@pytest.mark.parametrize("destination", ["old", "new/", "gs://bucket/model", "checkpoint"])
def test_destinations_that_are_no_prefix_are_refused(destination, source, tmp_path, refused):
    if "://" not in destination:
        destination = os.path.join(str(tmp_path), destination)
    before = listing(tmp_path)
    refused(("convert", source, destination, "--to", "v1", "--force"))
    assert listing(tmp_path) == before


@pytest.mark.parametrize("destination", ["", ".index"])
def test_an_empty_destination_is_refused(destination, source, tmp_path, monkeypatch, refused):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    before = listing(tmp_path)
    refused(("convert", source, destination, "--to", "v1", "--force"), "DST is empty")
    assert listing(tmp_path) == before


@pytest.mark.parametrize("length", [215, 250])  # TensorFlow makes the name of a file longer
def test_a_copy_that_cannot_be_written_says_nothing_about_the_source(
    length, source, tmp_path, checkpoint
):
    before = listing(tmp_path)
    status, _, err = checkpoint("convert", source, tmp_path / ("n" * length), "--to", "v1")
    assert (status, err.count("\n")) == (2, 1)
    assert "too long" in err
    assert "damaged" not in err
    assert listing(tmp_path) == before


def test_a_dry_run_prints_the_same_and_writes_nothing(source, tmp_path, checkpoint):
    before = listing(tmp_path)
    status, dry, _ = checkpoint("convert", source, tmp_path / "m", "--to", "v1", "--dry-run")
    assert status == 0
    assert listing(tmp_path) == before
    _, wet, _ = checkpoint("convert", source, tmp_path / "m", "--to", "v1")
    assert dry.splitlines()[1:] == wet.splitlines()[1:]


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_a_source_that_is_not_whole_leaves_the_destination(
    force, source, tmp_path, checkpoint, refused
):
    new = tmp_path / "new" / "model"
    if force:
        assert checkpoint("convert", source, new, "--to", "v1")[0] == 0
        before = recorded_files.bytes_of(str(new))
    data = str(source) + ".data-00000-of-00001"
    with open(data, "r+b") as file:
        # The loss scale and its counters can be read, and a slot cannot.
        assert "v/Adam_1" in dict(tf.train.list_variables(str(source)))
        file.truncate(os.path.getsize(data) - 4)
    refused(("convert", source, new, "--to", "v1", *force), source)
    names = ["checkpoint", "model.data-00000-of-00001", "model.index"] if force else []
    assert listing(tmp_path / "new") == names
    if force:
        assert recorded_files.bytes_of(str(new)) == before


def test_notes_of_a_directory_are_left(source, tmp_path, checkpoint):
    (tmp_path / "checkpoint").write_text('model_checkpoint_path: "other"\n')
    assert checkpoint("convert", source, tmp_path / "model", "--to", "v1")[0] == 0
    assert (tmp_path / "checkpoint").read_text() == 'model_checkpoint_path: "other"\n'


@pytest.mark.parametrize("suffix", [".index", ".data-00000-of-00001"])
def test_a_file_of_the_destination_means_its_prefix(suffix, source, tmp_path, checkpoint, refused):
    new = tmp_path / "new" / "out"
    assert checkpoint("convert", source, str(new) + suffix, "--to", "v1")[0] == 0
    assert listing(tmp_path / "new") == ["checkpoint", "out.data-00000-of-00001", "out.index"]
    assert tf.train.latest_checkpoint(str(tmp_path / "new")) == str(new)
    refused(("convert", source, str(source) + suffix, "--to", "v1", "--force"), "never changed")


def test_tensors_of_all_kinds_pass_unchanged(tmp_path, checkpoint):
    values = {
        "half": np.arange(3, dtype=np.float16),
        "text": np.array([b"a", b"", b"\xff\x00"], dtype=object),
        "bool": np.array([True, False]),
        "complex": np.array([1 + 2j], np.complex64),
        "empty": np.zeros([0, 3], np.float32),
        "uint8": np.array([[1, 255]], np.uint8),
        "bfloat16": np.array([1.5, 2.0], tf.bfloat16.as_numpy_dtype),
    }
    prefix = str(tmp_path / "old")
    recorded_files.save_tensors(prefix, dict(values, **CONTRIB_STATE))
    assert checkpoint("convert", prefix, tmp_path / "new", "--to", "v1")[0] == 0
    old, new = (recorded_files.tensors(tmp_path / version) for version in ("old", "new"))
    for name in values:
        assert new[name].dtype == old[name].dtype
        np.testing.assert_array_equal(new[name], old[name])


@pytest.mark.parametrize("version", ["V1", "V2"])
def test_partitioned_variables_are_restored(version, tmp_path, checkpoint):
    def build(scale):
        with tf1.variable_scope("", partitioner=tf1.fixed_size_partitioner(3)):
            table = tf1.get_variable("table", [7, 2], initializer=tf1.random_normal_initializer())
        for name, value in scale.items():
            tf1.get_variable(name, initializer=value)
        return tf.convert_to_tensor(table)

    with tf.Graph().as_default(), tf1.Session() as session:
        table = build(CONTRIB_STATE)
        session.run(tf1.global_variables_initializer())
        wanted = session.run(table)
        saver = tf1.train.Saver(write_version=getattr(tf1.train.SaverDef, version))
        source = saver.save(session, str(tmp_path / "old"))
    status, _, err = checkpoint("convert", source, tmp_path / "model", "--to", "v1")
    assert status == 0, err
    assert os.path.exists(source + ".meta")
    assert not os.path.exists(str(tmp_path / "model.meta"))
    keys = {key for key, _ in tables.read(str(tmp_path / "model.index"))}
    assert keys == {b"", b"table", b"current_loss_scale", b"good_steps"}  # and no key of a slice
    with tf.Graph().as_default(), tf1.Session() as session:
        table = build({"current_loss_scale": np.float32(0), "good_steps": np.int64(0)})
        tf1.train.Saver().restore(session, str(tmp_path / "model"))
        np.testing.assert_array_equal(session.run(table), wanted)
