"""`tf-lossscale checkpoint inspect` on every file that the real classes wrote."""

import json
import os
import shutil

import numpy as np
import processes
import pytest
import recorded
import recorded_files
import support
import tensorflow as tf

import tf_lossscale as tfls

tf1 = tf.compat.v1

# What does not keep the state of a dynamic loss scale: Keras 2 in its own formats.
WITHOUT_STATE = ("fixed8", "model_fix", "CrossShard", "dyn_h5", "dyn_keras")
FAMILIES = {
    "contrib.LossScaleOptimizer": ("contrib", "1.15 and earlier"),
    "v1.MixedPrecisionLossScaleOptimizer": ("v1", "1.14 and later"),
    "keras3.LossScaleOptimizer": ("keras3", "2.16 and later"),
    "keras_final.LossScaleOptimizer_legacy_inner": ("keras", "2.3 and later, tf_keras"),
}
OLD_KERAS = ("keras", "1.14 to 2.2")
LEGACY_KERAS = FAMILIES["keras_final.LossScaleOptimizer_legacy_inner"]
NEW_KERAS = ("keras", "2.11 to 2.15, tf_keras")


def family_of(path):
    version, cls = os.path.relpath(path, recorded_files.FIXTURES).split(os.sep)[:2]
    if cls in FAMILIES:
        return FAMILIES[cls]
    if version in ("1.15.5", "2.2.3"):
        return OLD_KERAS
    return LEGACY_KERAS if version in ("2.3.4", "2.4.4") else NEW_KERAS


def folder_of(path):
    while not os.path.exists(os.path.join(path, "expected.json")):
        path = os.path.dirname(path)
    return path


FILES = [
    path for folder in recorded_files.folders("*/*/*") for path in recorded_files.files(folder)
]
SAVED_MODELS = recorded_files.folders("*/*/model_*_savedmodel")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("path", FILES, ids=recorded_files.label)
def test_files_of_the_real_classes(path, checkpoint):
    status, out, err = checkpoint("inspect", path, "--json")
    report = json.loads(out)
    if any(part in path for part in WITHOUT_STATE):
        assert (status, report["states"]) == (1, [])
        return
    assert status == 0, err
    (state,) = report["states"]
    assert (state["family"], state["tensorflow"]) == family_of(path)
    assert state["restored_by"][0].startswith("tf_lossscale.")
    expected = recorded_files.facts(folder_of(path))["state_at_save"]
    expected = recorded_files.same_names(expected)
    got = {variable["role"].replace(" ", "_"): variable["value"] for variable in state["variables"]}
    wanted = {key: expected[key] for key in ("loss_scale", "good_steps", "bad_steps") if key in got}
    assert got == wanted
    assert set(got) == {"loss_scale", "good_steps"} | (
        {"bad_steps"} if state["family"] == "contrib" else set()
    )
    dtypes = {variable["role"]: variable["dtype"] for variable in state["variables"]}
    counters = "int32" if state["family"] == "contrib" else "int64"
    assert dtypes.pop("loss scale") == "float32"
    assert set(dtypes.values()) == {counters}


VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"
IN_OBJECTS = [f"/loss_scale/{name}{VALUE}" for name in ("current_loss_scale", "good_steps")]
IN_NUMBERS = ["optimizer/vars/3", "optimizer/vars/2"]
KEYS = [
    ("1.15.5/contrib*/exponential_sgd_refvars", ["loss_scale", "good_steps", "bad_steps"]),
    ("1.15.5/v1.*/dynamic_sgd_graph", ["current_loss_scale", "good_steps"]),
    ("2.15.1/v1.*/dynamic_adam_eager", IN_OBJECTS),
    ("2.2.3/keras_experimental.*/model_dyn_checkpoint", IN_OBJECTS),
    ("2.15.1/keras_final.LossScaleOptimizer/model_dyn_checkpoint", IN_OBJECTS),
    ("2.21.0/keras3.*/model_checkpoint", [f"/dynamic_scale{VALUE}", f"/step_counter{VALUE}"]),
    ("2.21.0/keras3.*/model_h5", ["/dynamic_scale", "/step_counter"]),
    ("2.21.0/keras3.*/model_keras", IN_NUMBERS),
    ("2.21.0/keras3.*/model_weights_h5", IN_NUMBERS),
]


@pytest.mark.parametrize(("pattern", "keys"), KEYS)
def test_keys_of_loss_scales(pattern, keys, checkpoint):
    _, out, _ = checkpoint("inspect", recorded_files.file_of(pattern), "--json")
    (state,) = json.loads(out)["states"]
    found = [variable["key"] for variable in state["variables"]]
    assert len(found) == len(keys)
    for key, end in zip(found, keys):
        assert key.endswith(end)
        assert key == end or end.startswith("/")


COUNTERS = {"legacy": "SGD/iter", "new": "iteration"}
OF_KERAS_2 = [
    subject for subject in recorded.ours() + recorded.originals() if subject.kind.name in COUNTERS
]


@pytest.mark.parametrize("subject", OF_KERAS_2, ids=str)
def test_names_of_keras_2_in_a_graph(subject):
    with tf.Graph().as_default():
        optimizer = subject.dynamic(subject.inner("SGD", learning_rate=0.125), 64.0, 3)
        variable = tf1.get_variable("v", [2], use_resource=True)
        optimizer.apply_gradients([(tf.ones([2]), variable)])
        found = {variable.op.name for variable in tf1.global_variables()}
    assert {"current_loss_scale", "good_steps"} <= found
    counter = COUNTERS[subject.kind.name]
    assert any(f"/{name}".endswith(f"/{counter}") for name in found)  # 1.15 has it in a scope


LEGACY = [subject for subject in OF_KERAS_2 if subject.kind.name == "legacy"]
MIXED = tfls.compat.v1.mixed_precision.MixedPrecisionLossScaleOptimizer


def owners_of(optimizer, folder, checkpoint, *steps):
    """Returns the classes that `inspect` reports for the loss scale of a saved optimizer."""
    variable = tf.Variable([1.0])
    with recorded.eagerly():
        for gradient in steps:
            optimizer.apply_gradients([(tf.constant([gradient]), variable)])
        path = tf.train.Checkpoint(v=variable, opt=optimizer).save(str(folder / "c"))
    status, out, err = checkpoint("inspect", path, "--json")
    assert status == 0, err
    (state,) = json.loads(out)["states"]
    is_copied = checkpoint("convert", path, folder / "copy", "--to", "keras")[0] == 0
    classes = [name.split(" ")[0].rpartition(".")[2] for name in state["restored_by"]]
    return set(classes), is_copied


@pytest.mark.skipif(recorded.TF < (2, 0), reason="1.15 saves no loss scale that is in a graph")
@pytest.mark.parametrize("subject", LEGACY, ids=str)
def test_keras_2_before_the_first_step(subject, tmp_path, checkpoint):
    """Without the counter `iter`, it has the objects of the class around `tf.train`."""
    made = subject.dynamic(subject.inner("SGD", learning_rate=0.125), 64.0, 3)
    classes, is_copied = owners_of(made, tmp_path, checkpoint)
    assert "LossScaleOptimizer" in classes
    assert is_copied


@pytest.mark.skipif(recorded.TF < (2, 0), reason="1.15 saves no loss scale that is in a graph")
@pytest.mark.parametrize("name", ["GradientDescentOptimizer", "MomentumOptimizer", "AdamOptimizer"])
def test_v1_optimizers_with_slots_are_not_of_keras(name, tmp_path, checkpoint):
    options = {"momentum": 0.5} if name == "MomentumOptimizer" else {}
    made = getattr(tf1.train, name)(0.125, **options)
    optimizer = MIXED(made, tfls.compat.v1.mixed_precision.DynamicLossScale())
    classes, is_copied = owners_of(optimizer, tmp_path, checkpoint, 1.0)
    assert "DynamicLossScale" in classes
    has_slots = name != "GradientDescentOptimizer"
    assert ("LossScaleOptimizer" in classes) != has_slots
    assert is_copied != has_slots


MOMENTS = {"_momentums": 1, "_velocities": 1}
OPTIMIZERS = [
    ("2.2.3/keras_experimental.*/dynamic_adam", "1.14 to 2.2", ["Adam"], {"m": 1, "v": 1}),
    ("2.2.3/keras_experimental.*/model_dyn_checkpoint", "1.14 to 2.2", ["Adam"], {"m": 2, "v": 2}),
    ("2.15.1/keras_final.*_legacy_inner/dynamic_momentum", "legacy", ["SGD"], {"momentum": 1}),
    ("2.15.1/keras_final.*_legacy_inner/dynamic_sgd", "legacy", [], {}),
    (
        "2.15.1/keras_final.LossScaleOptimizer/dynamic_adam",
        "new-style",
        ["Adam", "AdamW", "Nadam", "Lamb", "RMSprop"],  # `build` gives its variables no names
        MOMENTS,
    ),
    ("2.21.0/keras3.*/dynamic_adam", "of Keras 3", ["Adam"], MOMENTS),
]


@pytest.mark.parametrize(("pattern", "written_by", "classes", "slots"), OPTIMIZERS)
def test_optimizers(pattern, written_by, classes, slots, checkpoint):
    path = recorded_files.file_of(pattern)
    _, out, _ = checkpoint("inspect", path, "--json")
    (optimizer,) = json.loads(out)["optimizers"]
    assert written_by in optimizer["written_by"]
    assert (optimizer["classes"], optimizer["slots"]) == (classes, slots)
    assert (
        optimizer["iterations"]
        == recorded_files.facts(folder_of(path))["state_at_save"]["iterations"]
    )
    assert optimizer["hyperparameters"]["learning_rate"] == 0.125
    way = "tf.train.Checkpoint" if "Keras 3" in optimizer["written_by"] else "checkpoints.restore("
    assert way in optimizer["keras3"]
    _, out, _ = checkpoint("inspect", path)
    assert f"on Keras 3: {optimizer['keras3']}" in out


OTHER_OPTIMIZERS = [
    ("1.15.5/contrib*/exponential_adam_refvars", "the name Adam", ["AdamOptimizer"], 7, "names="),
    (
        "1.15.5/contrib*/exponential_momentum_refvars",
        "the name Momentum",
        ["MomentumOptimizer"],
        7,
        "sums of gradients",
    ),
    ("2.4.4/v1.*/dynamic_adam_eager", "tf.train", [], None, "tf.compat.v1.train"),
    ("2.3.4/keras_experimental.*/model_dyn_h5", "tf.keras", ["Adam"], 5, "checkpoints.restore("),
    ("2.15.1/keras_final.LossScaleOptimizer/model_dyn_h5", "tf.keras", ["Adam"], 5, "restore("),
    (
        "2.15.1/keras_final.LossScaleOptimizer/model_dyn_keras",
        "tf.keras 2.15.0",
        ["Adam"],
        5,
        "TF_USE_LEGACY_KERAS",
    ),
    ("2.21.0/keras3.*/model_keras", "of Keras 3", ["Adam"], 4, "load_model("),
    ("2.21.0/keras3.*/model_h5", "of Keras 3", ["Adam"], 4, "where tf_lossscale is imported"),
    ("2.21.0/keras3.*/model_weights_h5", "of Keras 3, or", [], 4, "load_weights("),
]


@pytest.mark.parametrize(
    ("pattern", "written_by", "classes", "iterations", "way"), OTHER_OPTIMIZERS
)
def test_optimizers_of_other_files(pattern, written_by, classes, iterations, way, checkpoint):
    path = recorded_files.file_of(pattern)
    _, out, _ = checkpoint("inspect", path, "--json")
    (optimizer,) = json.loads(out)["optimizers"]
    assert written_by in optimizer["written_by"]
    assert (optimizer["classes"], optimizer["iterations"]) == (classes, iterations)
    assert way in optimizer["keras3"]
    assert optimizer["slots"]
    _, out, _ = checkpoint("inspect", path)
    assert f"on Keras 3: {optimizer['keras3']}" in out


def test_two_optimizers_and_averages_of_weights_in_a_graph(tmp_path, checkpoint):
    """Only Adam has powers of beta, and `ExponentialMovingAverage` is no optimizer."""
    with tf.Graph().as_default(), tf1.Session() as session:
        variables = [tf1.get_variable(name, [2], use_resource=True) for name in "vw"]
        inners = [tf1.train.AdamOptimizer(0.5), tf1.train.RMSPropOptimizer(0.5)]
        for variable, inner in zip(variables, inners):
            inner.apply_gradients([(tf.ones([2]), variable)])
        tf.train.ExponentialMovingAverage(0.5).apply(variables)
        session.run(tf1.global_variables_initializer())
        path = tf1.train.Saver().save(session, str(tmp_path / "model"))
    _, out, _ = checkpoint("inspect", path, "--json")
    adam, rmsprop = json.loads(out)["optimizers"]
    assert (adam["classes"], rmsprop["classes"]) == (["AdamOptimizer"], ["RMSPropOptimizer"])
    assert set(adam["hyperparameters"]) == {"beta1_power", "beta2_power"}
    assert rmsprop["hyperparameters"] == {}


@pytest.mark.parametrize("folder", SAVED_MODELS, ids=recorded_files.label)
def test_saved_models(folder, tmp_path, checkpoint):
    dynamic = "model_dyn" in folder
    status, out, _ = checkpoint("inspect", recorded_files.saved_model(folder, tmp_path))
    assert status == (0 if dynamic else 1)
    assert "SavedModel" in out
    if dynamic:
        assert "32.0" in out


@pytest.mark.parametrize(
    ("pattern", "settings"),
    [
        ("2.2.3/keras_experimental.*/model_dyn_h5", (True, 64.0)),
        ("2.2.3/keras_experimental.*/model_fix_h5", (False, 8.0)),
        ("2.15.1/keras_final.LossScaleOptimizer/model_dyn_keras", (True, 64.0)),
        ("2.21.0/keras_final.LossScaleOptimizer_legacy_inner/model_fix_keras", (False, 8.0)),
    ],
)
def test_models_that_only_describe_their_optimizer(pattern, settings, checkpoint):
    path = recorded_files.file_of(pattern)
    status, out, _ = checkpoint("inspect", path, "--json")
    (configured,) = json.loads(out)["configured"]
    got = configured["settings"]
    assert (status, (got["dynamic"], got["initial_scale"])) == (1, settings)
    assert ("starts again" in configured["note"]) == settings[0]
    assert ("no state" in configured["note"]) == (not settings[0])
    _, out, _ = checkpoint("inspect", path)
    assert configured["class_name"] in out


def test_checkpoints_of_our_contrib_classes(tmp_path, checkpoint, refused):
    """The originals do not support `tf.train.Checkpoint`; our classes have a layout for it."""
    with tf.Graph().as_default(), tf1.Session() as session:
        optimizer, _ = support.contrib_optimizer(support.sgd(), 64.0, 3)
        session.run(tf1.global_variables_initializer())
        root = tf1.train.Checkpoint(opt=optimizer)
        path = root.save(str(tmp_path / "ckpt"), session=session)
    status, out, err = checkpoint("inspect", path, "--json")
    assert status == 0, err
    (state,) = json.loads(out)["states"]
    assert (state["family"], state["variables"][0]["value"]) == ("contrib", 64.0)
    refused(("convert", path, tmp_path / "new", "--to", "v1"), "64.0")


KERAS_3 = [kind for kind in recorded.kinds() if kind.name == "keras3"]


@pytest.mark.skipif(not KERAS_3, reason="Keras 3 is not installed")
@pytest.mark.parametrize("name", ["model.keras", "model.h5", "model.weights.h5", "ckpt"])
def test_files_of_our_keras_3_class(name, tmp_path, checkpoint):
    keras = KERAS_3[0].keras
    model = keras.Sequential([keras.layers.Dense(1, input_shape=(2,))])
    optimizer = tfls.keras.mixed_precision.LossScaleOptimizer(
        keras.optimizers.Adam(), initial_scale=64.0
    )
    model.compile(optimizer, "mse")
    optimizer.build(model.trainable_variables)
    optimizer.step_counter.assign(5)
    path = str(tmp_path / name)
    if name == "ckpt":
        path = tf.train.Checkpoint(model=model, optimizer=optimizer).save(path)
    elif "weights" in name:
        model.save_weights(path)
    else:
        model.save(path)
    status, out, err = checkpoint("inspect", path, "--json")
    assert status == 0, out + err
    (state,) = json.loads(out)["states"]
    assert state["family"] == "keras3"
    assert [variable["value"] for variable in state["variables"]] == [64.0, 5]


@pytest.mark.skipif(not KERAS_3, reason="Keras 3 is not installed")
@pytest.mark.parametrize("is_wrapped", [False, True])
def test_slots_in_an_h5_file_of_keras_3(is_wrapped, tmp_path, checkpoint):
    """Of a plain optimizer, Keras 3 itself restores nothing from such a file."""
    keras = KERAS_3[0].keras
    model = keras.Sequential([keras.layers.Dense(2, input_shape=(2,)), keras.layers.Dense(1)])
    optimizer = keras.optimizers.Adam()
    if is_wrapped:
        optimizer = tfls.keras.mixed_precision.LossScaleOptimizer(optimizer)
    model.compile(optimizer, "mse")
    optimizer.build(model.trainable_variables)
    path = str(tmp_path / "model.h5")
    model.save(path)
    status, out, _ = checkpoint("inspect", path, "--json")
    assert status == (0 if is_wrapped else 1)
    (found,) = json.loads(out)["optimizers"]
    assert found["slots"] == {"momentum": 4, "velocity": 4}
    assert ("nothing of it" in found["keras3"]) == (not is_wrapped)


def test_the_text_names_value_type_writer_and_reader(checkpoint):
    path = recorded_files.file_of("1.15.5/contrib*/exponential_adam_*")
    _, out, _ = checkpoint("inspect", path)
    lines = [line.split() for line in out.splitlines()]
    assert ["loss_scale", "loss", "scale", "float32", "96.0"] in lines
    assert ["bad_steps", "bad", "steps", "int32", "1"] in lines
    assert "tf.contrib.mixed_precision" in out
    assert "tf_lossscale.contrib.mixed_precision.ExponentialUpdateLossScaleManager" in out


CONTRIB = "1.15.5/contrib.LossScaleOptimizer/exponential_sgd_refvars"


@pytest.fixture
def saved(tmp_path):
    """A directory with a copy of a contrib checkpoint, without bookkeeping."""
    folder = recorded_files.folders(CONTRIB)[0]
    shutil.copytree(os.path.join(folder, "saver"), str(tmp_path / "logs"))
    return tmp_path / "logs"


def test_a_directory_means_its_latest_checkpoint(saved, checkpoint, refused):
    assert checkpoint("inspect", saved)[0] == 0  # the only one
    for suffix in (".index", ".data-00000-of-00001"):
        shutil.copy(str(saved / ("model" + suffix)), str(saved / ("other" + suffix)))
    refused(("inspect", saved), "model", "other")
    (saved / "checkpoint").write_text('model_checkpoint_path: "other"\n')
    status, out, _ = checkpoint("inspect", saved)
    assert status == 0
    assert out.startswith(str(saved / "other"))
    # A directory that was moved: the old path is of no use, the name is.
    (saved / "checkpoint").write_text('model_checkpoint_path: "/old/place/model"\n')
    assert checkpoint("inspect", saved)[1].startswith(str(saved / "model"))
    (saved / "checkpoint").write_text('model_checkpoint_path: "gone"\n')
    refused(("inspect", saved), "gone")


@pytest.mark.parametrize("suffix", [".index", ".data-00000-of-00001"])
def test_one_file_of_a_checkpoint_means_all_of_it(saved, suffix, checkpoint):
    status, out, _ = checkpoint("inspect", str(saved / "model") + suffix)
    assert status == 0
    assert out.splitlines()[0] == str(saved / "model")


def test_other_variables_of_these_names_are_not_taken_for_it(tmp_path, checkpoint):
    values = {
        "loss_scale": np.ones([3], np.float32),  # no scalar
        "good_steps": np.int32(1),
        "layer/current_loss_scale": np.int32(1),  # no float
        "dynamic_scale_kernel": np.float32(1),
    }
    status, out, _ = checkpoint("inspect", recorded_files.save(tmp_path / "model", values))
    assert status == 1
    assert "No loss-scale state" in out


def test_a_loss_scale_of_no_known_class(tmp_path, checkpoint, refused):
    values = {"amp/loss_scale": np.float32("inf"), "amp/since": np.int32(1)}
    path = recorded_files.save(tmp_path / "model", values)
    status, out, _ = checkpoint("inspect", path, "--json")
    (state,) = json.loads(out)["states"]
    assert (status, state["family"], state["restored_by"]) == (0, None, [])
    assert state["variables"][0]["value"] == "inf"
    refused(("convert", path, tmp_path / "new", "--to", "v1"), "amp/loss_scale")


def test_an_optimizer_without_slots_is_known_by_its_counter(tmp_path, checkpoint):
    values = {"dense/kernel": np.zeros([2], np.float32), "training/SGD/iter": np.int64(5)}
    _, out, _ = checkpoint("inspect", recorded_files.save(tmp_path / "model", values), "--json")
    (optimizer,) = json.loads(out)["optimizers"]
    assert (optimizer["classes"], optimizer["iterations"], optimizer["slots"]) == (["SGD"], 5, {})


def test_several_loss_scales(tmp_path, checkpoint):
    values = {
        "current_loss_scale": np.float32(1),
        "good_steps": np.int64(1),
        "current_loss_scale_1": np.float32(2),
        "good_steps_1": np.int64(2),
        **{"d/" + name: value for name, value in recorded_files.CONTRIB_STATE.items()},
    }
    path = recorded_files.save(tmp_path / "model", values)
    _, out, _ = checkpoint("inspect", path, "--json")
    states = json.loads(out)["states"]
    assert sorted((s["family"], s["variables"][0]["value"]) for s in states) == [
        ("contrib", 8.0),
        ("v1", 1.0),
        ("v1", 2.0),
    ]


@pytest.mark.parametrize(
    "content", [None, b"hello", b"PK\x03\x04 and no more", b"\x89HDF\r\n\x1a\n and no more"]
)
def test_unreadable_files_are_reported(content, tmp_path, refused):
    path = tmp_path / "file"
    if content is not None:
        path.write_bytes(content)
    refused(("inspect", path))
    (tmp_path / "folder").mkdir()
    refused(("inspect", tmp_path / "folder"))


def test_unreadable_parts_of_a_checkpoint_are_reported(saved, refused):
    data = saved / "model.data-00000-of-00001"
    data.write_bytes(data.read_bytes() + b"more")  # as of a later file that was half copied
    refused(("inspect", saved / "model"), "larger than its index describes")
    data.unlink()
    refused(("inspect", saved / "model"))
    (saved / "model.index").write_bytes(b"no index")
    refused(("inspect", saved / "model"))


def test_wrong_usage(checkpoint):
    assert checkpoint()[0] == 2
    assert checkpoint("inspect")[0] == 2
    assert checkpoint("explode", "x")[0] == 2
    assert checkpoint("convert", "a", "b", "--to", "jax")[0] == 2
    assert checkpoint("convert", "a", "b", "--to", "v1", "--rename", "x")[0] == 2
    for arguments in (["--help"], ["inspect", "--help"], ["convert", "--help"]):
        assert checkpoint(*arguments)[0] == 0


def test_tensorflow_stays_in_the_child_process(tmp_path):
    """The command then prints none of its log lines, and what crashes there is one line."""
    old = recorded_files.file_of("2.2.3/keras_experimental.*/dynamic_adam")
    script = (
        "import sys\n"
        "from tf_lossscale._cli.main import main\n"
        "main(['--help']); main(['checkpoint', 'convert', '--help'])\n"
        f"new = {str(tmp_path / 'new')!r}\n"
        f"assert main(['checkpoint', 'convert', {old!r}, new, '--to', 'keras']) == 0\n"
        "assert not [name for name in sys.modules if name.startswith(('tensorflow', 'keras'))]\n"
    )
    done = processes.run_python("-c", script)
    assert (done.returncode, done.stderr) == (0, "")
    assert "checkpoint inspect|convert" in done.stdout
