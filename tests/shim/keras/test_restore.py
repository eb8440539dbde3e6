"""`tfls.checkpoints.restore` continues runs of Keras 2 on Keras 3, and runs of Keras 3 on Keras 2.

The oracle is the run that was not interrupted.
"""

import glob
import os
from typing import Any, Callable, List

import half_trained
import numpy as np
import pytest
import recorded
import tensorflow as tf
from half_trained import OPTIMIZERS

import tf_lossscale as tfls
from tf_lossscale._restore.optimizers import ProgramOptimizer

OURS = tfls.keras.mixed_precision.LossScaleOptimizer
KINDS = {kind.name: kind for kind in recorded.kinds()}
ORIGINALS = {kind.name for kind in recorded.kinds() if kind.name != "keras3"}
FACTORS = (1.0, 2.0, float("inf"), 1.0, 0.5, 1.0)
RANDOM = np.random.RandomState(7)
INPUTS = RANDOM.normal(size=(10, 8, 4)).astype(np.float32)
TARGETS = RANDOM.normal(size=(10, 8, 1)).astype(np.float32)


def keras_of(kind: str) -> Any:
    if kind == "keras3":
        return __import__("keras")
    return __import__("tf_keras") if "keras3" in KINDS else tf.keras


MODELS = dict(half_trained.MODELS)
if not hasattr(keras_of(sorted(KINDS)[0]).layers, "MultiHeadAttention"):  # before TensorFlow 2.4
    del MODELS["attention"]


def optimizer_of(kind: str, name: str = "Adam", rate: float = 0.01, **options: Any) -> Any:
    inner = getattr(KINDS[kind].optimizers, name)(learning_rate=rate, **options)
    return OURS(inner, initial_scale=64.0, dynamic_growth_steps=3)


def step(model: Any, optimizer: Any, number: int):
    factor = FACTORS[number % len(FACTORS)]
    half_trained.step_on(model, optimizer, INPUTS[number], TARGETS[number], factor)


def begun(kind: str, model: str, name: str = "Adam", **options: Any) -> Any:
    """Returns a model and an optimizer after some steps."""
    made = MODELS[model](keras_of(kind))
    made(INPUTS[0])
    optimizer = optimizer_of(kind, name, **options)
    for number in range(4):
        step(made, optimizer, number)
    return made, optimizer


def fresh(kind: str, model: str, name: str = "Adam", **options: Any) -> Any:
    made = MODELS[model](keras_of(kind))
    made(INPUTS[0])
    return made, optimizer_of(kind, name, rate=0.5, **options)


def weights(model: Any) -> List[Any]:
    return [weight.numpy() for weight in model.weights]


def assert_the_same_run(first: Any, second: Any, with_scale: bool = True):
    """Takes more steps of both runs, and compares them."""
    assert int(first[1].iterations.numpy()) == int(second[1].iterations.numpy())
    if with_scale:
        assert float(first[1].loss_scale) == float(second[1].loss_scale)
    for number in range(4, 10):
        step(*first, number)
        step(*second, number)
    for left, right in zip(weights(first[0]), weights(second[0])):
        np.testing.assert_allclose(left, right, rtol=1e-4, atol=1e-5)
    if with_scale:
        assert float(first[1].loss_scale) == float(second[1].loss_scale)


PAIRS = [
    (written, read)
    for written in sorted(KINDS)
    for read in sorted(KINDS)
    if "keras3" not in KINDS or "keras3" in (written, read)
]


@pytest.mark.sampled(8)
@pytest.mark.parametrize("model", sorted(MODELS))
@pytest.mark.parametrize(("written", "read"), PAIRS)
def test_every_model_goes_on(written: str, read: str, model: str, tmp_path: Any):
    original = begun(written, model)
    checkpoint = tf.train.Checkpoint(model=original[0], optimizer=original[1])
    tf.train.CheckpointManager(checkpoint, str(tmp_path), 2).save()
    resumed = fresh(read, model)
    report = tfls.checkpoints.restore(tmp_path, *resumed)
    assert not report.initial
    assert not report.unused
    assert_the_same_run(original, resumed)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", sorted(OPTIMIZERS))
@pytest.mark.parametrize(("written", "read"), PAIRS)
def test_every_optimizer_goes_on(written: str, read: str, name: str, tmp_path: Any):
    original = begun(written, "functional", name, **OPTIMIZERS[name])
    path = tf.train.Checkpoint(net=original[0], opt=original[1]).save(str(tmp_path / "c"))
    resumed = fresh(read, "functional", name, **OPTIMIZERS[name])
    tfls.checkpoints.restore(path, *resumed)
    assert_the_same_run(original, resumed)


WITH_KERAS_2 = pytest.mark.skipif(not ORIGINALS, reason="there is no Keras 2")


@pytest.mark.sampled(5)
@WITH_KERAS_2
@pytest.mark.parametrize("name", sorted(OPTIMIZERS))
@pytest.mark.parametrize("written", sorted(ORIGINALS))
@pytest.mark.filterwarnings("ignore:You are saving your model as an HDF5 file")
def test_hdf5_files_have_all_but_the_scale(written: str, name: str, tmp_path: Any):
    """The loss scale of Keras 2 is not in the file, and the printed line says so."""
    original = begun(written, "functional", name, **OPTIMIZERS[name])
    original[0].compile(optimizer=original[1], loss="mse")
    path = str(tmp_path / "model.h5")
    original[0].save(path)
    resumed = fresh(
        "keras3" if "keras3" in KINDS else written, "functional", name, **OPTIMIZERS[name]
    )
    report = tfls.checkpoints.restore(path, *resumed)
    assert [entry.in_program for entry in report.initial] == ["loss scale", "good steps"]
    assert "no loss scale" in str(report)
    assert float(resumed[1].loss_scale) == 64.0
    assert_the_same_run(original, resumed, with_scale=False)


@pytest.mark.sampled(5)
@WITH_KERAS_2
@pytest.mark.parametrize("model", sorted(MODELS))
@pytest.mark.parametrize("name", ["weights", "weights.h5"])
def test_files_of_save_weights(model: str, name: str, tmp_path: Any):
    written = sorted(ORIGINALS)[0]
    original = begun(written, model)
    path = str(tmp_path / name)
    original[0].save_weights(path)
    resumed, _ = fresh("keras3" if "keras3" in KINDS else written, model)
    tfls.checkpoints.restore(path, resumed)
    for left, right in zip(weights(original[0]), weights(resumed)):
        np.testing.assert_array_equal(left, right)


# Nothing is half restored.


def saved(tmp_path: Any) -> str:
    original = begun(sorted(KINDS)[-1], "functional")
    checkpoint = tf.train.Checkpoint(model=original[0], optimizer=original[1])
    return str(checkpoint.save(str(tmp_path / "c")))


def assert_refused(path: str, message: str, model: str = "functional", **options: Any):
    resumed, optimizer = fresh(sorted(KINDS)[0], model, **options)
    before = weights(resumed)
    with pytest.raises(tfls.checkpoints.RestoreError, match=message):
        tfls.checkpoints.restore(path, resumed, optimizer)
    for left, right in zip(before, weights(resumed)):
        np.testing.assert_array_equal(left, right)
    assert not ProgramOptimizer(optimizer).has_slots
    assert int(optimizer.iterations.numpy()) == 0
    assert float(optimizer.loss_scale) == 64.0


def test_a_wrong_model_is_an_error(tmp_path: Any):
    assert_refused(saved(tmp_path), "nothing was restored", model="recurrent")


def test_another_optimizer_is_an_error(tmp_path: Any):
    assert_refused(saved(tmp_path), "nothing was restored", name="Adagrad")


def test_no_path_is_an_error():
    """A manager has none before the first checkpoint. TensorFlow's own `restore` accepts it."""
    tf.train.Checkpoint().restore(None)
    with pytest.raises(tfls.checkpoints.RestoreError, match="found no checkpoint"):
        tfls.checkpoints.restore(None)  # type: ignore[arg-type]  # what a manager gives


def test_missing_files_are_an_error(tmp_path: Any):
    assert_refused(str(tmp_path / "missing"), "no checkpoint")


@pytest.mark.skipif("keras3" not in KINDS, reason="needs Keras 3")
@pytest.mark.parametrize("ending", [".weights.h5", ".keras", ".h5"])
@pytest.mark.filterwarnings("ignore:Skipping variable loading for optimizer")
def test_files_of_keras_3_are_left_to_keras_3(ending: str, tmp_path: Any):
    """The line in the error restores the optimizer, too."""
    keras, path = keras_of("keras3"), str(tmp_path / ("model" + ending))
    original = begun("keras3", "functional")
    original[0].compile(original[1], loss="mse")
    is_of_weights = ending == ".weights.h5"
    (original[0].save_weights if is_of_weights else original[0].save)(path)
    message = r"model.load_weights\(" if is_of_weights else r"with .* keras.models.load_model\("
    assert_refused(path, message)
    with pytest.raises(tfls.checkpoints.RestoreError, match=message):
        tfls.checkpoints.restore(path, fresh("keras3", "functional")[0], partial=True)
    if ending == ".keras":
        resumed = keras.models.load_model(path)
    elif ending == ".h5":
        resumed = keras.models.load_model(path, custom_objects={"mse": "mse"})
    else:
        resumed, optimizer = fresh("keras3", "functional")
        resumed.compile(optimizer, loss="mse")
        resumed.optimizer.build(resumed.trainable_variables)
        resumed.load_weights(path)
    assert_the_same_run(original, (resumed, resumed.optimizer))


@pytest.mark.skipif("keras3" not in KINDS, reason="needs Keras 3")
def test_of_an_h5_file_without_a_loss_scale_keras_3_restores_the_weights(tmp_path: Any):
    """Keras 3 builds a plain optimizer for no variables when it loads such a file."""
    path = str(tmp_path / "model.h5")
    original = MODELS["sequential"](keras_of("keras3"))
    original(INPUTS[0])
    original.compile(KINDS["keras3"].optimizers.SGD(0.5, momentum=0.5), loss="mse")
    original.fit(INPUTS[0], TARGETS[0], verbose=0)
    original.save(path)
    resumed, _ = fresh("keras3", "sequential")
    with pytest.raises(tfls.checkpoints.RestoreError, match="only the weights in it"):
        tfls.checkpoints.restore(path, resumed, partial=True)
    resumed.load_weights(path)
    for left, right in zip(weights(original), weights(resumed)):
        np.testing.assert_array_equal(left, right)


@pytest.mark.skipif(not {"new", "keras3"} <= set(KINDS), reason="needs both Kerases")
@pytest.mark.filterwarnings("ignore:Skipping variable loading for optimizer")
def test_weights_h5_files_of_keras_2_lose_the_optimizer_on_keras_3(tmp_path: Any):
    path = str(tmp_path / "model.weights.h5")
    model, optimizer = begun("new", "functional")
    model.compile(optimizer, loss="mse")
    model.save_weights(path)
    assert_refused(
        path, "With another Keras, the optimizer would start again, .* save a checkpoint"
    )
    resumed, optimizer = fresh("keras3", "functional")
    resumed.compile(optimizer, loss="mse")
    resumed.optimizer.build(resumed.trainable_variables)
    resumed.load_weights(path)
    assert int(resumed.optimizer.iterations) == 0


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.filterwarnings("ignore:`build\\(\\)` was called on layer")
def test_a_model_without_variables_shows_what_creates_them(kind: str, tmp_path: Any):
    layers = keras_of(kind).layers

    class Model(keras_of(kind).Model):  # type: ignore[misc]  # untyped base
        def __init__(self):
            super().__init__()
            self.dense = layers.Dense(1)

        def call(self, inputs: Any) -> Any:
            return self.dense(inputs)

    original, resumed = Model(), Model()
    original(INPUTS[0])
    path = tf.train.Checkpoint(model=original).save(str(tmp_path / "c"))
    with pytest.raises(tfls.checkpoints.RestoreError, match="Call it on a batch, or build it"):
        tfls.checkpoints.restore(path, resumed)
    resumed.build((None, 4))
    if kind == "keras3":
        message = r"build\(\) of Keras 3 does not create .* Call it on a batch before restore"
        with pytest.raises(tfls.checkpoints.RestoreError, match=message):
            tfls.checkpoints.restore(path, resumed)
        resumed(INPUTS[0])
    tfls.checkpoints.restore(path, resumed)
    np.testing.assert_array_equal(weights(original)[0], weights(resumed)[0])


def test_files_of_the_saver_are_an_error(tmp_path: Any):
    path = str(tmp_path / "model")
    tf.raw_ops.SaveV2(
        prefix=path, tensor_names=["kernel"], shape_and_slices=[""], tensors=[tf.ones([4, 4])]
    )
    assert_refused(path, "tf.train.Saver")


@pytest.mark.parametrize("kept", [0, 0.5, 0.99])
def test_truncated_files_are_an_error(tmp_path: Any, kept: float):
    path = saved(tmp_path)
    for file in glob.glob(path + ".data*"):
        with open(file, "r+b") as opened:
            opened.truncate(int(os.path.getsize(file) * kept))
    assert_refused(path, "damaged|cannot be read")


def test_a_changed_byte_is_an_error(tmp_path: Any):
    path = saved(tmp_path)
    (file,) = glob.glob(path + ".data*")
    with open(file, "r+b") as opened:
        opened.seek(40)
        byte = opened.read(1)
        opened.seek(40)
        opened.write(bytes([byte[0] ^ 1]))
    assert_refused(path, "damaged|cannot be read")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("written", sorted(KINDS))
def test_an_error_while_assigning_undoes_what_was_assigned(
    written: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
):
    """The loss scale comes last, after weights, slots and hyperparameters."""
    original = begun(written, "functional", beta_1=0.75)
    checkpoint = tf.train.Checkpoint(model=original[0], optimizer=original[1])
    path = checkpoint.save(str(tmp_path / "c"))
    resumed, optimizer = fresh(sorted(KINDS)[0], "functional")

    def values() -> List[Any]:
        inner = optimizer.inner_optimizer
        rate, beta = inner.learning_rate, inner.beta_1
        return [*weights(resumed), recorded.number(rate), recorded.number(beta)]

    def fail(value: Any):
        raise MemoryError

    before = values()
    scale, _ = ProgramOptimizer(optimizer).scale()
    with monkeypatch.context() as patched:
        patched.setattr(scale, "assign", fail)
        with pytest.raises(MemoryError):
            tfls.checkpoints.restore(path, resumed, optimizer)
    for left, right in zip(before, values()):
        np.testing.assert_array_equal(left, right)
    tfls.checkpoints.restore(path, resumed, optimizer)
    assert values()[-2] == recorded.number(original[1].inner_optimizer.learning_rate)


def test_left_over_values_need_partial(tmp_path: Any):
    path = saved(tmp_path)
    kind = sorted(KINDS)[0]
    resumed, optimizer = fresh(kind, "functional")
    with pytest.raises(tfls.checkpoints.RestoreError, match="or partial=True"):
        tfls.checkpoints.restore(path, resumed)
    report = tfls.checkpoints.restore(path, resumed, partial=True)
    assert report.unused
    assert not report.initial
    tfls.checkpoints.restore(path, resumed, optimizer)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_fixed_scale_is_not_restored(kind: str, tmp_path: Any):
    resumed, optimizer = fresh(kind, "functional")
    fixed = OURS(type(optimizer.inner_optimizer)(0.5), dynamic=False, initial_scale=8.0)
    report = tfls.checkpoints.restore(saved(tmp_path), resumed, fixed, partial=True)
    restored = {entry.in_program for entry in report.restored}
    assert "iterations" in restored
    assert not restored & {"loss scale", "good steps"}
    assert float(fixed.loss_scale) == 8.0


def test_two_models_are_given_by_their_names(tmp_path: Any):
    kinds = sorted(KINDS)
    first, second = begun(kinds[-1], "sequential"), begun(kinds[-1], "sequential")
    path = tf.train.Checkpoint(
        a=first[0], b=second[0], a_optimizer=first[1], b_optimizer=second[1]
    ).save(str(tmp_path / "c"))
    a, b = fresh(kinds[0], "sequential"), fresh(kinds[0], "sequential")
    with pytest.raises(tfls.checkpoints.RestoreError, match="several objects"):
        tfls.checkpoints.restore(path, a[0])
    tfls.checkpoints.restore(
        path, {"a": a[0], "b": b[0]}, {"a_optimizer": a[1], "b_optimizer": b[1]}
    )
    assert_the_same_run(first, a)
    assert_the_same_run(second, b)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("written", "read"), PAIRS)
def test_a_checkpoint_gives_models_optimizers_and_counters(written: str, read: str, tmp_path: Any):
    original = begun(written, "sequential")
    saved = tf.train.Checkpoint(step=tf.Variable(4), net=original[0], opt=original[1])
    saved.save(str(tmp_path / "c"))
    path = saved.save(str(tmp_path / "c"))
    resumed = fresh(read, "sequential")
    step = tf.Variable(0)
    parts = {"step": step, "net": resumed[0], "opt": resumed[1]}
    if not tf.__version__.startswith("1."):
        parts["others"] = []  # which TensorFlow 1.15 refuses
    checkpoint = tf.train.Checkpoint(**parts)
    report = tfls.checkpoints.restore(path, checkpoint)
    assert not report.initial
    assert int(step.numpy()) == 4
    assert int(checkpoint.save_counter.numpy()) == 2
    assert "count of saves" not in str(report)
    assert_the_same_run(original, resumed)
    tfls.checkpoints.restore(checkpoint.save(str(tmp_path / "c")), checkpoint)
    left = {"step": step, "net": resumed[0]}
    assert "count of saves" in str(tfls.checkpoints.restore(path, left, {"opt": resumed[1]}))


@pytest.mark.skipif(recorded.TF < (2, 2), reason="`compile` of 1.15 makes another optimizer")
def test_a_compiled_model_has_its_optimizer(tmp_path: Any):
    kinds = sorted(KINDS)
    original = begun(kinds[-1], "sequential")
    checkpoint = tf.train.Checkpoint(model=original[0], optimizer=original[1])
    path = checkpoint.save(str(tmp_path / "c"))
    resumed, optimizer = fresh(kinds[0], "sequential")
    resumed.compile(optimizer, "mse")
    tfls.checkpoints.restore(path, resumed)
    assert_the_same_run(original, (resumed, optimizer))


def test_one_line_is_printed(tmp_path: Any, capsys: pytest.CaptureFixture):
    path, resumed = saved(tmp_path), fresh(sorted(KINDS)[0], "functional")
    capsys.readouterr()
    report = tfls.checkpoints.restore(path, *resumed)
    out, err = capsys.readouterr()
    assert (out + err).strip() == str(report)
    assert (out + err).count("\n") == 1


@pytest.mark.parametrize("is_passed", [False, True])
def test_a_manager_without_the_count_of_saves_replaces_the_first_file(
    is_passed: bool, tmp_path: Any
):
    """The note of the report, `count of saves`, is tested above."""
    folder = str(tmp_path / "run")
    original = begun(sorted(KINDS)[-1], "sequential")
    checkpoint = tf.train.Checkpoint(model=original[0], optimizer=original[1])
    tf.train.CheckpointManager(checkpoint, folder, 3).save()
    resumed = fresh(sorted(KINDS)[0], "sequential")
    checkpoint = tf.train.Checkpoint(model=resumed[0], optimizer=resumed[1])
    tfls.checkpoints.restore(folder, *([checkpoint] if is_passed else resumed))
    path = tf.train.CheckpointManager(checkpoint, folder, 3).save()
    assert os.path.basename(path) == ("ckpt-2" if is_passed else "ckpt-1")


def test_only_a_class_without_a_configuration_is_built_by_a_failed_restore(tmp_path: Any):
    """`from_config` makes the copy that is built to see what fits."""
    path, kind = saved(tmp_path), sorted(KINDS)[0]

    class Own(KINDS[kind].optimizers.Adam):  # type: ignore[misc]  # untyped base
        def get_config(self) -> Any:
            raise NotImplementedError

    built = []
    for cls in (KINDS[kind].optimizers.Adam, Own):
        model = MODELS["functional"](keras_of(kind))
        model(INPUTS[0])
        optimizer = OURS(cls(0.5, amsgrad=True))
        with pytest.raises(tfls.checkpoints.RestoreError, match="no value for vhat"):
            tfls.checkpoints.restore(path, model, optimizer)
        built.append(ProgramOptimizer(optimizer).has_slots)
    assert built == [False, True]


# Nothing is restored into another variable.


def two_layers(keras: Any, names: List[Any]) -> Any:
    """A model whose second layer is called after the first one, and has its shape."""
    layers, inputs = keras.layers, keras.layers.Input((4,))
    made = [layers.Dense(4, **({} if name is None else {"name": name})) for name in names]
    return keras.Model(inputs, made[1](made[0](inputs)))


@pytest.mark.parametrize(
    ("in_file", "in_program", "order"),
    [
        (["a", "b"], ["b", "a"], [1, 0]),  # all names fit
        ([None, None], [None, None], [0, 1]),  # of Keras: `dense` and `dense_1`, then others
        (["a", "b"], ["a", "c"], [0, 1]),  # only one name fits
    ],
)
@pytest.mark.parametrize(("written", "read"), PAIRS)
def test_layers_are_found_by_their_names_or_else_by_their_order(
    written: str, read: str, in_file: Any, in_program: Any, order: List[int], tmp_path: Any
):
    original = two_layers(keras_of(written), in_file)
    fill(original.weights)
    path = tf.train.Checkpoint(model=original).save(str(tmp_path / "c"))
    keras_of(read).layers.Dense(1)
    resumed = two_layers(keras_of(read), in_program)
    tfls.checkpoints.restore(path, resumed)
    kernels = [[weight.numpy() for weight in model.weights[::2]] for model in (original, resumed)]
    for found, number in zip(kernels[1], order):
        np.testing.assert_array_equal(found, kernels[0][number])


class Shaped(tf.Module):  # type: ignore[misc]  # untyped base
    """Variables of one name, in an order that is not the one of their names."""

    def __init__(self) -> None:
        super().__init__()
        self.second = tf.Variable(tf.ones([2]))
        self.first = tf.Variable(tf.ones([3]))


@pytest.mark.skipif("new" not in KINDS, reason="there are no new-style optimizers")
@pytest.mark.parametrize("has_model", [True, False])
def test_an_order_that_the_file_shows_needs_no_build(has_model: bool, tmp_path: Any):
    """The file names the variables, or, if it has the optimizer alone, the shapes show them."""

    def step_of(module: Shaped, optimizer: Any):
        trained = [module.second, module.first]
        gradients = [(tf.ones_like(variable) * 0.5, variable) for variable in trained]
        optimizer.apply_gradients(gradients)

    kind = sorted(KINDS)[0]
    original, resumed = (Shaped(), optimizer_of("new")), (Shaped(), optimizer_of(kind, rate=0.5))
    step_of(*original)
    objects = {"model": original[0]} if has_model else {}
    path = tf.train.Checkpoint(optimizer=original[1], **objects).save(str(tmp_path / "c"))
    if not has_model:
        for left, right in zip(resumed[0].variables, original[0].variables):
            left.assign(right)
    tfls.checkpoints.restore(path, *resumed, partial=not has_model)
    trained = ProgramOptimizer(resumed[1]).trained
    assert trained is None or trained[0] is resumed[0].second  # so the next file has this order
    step_of(*original)
    step_of(*resumed)
    for left, right in zip(resumed[0].variables, original[0].variables):
        np.testing.assert_allclose(left.numpy(), right.numpy(), rtol=1e-6)


def late_lists(keras: Any, **options: Any) -> Any:
    """A model whose layers Keras 2 and Keras 3 list in different orders."""
    layers = keras.layers

    class Model(keras.Model):  # type: ignore[misc]  # untyped base
        def __init__(self):
            super().__init__()
            self.first: List[Any] = []
            self.second: List[Any] = []
            self.second.append(layers.Dense(4, **options))
            self.first.append(layers.Dense(4, **options))
            self.in_order = [*self.first, *self.second]

        def call(self, inputs: Any) -> Any:
            return self.first[0](self.second[0](inputs))

    return Model()


def nested_dictionaries(keras: Any) -> Any:
    layers = keras.layers

    class Block(layers.Layer):  # type: ignore[misc]  # untyped base
        def __init__(self):
            super().__init__()
            self.parts = {"b": layers.Dense(4), "a": layers.Dense(4)}

        def call(self, inputs: Any) -> Any:
            return self.parts["a"](self.parts["b"](inputs))

    inputs = layers.Input((4,))
    block = Block()
    model = keras.Model(inputs, block(inputs))
    model.in_order = [block.parts["a"], block.parts["b"]]
    return model


def values_in_order(model: Any) -> List[Any]:
    return [weight.numpy() for layer in model.in_order for weight in layer.weights]


def fill(variables: List[Any]):
    random = np.random.RandomState(len(variables))
    for variable in variables:
        variable.assign(random.normal(size=variable.shape).astype(np.float32))


# restore() reads no HDF5 files of Keras 3.
FORMS = [(*pair, "checkpoint") for pair in PAIRS]
FORMS += [(*pair, "h5") for pair in PAIRS if pair[0] != "keras3"]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("made", [late_lists, nested_dictionaries])
@pytest.mark.parametrize(("written", "read", "form"), FORMS)
def test_an_order_that_differs_is_no_order(
    written: str, read: str, form: str, made: Callable[[Any], Any], tmp_path: Any
):
    """The layers have equal shapes, and other names than in the file."""
    original = made(keras_of(written))
    original(INPUTS[0])
    fill(original.trainable_variables)
    optimizer = optimizer_of(written)
    step_without_targets(original, optimizer)
    path = str(tmp_path / "weights.h5")
    if form == "h5":
        original.save_weights(path)
    else:
        path = tf.train.Checkpoint(model=original, optimizer=optimizer).save(str(tmp_path / "c"))
    keras_of(read).layers.Dense(1)  # shifts the numbers in names
    resumed = made(keras_of(read))
    resumed(INPUTS[0])
    before = values_in_order(resumed)
    try:
        tfls.checkpoints.restore(path, resumed, optimizer_of(read) if form != "h5" else None)
    except tfls.checkpoints.RestoreError:
        expected = before
    else:
        expected = values_in_order(original)
    for left, right in zip(expected, values_in_order(resumed)):
        np.testing.assert_array_equal(left, right)


def step_without_targets(model: Any, optimizer: Any):
    with tf.GradientTape() as tape:
        loss = optimizer.get_scaled_loss(tf.reduce_mean(model(INPUTS[0]) ** 2))
    gradients = optimizer.get_unscaled_gradients(tape.gradient(loss, model.trainable_variables))
    optimizer.apply_gradients(list(zip(gradients, model.trainable_variables)))


@pytest.mark.parametrize(("written", "read"), PAIRS)
def test_normalization_computes_with_what_was_restored(written: str, read: str, tmp_path: Any):
    if not hasattr(keras_of(written).layers, "Normalization"):
        pytest.skip("before TensorFlow 2.6")

    def normalizing(kind: str) -> Any:
        layers = keras_of(kind).layers
        inputs = layers.Input((4,))
        layer = layers.Normalization()
        return keras_of(kind).Model(inputs, layers.Dense(1)(layer(inputs))), layer

    original, layer = normalizing(written)
    layer.adapt(INPUTS.reshape(-1, 4) * 3 + 2)
    path = tf.train.Checkpoint(model=original).save(str(tmp_path / "c"))
    resumed, _ = normalizing(read)
    tfls.checkpoints.restore(path, resumed)
    np.testing.assert_allclose(original(INPUTS[0]), resumed(INPUTS[0]), rtol=1e-5, atol=1e-6)


def head_of(keras: Any, name: str) -> Any:
    class Model(keras.Model):  # type: ignore[misc]  # untyped base
        def __init__(self):
            super().__init__()
            self.body = keras.layers.Dense(3)
            setattr(self, name, keras.layers.Dense(2))

        def call(self, inputs: Any) -> Any:
            return getattr(self, name)(self.body(inputs))

    model = Model()
    model(INPUTS[0])
    return model


def test_partial_does_not_restore_another_head(tmp_path: Any):
    kinds = sorted(KINDS)
    original = head_of(keras_of(kinds[-1]), "head")
    path = tf.train.Checkpoint(model=original).save(str(tmp_path / "c"))
    resumed = head_of(keras_of(kinds[0]), "new_head")
    before = [weight.numpy() for weight in resumed.new_head.weights]
    report = tfls.checkpoints.restore(path, resumed, partial=True)
    assert len(report.restored) == len(report.initial) == len(report.unused) == 2
    for left, right in zip(before, resumed.new_head.weights):
        np.testing.assert_array_equal(left, right.numpy())


def test_partial_does_not_choose_between_models(tmp_path: Any):
    kinds = sorted(KINDS)
    first, second = (head_of(keras_of(kinds[-1]), "head") for _ in range(2))
    path = tf.train.Checkpoint(first=first, second=second).save(str(tmp_path / "c"))
    resumed = head_of(keras_of(kinds[0]), "new_head")
    with pytest.raises(tfls.checkpoints.RestoreError, match="equally well"):
        tfls.checkpoints.restore(path, resumed, partial=True)


def test_tables_are_reported(tmp_path: Any):
    table = tf.lookup.experimental.DenseHashTable(tf.int64, tf.int64, 0, -1, -2)
    table.insert([1], [2])
    model = head_of(keras_of(sorted(KINDS)[0]), "head")
    path = tf.train.Checkpoint(model=model, table=table).save(str(tmp_path / "c"))
    with pytest.raises(tfls.checkpoints.RestoreError, match="no variable for table"):
        tfls.checkpoints.restore(path, model)


@pytest.mark.skipif("keras3" not in KINDS, reason="needs Keras 3")
def test_averages_that_the_file_lacks_are_an_error(tmp_path: Any):
    assert_refused(saved(tmp_path), "no value for _model_variables_moving_average", use_ema=True)


@pytest.mark.parametrize(("first", "second"), [("SGD", "Lion"), ("Lion", "SGD")])
def test_classes_with_the_same_slots_are_told_apart(first: str, second: str, tmp_path: Any):
    kind = sorted(KINDS)[0]
    if kind == "legacy" or not hasattr(KINDS[kind].optimizers, "Lion"):
        pytest.skip("there is no Lion")
    options = {"SGD": {"momentum": 0.5}, "Lion": {}}
    original = begun(kind, "sequential", first, **options[first])
    path = tf.train.Checkpoint(model=original[0], optimizer=original[1]).save(str(tmp_path / "c"))
    resumed = fresh(kind, "sequential", second, **options[second])
    with pytest.raises(tfls.checkpoints.RestoreError, match="the file has the optimizer"):
        tfls.checkpoints.restore(path, *resumed)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("written", sorted(KINDS))
def test_a_class_that_the_file_does_not_name_is_noted(written: str, tmp_path: Any):
    """The name of an optimizer is that of its class, unless the program gives another one."""
    model = MODELS["sequential"](keras_of(written))
    model(INPUTS[0])
    optimizer = OURS(KINDS[written].optimizers.Adam(learning_rate=0.01, name="mine"))
    step(model, optimizer, 0)
    path = tf.train.Checkpoint(model=model, optimizer=optimizer).save(str(tmp_path / "c"))
    report = tfls.checkpoints.restore(path, *fresh(written, "sequential"))
    assert "does not say whether Adam or AdamW" in str(report)
    if written == "new":  # never named, as the class builds the optimizer before the first step
        return
    model, optimizer = begun(written, "sequential")
    named = tf.train.Checkpoint(model=model, optimizer=optimizer)
    path = named.save(str(tmp_path / "d"))
    assert "does not say" not in str(tfls.checkpoints.restore(path, *fresh(written, "sequential")))


@pytest.mark.skipif("legacy" not in KINDS, reason="there are no legacy optimizers")
@pytest.mark.skipif(recorded.TF < (2, 3), reason="Keras of 1.15 needs a session under a strategy")
def test_files_of_a_mirrored_strategy_name_the_class_from_2_10_on(tmp_path: Any):
    strategy = tf.distribute.MirroredStrategy(["/cpu:0"])
    with strategy.scope():
        model = MODELS["sequential"](keras_of("legacy"))
        model(INPUTS[0])
        optimizer = KINDS["legacy"].optimizers.Adam(0.01)

    def step_on_replica():
        gradients = [tf.ones_like(variable) for variable in model.trainable_variables]
        optimizer.apply_gradients(list(zip(gradients, model.trainable_variables)))

    tf.function(lambda: strategy.run(step_on_replica))()
    path = tf.train.Checkpoint(model=model, optimizer=optimizer).save(str(tmp_path / "c"))
    resumed, _ = fresh("legacy", "sequential")
    report = tfls.checkpoints.restore(path, resumed, KINDS["legacy"].optimizers.Adam(0.5))
    assert ("does not say whether Adam or AdamW" in str(report)) == (recorded.TF < (2, 10))


ORIGINAL_CLASSES = [own for own in recorded.originals() if own.api != "experimental"]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("subject", ORIGINAL_CLASSES, ids=str)
@pytest.mark.parametrize("written", sorted(KINDS))
def test_the_class_of_tensorflow_gets_the_loss_scale(written: str, subject: Any, tmp_path: Any):
    """`migrate --keras 2` and `--keras 3` write this class, and the program restores through it."""
    original = begun(written, "sequential")
    path = tf.train.Checkpoint(net=original[0], opt=original[1]).save(str(tmp_path / "c"))
    model, _ = fresh(subject.kind.name, "sequential")
    optimizer = subject.dynamic(subject.inner("Adam", learning_rate=0.5), 16.0, 3)
    tfls.checkpoints.restore(path, tf.train.Checkpoint(net=model, opt=optimizer))
    scale = (float(original[1].loss_scale), int(original[1].dynamic_counter))
    assert subject.read(optimizer)[:2] == scale
    iterations = ProgramOptimizer(optimizer).iterations  # the outer one has its own up to Keras 3.4
    assert int(iterations.numpy()) == int(original[1].iterations.numpy())


@pytest.mark.parametrize(("written", "read"), PAIRS)
def test_slots_of_layers_with_one_name_go_by_order_or_not_at_all(
    written: str, read: str, tmp_path: Any
):
    original = late_lists(keras_of(written), name="twice")
    original(INPUTS[0])
    optimizer = optimizer_of(written)
    step_without_targets(original, optimizer)
    path = tf.train.Checkpoint(model=original, optimizer=optimizer).save(str(tmp_path / "c"))
    resumed = late_lists(keras_of(read), name="twice")
    resumed(INPUTS[0])
    if written == "legacy":  # whose slots name the objects of their variables
        tfls.checkpoints.restore(path, resumed, optimizer_of(read))
        return
    if (written, read) == ("new", "keras3"):  # in the order of Keras 2, which no name contradicts
        again = optimizer_of(read)
        report = tfls.checkpoints.restore(path, resumed, again)
        assert "the order in which Keras 2 lists them" in str(report)
        for _ in range(3):
            step_without_targets(original, optimizer)
            step_without_targets(resumed, again)
        np.testing.assert_allclose(original(INPUTS[0]), resumed(INPUTS[0]), rtol=1e-4, atol=1e-5)
        return
    with pytest.raises(tfls.checkpoints.RestoreError, match="nothing was restored"):
        tfls.checkpoints.restore(path, resumed, optimizer_of(read))
