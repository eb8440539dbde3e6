"""`tf-lossscale checkpoint convert` of object checkpoints: old Keras, and rejected files."""

import os

import numpy as np
import pytest
import recorded
import recorded_files
import tensorflow as tf
from recorded_files import prefix_of
from test_recorded_checkpoints import OPTIMIZERS, STATE, Training

from tf_lossscale._checkpoint import plans, tensorflow_files
from tf_lossscale._checkpoint.locate import CheckpointError

ORIGINALS = [subject for subject in recorded.originals() if subject.kind.name == "legacy"]
OURS = [subject for subject in recorded.ours() if subject.kind.name == "legacy"]
later_layout = pytest.mark.skipif(
    recorded.TF < (2, 3), reason="Keras before TensorFlow 2.3 has the old layout itself"
)


@pytest.fixture(autouse=True)
def _eager():
    with recorded.eagerly():
        yield


@later_layout
@pytest.mark.parametrize("inner", sorted(OPTIMIZERS))
@pytest.mark.parametrize("version", ["1.15.5", "2.2.3"])
@pytest.mark.parametrize("subject", ORIGINALS + OURS, ids=str)
def test_keras_of_old_layout_restores_whole(subject, version, inner, tmp_path, checkpoint):
    """Unlike the file itself: the real classes restore neither iterations nor learning rate."""
    source, expected = prefix_of(f"{version}/keras_experimental.*/dynamic_{inner}")
    path = str(tmp_path / "ckpt-1")
    status, _, err = checkpoint("convert", source, path, "--to", "keras")
    assert status == 0, err
    training = Training(subject, inner)
    # A program may have changed it before the save, and so only the file knows.
    training.optimizer.learning_rate = 0.5
    root = training.checkpoint()
    restored = root.restore(path)
    state = expected["state_at_save"]
    for wanted, multiplier in zip(expected["trace_after_save"], expected["multipliers_after_save"]):
        training.check(state, STATE, inner)
        training.step(float(multiplier))
        state = dict(wanted)
        if float(multiplier) == np.inf:
            # TensorFlow 2.3 and later count a skipped step as an iteration.
            state["iterations"] += 1
            break
    training.check(state, STATE, inner)
    np.testing.assert_array_equal(training.optimizer.learning_rate.numpy(), 0.125)
    assert int(root.save_counter) == 1  # asked for, so that the checkpoint restores it
    restored.assert_consumed()


@pytest.mark.parametrize("inner", sorted(OPTIMIZERS))
def test_the_copy_has_the_keys_of_the_later_layout(inner, tmp_path, checkpoint):
    source, _ = prefix_of(f"2.2.3/keras_experimental.*/dynamic_{inner}")
    assert checkpoint("convert", source, tmp_path / "new", "--to", "keras")[0] == 0
    _, expected = prefix_of(f"2.4.4/keras_final.LossScaleOptimizer/dynamic_{inner}")
    keys = {name for name, _ in tf.train.list_variables(str(tmp_path / "new"))}
    assert keys == {name for name, _ in expected["checkpoint_keys"]}
    status, out, _ = checkpoint("inspect", tmp_path / "new")
    assert status == 0
    assert "2.3 and later" in out


@pytest.mark.parametrize("form", ["model_dyn_checkpoint", "model_dyn_weights_tf"])
def test_whole_models_of_the_old_layout(form, tmp_path, checkpoint):
    (folder,) = recorded_files.folders("2.2.3/keras_experimental.*/" + form)
    source = os.path.join(folder, recorded_files.facts(folder)["prefix"])
    status, out, err = checkpoint("convert", source, tmp_path / "new", "--to", "keras")
    assert status == 0, err
    assert "base_optimizer" in out
    old, new = map(recorded_files.tensors, (source, tmp_path / "new"))
    assert not [key for key in new if "base_optimizer" in key]
    for key, value in old.items():
        if not key.startswith("_CHECKPOINTABLE"):
            np.testing.assert_array_equal(new[key.replace("base_optimizer/", "")], value)


@pytest.mark.parametrize(
    ("pattern", "to"),
    [
        ("2.15.1/keras_final.LossScaleOptimizer/dynamic_adam", "keras"),
        ("2.15.1/keras_final.LossScaleOptimizer_legacy_inner/dynamic_adam", "keras"),
        ("2.15.1/v1.*/dynamic_adam_eager", "v1"),
        ("2.21.0/keras3.*/dynamic_adam", "keras3"),
    ],
)
def test_what_is_in_place_already_is_copied_whole(pattern, to, tmp_path, checkpoint):
    source, _ = prefix_of(pattern)
    assert checkpoint("convert", source, tmp_path / "new", "--to", to)[0] == 0
    recorded_files.assert_equal(source, tmp_path / "new")


@pytest.mark.parametrize(
    ("pattern", "to", "words"),
    [
        ("2.15.1/keras_final.*/dynamic_momentum", "keras3", "checkpoints.restore("),
        ("2.21.0/keras3.*/dynamic_adam", "keras", "checkpoints.restore("),
        ("2.15.1/v1.*/dynamic_adam_eager", "keras", "initial_scale=16.0"),
        ("2.15.1/v1.*/dynamic_adam_eager", "contrib", "init_loss_scale=16.0"),
        ("2.2.3/keras_experimental.*/dynamic_adam", "v1", "initial_loss_scale=16.0"),
        ("2.15.1/keras_final.*/model_dyn_h5", "keras", "inspect"),
        ("2.21.0/keras3.*/model_keras", "keras", "inspect"),
    ],
)
def test_what_is_refused(pattern, to, words, tmp_path, refused):
    source = recorded_files.file_of(pattern)
    refused(("convert", source, tmp_path / "new", "--to", to), words)
    assert os.listdir(str(tmp_path)) == []


def test_an_inner_optimizer_under_two_names_is_refused(tmp_path, checkpoint):
    """Written here as TensorFlow 2.2 does it: by changing the graph of a file of its."""
    source, _ = prefix_of("2.2.3/keras_experimental.*/dynamic_adam")
    graph = tensorflow_files.Checkpoint(source).object_graph()
    (inner,) = [
        child.node_id
        for node in graph.nodes
        for child in node.children
        if child.local_name == "base_optimizer"
    ]
    graph.nodes[0].children.add(local_name="inner", node_id=inner)
    with pytest.raises(CheckpointError, match="a second time, as inner"):
        plans.merge_inner_optimizers(graph)


def test_saved_models_are_refused(tmp_path, refused):
    (folder,) = recorded_files.folders("2.15.1/*.LossScaleOptimizer/model_dyn_savedmodel")
    model = recorded_files.saved_model(folder, tmp_path)
    refused(("convert", model, tmp_path / "new", "--to", "keras"), "SavedModel")


@pytest.mark.parametrize("to", ["keras", "keras3"])
@pytest.mark.parametrize("option", [["--rename", "a=b"], ["--control-flow", "v1"]])
def test_options_for_names_are_refused(option, to, tmp_path, refused):
    source, _ = prefix_of("2.2.3/keras_experimental.*/dynamic_adam")
    refused(("convert", source, tmp_path / "new", "--to", to, *option), "tf.train.Saver")
