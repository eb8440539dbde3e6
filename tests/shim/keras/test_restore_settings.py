"""What a file shows of the old optimizer, and the program has in another way, is never silent.

The files are of Keras 2, and the programs of Keras 3.
"""

from typing import Any, Callable, Dict, List

import numpy as np
import pytest
import recorded
import tensorflow as tf
from test_restore import KINDS, keras_of

import tf_lossscale as tfls

restore = tfls.checkpoints.restore
RestoreError = tfls.checkpoints.RestoreError
pytestmark = pytest.mark.skipif(
    not {"legacy", "new", "keras3"} <= set(KINDS)
    or not all(map(recorded.is_trackable, KINDS.values())),
    reason="needs Keras 3.1 or later, and tf-keras",
)
GRADIENT = tf.constant([1.0, -2.0, 3.0])
INPUTS = np.random.RandomState(0).normal(size=(20, 4)).astype(np.float32)
TARGETS = np.random.RandomState(1).normal(size=(20, 2)).astype(np.float32)


def made(kind: str, class_name: str, *arguments: Any, **options: Any) -> Any:
    return getattr(KINDS[kind].optimizers, class_name)(*arguments, **options)


def schedule(kind: str) -> Any:
    return keras_of(kind).optimizers.schedules.ExponentialDecay(0.1, 5, 0.5)


class Run:
    """A variable, and an optimizer that has taken some steps."""

    def __init__(self, optimizer: Any, steps: int = 3) -> None:
        self.variable = tf.Variable([1.0, 2.0, 3.0])
        self.optimizer = optimizer
        self.go_on(steps)

    def go_on(self, steps: int = 3):
        for _ in range(steps):
            self.optimizer.apply_gradients([(GRADIENT, self.variable)])

    def save(self, folder: Any) -> str:
        checkpoint = tf.train.Checkpoint(v=self.variable, o=self.optimizer)
        return str(checkpoint.save(str(folder / "c")))

    def restore(self, path: str, **options: Any) -> Any:
        return restore(path, {"v": self.variable}, {"o": self.optimizer}, **options)


def fresh(name: str, *arguments: Any, **options: Any) -> Run:
    return Run(made("keras3", name, *arguments, **options), steps=0)


def assert_equal(first: Run, second: Run):
    for run in (first, second):
        run.go_on()
    np.testing.assert_allclose(first.variable.numpy(), second.variable.numpy(), rtol=1e-5)


@pytest.mark.parametrize(
    ("kind", "name"), [("legacy", "SGD"), ("legacy", "RMSprop"), ("new", "RMSprop")]
)
def test_a_momentum_that_the_program_lacks_is_an_error(kind: str, name: str, tmp_path: Any):
    run = Run(made(kind, name, 0.1, momentum=0.5))
    path = run.save(tmp_path)
    resumed = fresh(name, 0.1)
    with pytest.raises(RestoreError, match=r"momentum|variable for"):
        resumed.restore(path)
    resumed.go_on()  # nothing was changed
    right = fresh(name, 0.1, momentum=0.5)
    right.restore(path)
    assert_equal(run, right)


def test_of_a_momentum_that_no_file_shows_is_a_note(tmp_path: Any):
    """New-style optimizers write slots for SGD without a momentum, too."""
    runs = [Run(made("new", "SGD", 0.1, momentum=momentum)) for momentum in (0.0, 0.5)]
    for run in runs:
        resumed = fresh("SGD", 0.1)
        report = resumed.restore(run.save(tmp_path))
        assert not report.unused
        assert [note for note in report.notes if "whether its SGD had a momentum" in note]
        if not run.optimizer.momentum:
            assert_equal(run, resumed)


def test_slots_of_keras_3_that_are_not_used_need_partial(tmp_path: Any):
    run = Run(made("keras3", "SGD", 0.1, momentum=0.5))
    path = run.save(tmp_path)
    for kind in ("keras3", "new"):
        with pytest.raises(RestoreError, match="SGD with a momentum"):
            Run(made(kind, "SGD", 0.1), steps=0).restore(path)
    report = fresh("SGD", 0.1).restore(path, partial=True)
    assert [entry.file_shape for entry in report.unused] == [(3,)]
    assert any("SGD with a momentum" in note for note in report.notes)


def test_plain_legacy_sgd_has_no_momentum_to_lose(tmp_path: Any):
    run = Run(made("legacy", "SGD", 0.1))
    resumed = fresh("SGD", 0.1)
    report = resumed.restore(run.save(tmp_path))
    assert not report.unused
    assert not [note for note in report.notes if "momentum" in note]
    assert_equal(run, resumed)


def net(kind: str, optimizer: Any) -> Any:
    keras = keras_of(kind)
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
    model.compile(optimizer, "mse")
    return model


def fit(model: Any):
    model.fit(INPUTS, TARGETS, batch_size=5, epochs=2, shuffle=False, verbose=0)


SETTINGS: Dict[str, Any] = {
    "clipnorm": (("legacy", "Adam", {"clipnorm": 0.01}), ("Adam", {})),
    "clipvalue": (("legacy", "SGD", {"clipvalue": 0.01}), ("SGD", {})),
    "global_clipnorm": (("new", "Adam", {"global_clipnorm": 0.01}), ("Adam", {})),
    "weight_decay": (("new", "Adam", {"weight_decay": 0.5}), ("Adam", {})),
    "nesterov": (
        ("legacy", "SGD", {"momentum": 0.9, "nesterov": True}),
        ("SGD", {"momentum": 0.9}),
    ),
    "clipvalue is 0.01": (("legacy", "SGD", {}), ("SGD", {"clipvalue": 0.01})),
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_settings_in_the_configuration_of_a_file_are_noted(setting: str, tmp_path: Any):
    (kind, name, options), (now, others) = SETTINGS[setting]
    model = net(kind, made(kind, name, 0.01, **options))
    fit(model)
    path = str(tmp_path / "m.h5")
    model.save(path)
    report = restore(path, net("keras3", made("keras3", now, 0.01, **others)))
    assert len([note for note in report.notes if note.startswith(setting)]) == 1
    report = restore(path, net("keras3", made("keras3", name, 0.01, **options)))
    assert not report.notes


def test_schedules_in_the_configuration_of_a_file_are_compared(tmp_path: Any):
    model = net("legacy", made("legacy", "Adam", schedule("legacy")))
    fit(model)
    path = str(tmp_path / "m.h5")
    model.save(path)
    assert not restore(path, net("keras3", made("keras3", "Adam", schedule("keras3")))).notes
    other = keras_of("keras3").optimizers.schedules.ExponentialDecay(0.1, 7, 0.5)
    report = restore(path, net("keras3", made("keras3", "Adam", other)))
    assert report.notes == ("the schedule of the learning rate is another one than in the file",)
    report = restore(path, net("keras3", made("keras3", "Adam", 0.01)))
    assert [note for note in report.notes if "no learning rate" in note]


@pytest.mark.parametrize("kind", ["legacy", "new"])
def test_a_schedule_beside_a_constant_rate_is_noted(kind: str, tmp_path: Any):
    with_schedule = Run(made(kind, "Adam", schedule(kind)))
    path = with_schedule.save(tmp_path)
    assert [note for note in fresh("Adam", 0.01).restore(path).notes if "no learning rate" in note]
    resumed = fresh("Adam", schedule("keras3"))
    assert not [note for note in resumed.restore(path).notes if "learning rate" in note]
    assert_equal(with_schedule, resumed)
    path = Run(made(kind, "Adam", 0.25)).save(tmp_path)
    notes = fresh("Adam", schedule("keras3")).restore(path).notes
    assert [note for note in notes if "learning rate is 0.25 in the file, and a schedule" in note]


def test_a_schedule_can_do_what_decay_did(tmp_path: Any):
    run = Run(made("legacy", "Adam", 0.1, decay=0.5))
    path = run.save(tmp_path)
    with pytest.raises(RestoreError, match="InverseTimeDecay"):
        fresh("Adam", 0.1).restore(path)
    rate = keras_of("keras3").optimizers.schedules.InverseTimeDecay(0.1, 1, 0.5)
    resumed = fresh("Adam", rate)
    notes = resumed.restore(path).notes
    assert [note for note in notes if "0.1 with a decay of 0.5" in note]
    assert_equal(run, resumed)


def test_weight_decay_of_addons_is_another_one(tmp_path: Any):
    # As in tensorflow-addons.
    class AdamW(KINDS["legacy"].optimizers.Adam):  # type: ignore[misc] - the base is chosen here
        def __init__(self, rate: float, decay: float) -> None:
            super().__init__(rate, name="AdamW")
            self._set_hyper("weight_decay", decay)

    path = Run(AdamW(0.1, 0.25)).save(tmp_path)
    resumed = fresh("AdamW", 0.1, weight_decay=2.5)
    notes = resumed.restore(path).notes
    assert [note for note in notes if note.startswith("weight_decay is 0.25 in the file")]
    assert resumed.optimizer.weight_decay == 2.5


@pytest.mark.parametrize("name", ["Lamb", "Nadam"])
@pytest.mark.parametrize("kind", ["legacy", "new"])
def test_a_class_that_only_a_name_tells_apart(kind: str, name: str, tmp_path: Any):
    path = Run(made(kind, "Adam", 0.1, name="generator")).save(tmp_path)
    try:
        notes = fresh(name, 0.1).restore(path).notes
    except RestoreError as error:
        notes = [str(error)]
    assert [note for note in notes if "product of momentums" in note or f"or {name}" in note]


@pytest.mark.parametrize("kind", ["legacy", "new"])
def test_accumulated_gradients_begin_at_zero(kind: str, tmp_path: Any):
    """Each step of the old program is one of two iterations here."""
    run = Run(made(kind, "Adam", 0.1))
    resumed = fresh("Adam", 0.1, gradient_accumulation_steps=2)
    report = resumed.restore(run.save(tmp_path))
    assert not report.unused
    assert int(resumed.optimizer.iterations) == 3
    run.go_on(3)
    resumed.go_on(6)
    np.testing.assert_allclose(run.variable.numpy(), resumed.variable.numpy(), rtol=1e-5)


def test_accumulated_gradients_are_restored(tmp_path: Any):
    run = Run(made("keras3", "Adam", 0.1, gradient_accumulation_steps=2))
    resumed = fresh("Adam", 0.1, gradient_accumulation_steps=2)
    resumed.restore(run.save(tmp_path))
    assert int(resumed.optimizer._iterations) == 3
    assert_equal(run, resumed)


def test_a_name_within_another_one_does_not_give_its_slots(tmp_path: Any):
    """Slots of `encoder/w`, which the program lacks, are not those of `w`."""
    wanted, other = tf.Variable([1.0, 2.0], name="w"), tf.Variable([1.0, 2.0], name="encoder/w")
    optimizer = made("new", "Adam", 0.1)
    optimizer.apply_gradients([(tf.ones(2), other)])
    path = tf.train.Checkpoint(w=wanted, other=other, o=optimizer).save(str(tmp_path / "c"))
    resumed = made("keras3", "Adam", 0.1)
    report = restore(path, {"w": tf.Variable([0.0, 0.0])}, {"o": resumed}, partial=True)
    assert not [entry for entry in report.restored if " of " in entry.in_program]
    assert len(report.unused) == 3


def two_models(kind: str) -> List[Any]:
    keras = keras_of(kind)
    layers = [[keras.layers.Dense(4, name=name) for name in "xy"] for _ in range(2)]
    return [keras.Sequential([keras.Input((4,)), *own]) for own in layers]


def test_models_with_equal_names_need_build_and_no_more(tmp_path: Any):
    models, optimizers = two_models("legacy"), [made("new", "Adam", 0.1) for _ in range(2)]
    for factor, (model, optimizer) in enumerate(zip(models, optimizers)):
        variables = model.trainable_variables
        optimizer.apply_gradients([(tf.ones(own.shape) * factor, own) for own in variables])
    old = dict(zip("gdop", [*models, *optimizers]))
    path = tf.train.Checkpoint(**old).save(str(tmp_path / "c"))
    models, optimizers = two_models("keras3"), [made("keras3", "Adam", 0.1) for _ in range(2)]
    checkpoint = tf.train.Checkpoint(**dict(zip("gdop", [*models, *optimizers])))
    with pytest.raises(RestoreError, match=r"Call optimizer.build"):
        restore(path, checkpoint)
    for model, optimizer in zip(models, optimizers):
        optimizer.build(model.trainable_variables)
    assert not restore(path, checkpoint).unused
    for factor, optimizer in enumerate(optimizers):
        slots = [slot.numpy() for slot in optimizer._momentums]
        assert all(np.all((slot > 0) == bool(factor)) for slot in slots)


def subclassed(keras: Any, own_step: bool) -> Any:
    class Model(keras.Model):  # type: ignore[misc] - either Keras is Any
        def __init__(self) -> None:
            super().__init__()
            self.one = keras.layers.Dense(4)
            self.two = keras.layers.Dense(2)

        def call(self, inputs: Any) -> Any:
            return self.two(self.one(inputs))

        if own_step:

            def train_step(self, data: Any) -> Any:
                return super().train_step(data)

    model = Model()
    model(INPUTS)
    return model


@pytest.mark.parametrize("is_compiled", [True, False])
@pytest.mark.parametrize("own_step", [True, False])
def test_an_order_that_only_the_program_knows_is_noted(
    is_compiled: bool, own_step: bool, tmp_path: Any
):
    """The next checkpoint has the slots in this order, which TensorFlow's `restore` takes."""
    model = subclassed(keras_of("legacy"), own_step)
    optimizer = made("legacy", "Adam", 0.1)
    variables = model.trainable_variables
    optimizer.apply_gradients([(tf.ones(own.shape), own) for own in variables])
    path = tf.train.Checkpoint(model=model, optimizer=optimizer).save(str(tmp_path / "c"))
    resumed, optimizer = subclassed(keras_of("keras3"), own_step), made("keras3", "Adam", 0.1)
    if is_compiled:
        resumed.compile(optimizer, "mse")
    notes = [note for note in restore(path, resumed, optimizer).notes if "order of" in note]
    assert bool(notes) == (own_step or not is_compiled)
    optimizer = made("keras3", "Adam", 0.1)
    optimizer.build(resumed.trainable_variables)
    assert not [note for note in restore(path, resumed, optimizer).notes if "order of" in note]


V1 = tf.compat.v1.train
Make = Callable[[], Any]


def saver_file(folder: Any, makes: Dict[str, Make], steps: Dict[str, int], counts: bool) -> str:
    """A file of `tf.train.Saver` of a graph with an optimizer for each variable."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        counter = V1.get_or_create_global_step() if counts else None
        trains = {}
        for name, make in makes.items():
            variable = tf.compat.v1.get_variable(name, initializer=np.ones(3, np.float32))
            trains[name] = make().apply_gradients([(tf.ones(3), variable)], global_step=counter)
        session.run(tf.compat.v1.global_variables_initializer())
        for name, count in steps.items():
            for _ in range(count):
                session.run(trains[name])
        return str(V1.Saver().save(session, str(folder / "model")))


def adam(**options: Any) -> Make:
    return lambda: V1.AdamOptimizer(0.1, **options)


def zeros() -> Any:
    return tf.Variable([0.0, 0.0, 0.0])


@pytest.mark.parametrize(
    ("make", "name", "default"),
    [
        (adam(), "Adam", 1e-8),
        (lambda: V1.RMSPropOptimizer(0.1, momentum=0.5), "RMSprop", 1e-10),
        (lambda: V1.AdadeltaOptimizer(0.1), "Adadelta", 1e-8),
        (lambda: V1.AdagradOptimizer(0.1), "Adagrad", 0.0),
    ],
)
def test_an_epsilon_that_no_saver_file_has_is_noted(
    make: Make, name: str, default: float, tmp_path: Any
):
    path = saver_file(tmp_path, {"w": make}, {"w": 2}, counts=True)
    options = {"momentum": 0.5} if name == "RMSprop" else {}
    notes = {}
    for epsilon in (1e-7, default):
        optimizer = made("keras3", name, 0.1, epsilon=epsilon, **options)
        notes[epsilon] = restore(path, optimizer=optimizer, names={"w": zeros()}).notes
    assert [note for note in notes[1e-7] if note.startswith("epsilon is 1e-07 here")]
    assert not notes[default]


def test_steps_of_another_adam_are_noted(tmp_path: Any):
    """The program has forgotten `beta_1=0.5`."""
    makes = {"g": adam(beta1=0.5), "d": adam()}
    path = saver_file(tmp_path, makes, {"g": 5, "d": 7}, counts=False)
    optimizer = made("keras3", "Adam", 0.1, epsilon=1e-8)
    report = restore(path, optimizer=optimizer, names={"g": zeros()}, partial=True)
    assert [note for note in report.notes if "several Adams, of which only" in note]


def test_a_joint_counter_does_not_count_the_steps_of_one_adam(tmp_path: Any):
    makes = {"g": adam(beta2=0.5), "d": adam()}
    path = saver_file(tmp_path, makes, {"g": 200, "d": 7}, counts=True)
    optimizer = made("keras3", "Adam", 0.1, beta_2=0.5, epsilon=1e-8)
    report = restore(path, optimizer=optimizer, names={"g": zeros()}, partial=True)
    assert [note for note in report.notes if "how many steps this one took" in note]
    assert int(optimizer.iterations) == 0


def test_an_optimizer_beside_an_adam_needs_partial(tmp_path: Any):
    makes = {"g": adam(), "d": lambda: V1.RMSPropOptimizer(0.1, momentum=0.5)}
    path = saver_file(tmp_path, makes, {"g": 2, "d": 3}, counts=True)
    names = {"d": zeros()}
    with pytest.raises(RestoreError, match="partial=True"):
        restore(path, optimizer=made("keras3", "RMSprop", 0.1, momentum=0.5), names=names)
    optimizer = made("keras3", "RMSprop", 0.1, momentum=0.5)
    report = restore(path, optimizer=optimizer, names=names, partial=True)
    assert {"rms of Variable", "momentum of Variable"} <= {
        entry.in_program.rpartition("/")[2] for entry in report.restored
    }


def test_the_order_of_names_is_not_the_one_of_the_program(tmp_path: Any):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        variables = [
            tf.compat.v1.get_variable(name, initializer=np.ones(3, np.float32)) for name in "wb"
        ]
        train = adam()().apply_gradients([(tf.ones(3), own) for own in variables])
        session.run(tf.compat.v1.global_variables_initializer())
        session.run(train)
        path = V1.Saver().save(session, str(tmp_path / "model"))
    names = {"b": zeros(), "w": zeros()}
    optimizer = made("keras3", "Adam", 0.1, epsilon=1e-8)
    with pytest.raises(RestoreError, match="in which order"):
        restore(path, optimizer=optimizer, names=names)
    optimizer.build([names["w"], names["b"]])
    assert not restore(path, optimizer=optimizer, names=names).unused
