"""`tf-lossscale checkpoint convert` writes a complete copy or none, and changes no other file."""

import os
import shutil

import numpy as np
import pytest
import recorded_files
import tensorflow as tf

tf1 = tf.compat.v1
CONTRIB = "1.15.5/contrib.LossScaleOptimizer/exponential_adam_refvars"
STATE = {"loss_scale": np.float32(8), "good_steps": np.int32(2), "bad_steps": np.int32(0)}


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


def test_nothing_is_overwritten_without_force(source, tmp_path, checkpoint):
    new = tmp_path / "model"
    arguments = ("convert", source, new, "--to", "v1")
    assert checkpoint(*arguments)[0] == 0
    first = recorded_files.bytes_of(str(new))
    status, _, err = checkpoint(*arguments, "--control-flow", "v2")
    assert status == 2
    assert "--force" in err
    assert recorded_files.bytes_of(str(new)) == first
    assert checkpoint(*arguments, "--control-flow", "v2", "--force")[0] == 0
    assert "beta1_power" in {name for name, _ in tf.train.list_variables(str(new))}


@pytest.mark.parametrize("spelling", ["{0}", "{1}/../old/model", "{2}"])
@pytest.mark.parametrize("force", [[], ["--force"]])
def test_the_source_is_never_the_destination(spelling, force, source, tmp_path, checkpoint):
    link = tmp_path / "link"
    os.symlink(str(tmp_path / "old"), str(link))
    before = recorded_files.bytes_of(str(source))
    destination = spelling.format(source, tmp_path / "old", link / "model")
    status, _, err = checkpoint("convert", source, destination, "--to", "v1", *force)
    assert status == 2
    assert "never changed" in err
    assert recorded_files.bytes_of(str(source)) == before


@pytest.mark.parametrize("destination", ["old", "new/", "gs://bucket/model", "checkpoint"])
def test_destinations_that_are_no_prefix_are_refused(destination, source, tmp_path, checkpoint):
    if "://" not in destination:
        destination = os.path.join(str(tmp_path), destination)
    before = listing(tmp_path)
    status, _, err = checkpoint("convert", source, destination, "--to", "v1", "--force")
    assert status == 2
    assert err
    assert listing(tmp_path) == before


def test_a_dry_run_prints_the_same_and_writes_nothing(source, tmp_path, checkpoint):
    before = listing(tmp_path)
    status, dry, _ = checkpoint("convert", source, tmp_path / "m", "--to", "v1", "--dry-run")
    assert status == 0
    assert listing(tmp_path) == before
    _, wet, _ = checkpoint("convert", source, tmp_path / "m", "--to", "v1")
    assert dry.splitlines()[1:] == wet.splitlines()[1:]


@pytest.mark.parametrize("force", [False, True])
def test_a_source_that_is_not_whole_leaves_the_destination(force, source, tmp_path, checkpoint):
    new = tmp_path / "new" / "model"
    before = None
    if force:
        assert checkpoint("convert", source, new, "--to", "v1")[0] == 0
        before = recorded_files.bytes_of(str(new))
    data = str(source) + ".data-00000-of-00001"
    with open(data, "r+b") as file:
        # The loss scale and its counters can be read, and a slot cannot.
        assert "v/Adam_1" in dict(tf.train.list_variables(str(source)))
        file.truncate(os.path.getsize(data) - 4)
    status, _, err = checkpoint(
        "convert", source, new, "--to", "v1", *(["--force"] if force else [])
    )
    assert status == 2
    assert str(source) in err
    if force:
        assert recorded_files.bytes_of(str(new)) == before
        assert listing(tmp_path / "new") == [
            "checkpoint",
            "model.data-00000-of-00001",
            "model.index",
        ]
    else:
        assert listing(tmp_path / "new") == []


def test_notes_of_a_directory_are_left(source, tmp_path, checkpoint):
    (tmp_path / "checkpoint").write_text('model_checkpoint_path: "other"\n')
    assert checkpoint("convert", source, tmp_path / "model", "--to", "v1")[0] == 0
    assert (tmp_path / "checkpoint").read_text() == 'model_checkpoint_path: "other"\n'


@pytest.mark.parametrize("suffix", [".index", ".data-00000-of-00001"])
def test_a_file_of_the_destination_means_its_prefix(suffix, source, tmp_path, checkpoint):
    new = tmp_path / "new" / "out"
    assert checkpoint("convert", source, str(new) + suffix, "--to", "v1")[0] == 0
    assert listing(tmp_path / "new") == ["checkpoint", "out.data-00000-of-00001", "out.index"]
    assert tf.train.latest_checkpoint(str(tmp_path / "new")) == str(new)
    status, _, err = checkpoint("convert", source, str(source) + suffix, "--to", "v1", "--force")
    assert status == 2
    assert "never changed" in err


def test_tensors_of_all_kinds_pass_unchanged(tmp_path, checkpoint):
    values = {
        "half": np.arange(3, dtype=np.float16),
        "text": np.array([b"a", b"", b"\xff\x00"], dtype=object),
        "bool": np.array([True, False]),
        "complex": np.array([1 + 2j], np.complex64),
        "empty": np.zeros([0, 3], np.float32),
        "uint8": np.array([[1, 255]], np.uint8),
    }
    with tf.Graph().as_default(), tf1.Session() as session:
        names = list(values) + list(STATE)
        tensors = [tf.constant(each) for each in values.values()]
        tensors += [tf.constant(each) for each in STATE.values()]
        tensors.append(tf.cast([1.5, 2.0], tf.bfloat16))
        prefix = str(tmp_path / "old")
        session.run(
            tf.raw_ops.SaveV2(
                prefix=prefix,
                tensor_names=[*names, "bfloat16"],
                shape_and_slices=[""] * len(tensors),
                tensors=tensors,
            )
        )
    assert checkpoint("convert", prefix, tmp_path / "new", "--to", "v1")[0] == 0
    old, new = (tf.train.load_checkpoint(str(tmp_path / each)) for each in ("old", "new"))
    for name in [*values, "bfloat16"]:
        assert new.get_variable_to_dtype_map()[name] == old.get_variable_to_dtype_map()[name]
        np.testing.assert_array_equal(new.get_tensor(name), old.get_tensor(name))


@pytest.mark.parametrize("version", ["V1", "V2"])
def test_partitioned_variables_are_restored(version, tmp_path, checkpoint):
    def build(scale):
        with tf1.variable_scope("", partitioner=tf1.fixed_size_partitioner(3)):
            table = tf1.get_variable("table", [7, 2], initializer=tf1.random_normal_initializer())
        for name, value in scale.items():
            tf1.get_variable(name, initializer=value)
        return tf.convert_to_tensor(table)

    with tf.Graph().as_default(), tf1.Session() as session:
        table = build(STATE)
        session.run(tf1.global_variables_initializer())
        wanted = session.run(table)
        saver = tf1.train.Saver(write_version=getattr(tf1.train.SaverDef, version))
        source = saver.save(session, str(tmp_path / "old"))
    status, _, err = checkpoint("convert", source, tmp_path / "model", "--to", "v1")
    assert status == 0, err
    with tf.Graph().as_default(), tf1.Session() as session:
        table = build({"current_loss_scale": np.float32(0), "good_steps": np.int64(0)})
        tf1.train.Saver().restore(session, str(tmp_path / "model"))
        np.testing.assert_array_equal(session.run(table), wanted)


def test_checkpoints_of_one_file_are_converted(tmp_path, checkpoint):
    """`Saver(write_version=V1)`, as TensorFlow before 1.0 wrote them all."""
    with tf.Graph().as_default(), tf1.Session() as session:
        for name, value in STATE.items():
            tf1.get_variable(name, initializer=value)
        session.run(tf1.global_variables_initializer())
        saver = tf1.train.Saver(write_version=tf1.train.SaverDef.V1)
        source = saver.save(session, str(tmp_path / "old"), write_meta_graph=False)
    status, _, err = checkpoint("convert", source, tmp_path / "new", "--to", "v1")
    assert status == 0, err
    assert dict(tf.train.list_variables(str(tmp_path / "new"))) == {
        "current_loss_scale": [],
        "good_steps": [],
    }
