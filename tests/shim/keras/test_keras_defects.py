"""The defects of the originals occur where the originals run, and are absent from our classes.

Each function makes one defect happen with the class that it is given and says whether it did;
`PRESENT` has the TensorFlow versions whose original shows it. Defects that have tests of their own:
float16 losses (K2) and wrapping twice (K10, K11) in `test_final.py`, those
of replicas (D1, D2) in `test_keras_distribution.py`, and of files (K12, K13, Q8) in
`test_written_files.py`.
"""

import copy
import tempfile
from typing import Any, Callable, Dict, Tuple

import numpy as np
import pytest
import recorded
import tensorflow as tf

pytestmark = pytest.mark.everywhere

Defect = Callable[[Any], bool]

INF, NAN = float("inf"), float("nan")


def optimizer_of(subject, inner: Any = None, scale: float = 8.0, period: int = 2) -> Any:
    return subject.dynamic(inner or subject.inner("SGD", learning_rate=0.5), scale, period)


class Step:
    """An optimizer and a variable, after steps with these gradients."""

    def __init__(self, subject, *gradients: float, inner: Any = None, **options: Any):
        self.subject = subject
        self.optimizer = optimizer_of(subject, inner, **options)
        self.variable = recorded.make_variable(subject.kind, 1.0, "v")
        for gradient in gradients:
            self.take(gradient)

    def take(self, gradient: float, optimizer: Any = None):
        gradients = [tf.constant(gradient)]
        self.subject.step(optimizer or self.optimizer, [self.variable], gradients)

    @property
    def value(self) -> float:
        return recorded.number(self.variable)

    def read(self) -> Any:
        """The loss scale, its counter and the iterations."""
        return self.subject.read(self.optimizer)


def raises(errors: Any, function: Callable[[], Any]) -> bool:
    try:
        function()
    except errors:
        return True
    return False


def k3_no_config(subject) -> bool:
    return raises(NotImplementedError, optimizer_of(subject).get_config)


def k4_no_slots(subject) -> bool:
    if subject.kind.name != "legacy":
        return False
    inner = subject.inner("Adam", learning_rate=0.5)
    step = Step(subject, 1.0, inner=inner)

    def slots():
        assert step.optimizer.get_slot(step.variable, "m") is inner.get_slot(step.variable, "m")
        assert sorted(step.optimizer.get_slot_names()) == ["m", "v"]
        assert step.optimizer.weights

    return raises(AttributeError, slots)


def k5_sparse_gradients_become_dense(subject) -> bool:
    sparse = tf.IndexedSlices(tf.constant([8.0]), tf.constant([1]), tf.constant([2]))
    (unscaled,) = optimizer_of(subject).get_unscaled_gradients([sparse])
    return not isinstance(unscaled, tf.IndexedSlices)


def k6_iterations_stay_on_a_skipped_step(subject) -> bool:
    return Step(subject, NAN).read()[2] == 0


def k6_iterations_of_keras_3_stay_on_a_skipped_step(subject) -> bool:
    return k6_iterations_stay_on_a_skipped_step(subject)


def k7_no_clipping(subject) -> bool:
    inner = subject.inner("SGD", learning_rate=0.5, clipnorm=1.0)
    return raises(ValueError, lambda: optimizer_of(subject, inner))


def k8_hyperparameters_are_not_forwarded(subject) -> bool:
    inner = subject.inner("SGD", learning_rate=0.5, momentum=0.5)
    optimizer = optimizer_of(subject, inner)
    optimizer.momentum = 0.25
    return recorded.number(inner.momentum) != 0.25


def k8_exclusions_from_weight_decay_are_not_forwarded(subject) -> bool:
    if subject.kind.name == "legacy":
        return False  # they have no weight decay
    inner = subject.inner("SGD", learning_rate=0.5, weight_decay=0.5)
    step = Step(subject, inner=inner)
    step.optimizer.exclude_from_weight_decay([step.variable])
    step.take(0.0)
    return step.value != 1.0


def k9_no_name(subject) -> bool:
    return raises(AttributeError, lambda: optimizer_of(subject).name)


def k15_a_multiplier_is_refused(subject) -> bool:
    loss_scale = subject.dynamic_loss_scale(8.0, 1, 4.0)
    inner = subject.inner("SGD", learning_rate=0.5)
    return raises(ValueError, lambda: subject.cls(inner, loss_scale))


def k15_a_custom_loss_scale_is_refused(subject) -> bool:
    owner = recorded.LOSS_SCALES["tf" if subject.who == "original" else "tfls"]
    inner = subject.inner("SGD", learning_rate=0.5)
    return raises((TypeError, ValueError), lambda: subject.cls(inner, recorded.below_100(owner)()))


def k16_no_gradients_at_all(subject) -> bool:
    optimizer = optimizer_of(subject)
    optimizer.get_unscaled_gradients([])
    return raises(ValueError, lambda: optimizer.apply_gradients([]))


def k17_sparse_gradients_need_a_dense_shape(subject) -> bool:
    optimizer = optimizer_of(subject)
    variable = recorded.make_variable(subject.kind, [[1.0], [1.0]], "v")
    scale = subject.scale_and_counter(optimizer)[0]
    sparse = tf.IndexedSlices(tf.constant([[2.0]]) * scale, tf.constant([1]))

    def step():
        gradients = optimizer.get_unscaled_gradients([sparse])
        optimizer.apply_gradients(list(zip(gradients, [variable])))

    return raises(ValueError, step)


def k18_rows_are_added_up_before_the_test(subject) -> bool:
    optimizer = optimizer_of(subject)
    variable = recorded.make_variable(subject.kind, [[1.0], [1.0]], "v")
    half = tf.constant([[2.0**127], [2.0**127]])  # twice that is infinite
    sparse = tf.IndexedSlices(half, tf.constant([1, 1]), tf.constant([2, 1]))
    optimizer.get_unscaled_gradients([])
    optimizer.apply_gradients([(sparse, variable)])
    return subject.read(optimizer)[0] < 8  # the step is skipped


def k20_from_config_changes_its_argument(subject) -> bool:
    """Q7 on Keras 3."""
    if k3_no_config(subject):
        return False
    optimizer = optimizer_of(subject)
    config = optimizer.get_config()
    before = copy.deepcopy(config)
    type(optimizer).from_config(config)
    return config != before


def k21_old_configs_cannot_be_read(subject) -> bool:
    config = {
        "optimizer": {"class_name": "SGD", "config": {"name": "SGD", "learning_rate": 0.5}},
        "loss_scale": {"class_name": "FixedLossScale", "config": {"loss_scale_value": 8.0}},
    }
    cls = type(optimizer_of(subject))
    return raises((KeyError, TypeError), lambda: cls.from_config(config))


def k22_deepcopy_fails(subject) -> bool:
    step = Step(subject, 1.0)
    try:
        again = copy.deepcopy(step.optimizer)
    except (AttributeError, RuntimeError):
        return True
    step.take(NAN, again)  # moves the copy's scale, and not the other's
    assert subject.read(again)[0] == 4
    return step.read()[0] != 8


def q1_the_scale_goes_below_1(subject) -> bool:
    return Step(subject, NAN, scale=1.0).read()[0] < 1


def q1_the_scale_falls_to_0(subject) -> bool:
    return Step(subject, *[NAN] * 160, scale=2.0).read()[0] == 0


def q2_the_scale_becomes_infinite(subject) -> bool:
    return not np.isfinite(Step(subject, 2.0**-120, scale=2.0**127, period=1).read()[0])


def q3_no_growth_without_an_error(subject) -> bool:
    return not raises(ValueError, lambda: optimizer_of(subject, period=0))


def q4_dynamic_by_position_is_a_scale(subject) -> bool:
    optimizer = subject.cls(subject.inner("SGD", learning_rate=0.5), True)
    return optimizer.initial_scale == 1


def q5_nests(subject) -> bool:
    optimizer = optimizer_of(subject)
    return not raises((TypeError, ValueError), lambda: subject.cls(optimizer))


def q5_wraps_an_inner_optimizer_twice(subject) -> bool:
    inner = subject.inner("SGD", learning_rate=0.5)
    optimizer_of(subject, inner)
    return not raises(ValueError, lambda: optimizer_of(subject, inner))


def q6_keras_2_configs_cannot_be_read(subject) -> bool:
    arguments = {"name": "SGD", "learning_rate": 0.5, "decay": 0.25, "momentum": 0.0}
    config = {
        "inner_optimizer": {"class_name": "SGD", "config": arguments},
        "dynamic": True,
        "initial_scale": 8.0,
        "dynamic_growth_steps": 3,
    }
    cls = type(optimizer_of(subject))
    # Where there is a second Keras, our class goes by who reads: let it be the subject's.
    serialized = {"class_name": cls.__name__, "config": config}
    read = subject.kind.keras.optimizers.deserialize
    try:
        if subject.who == "ours" and subject.kind.name == "keras3":
            optimizer = read(serialized, custom_objects={cls.__name__: cls})
        else:
            optimizer = cls.from_config(config)
    except (KeyError, TypeError, ValueError):
        return True
    variable = recorded.make_variable(subject.kind, 1.0, "v")
    for _ in range(2):
        subject.step(optimizer, [variable], [tf.constant(1.0)])
    # The second step has the learning rate 0.5 / (1 + 0.25).
    return not np.isclose(float(variable.numpy()), 1 - 0.5 - 0.4)


def q10_a_wrong_scale_is_accepted(subject) -> bool:
    make = subject.cls
    inner = subject.inner("SGD", learning_rate=0.5)
    return not raises((TypeError, ValueError), lambda: make(inner, initial_scale="x"))


def generators_of_gradients_are_lost(subject) -> bool:
    optimizer = optimizer_of(subject, scale=1.0)
    variable = recorded.make_variable(subject.kind, 1.0, "v")
    gradients = (tf.constant(number) for number in [1.0])
    if subject.kind.name == "keras3":
        optimizer.apply(gradients, [variable])
    else:
        optimizer.apply_gradients(zip(gradients, [variable]))
    return float(recorded.number(variable)) != 0.5


def the_first_loss_after_a_restore_has_the_initial_scale(subject) -> bool:
    if subject.kind.name != "keras3":
        return False
    trained, again = Step(subject, 1.0, scale=64.0), optimizer_of(subject, scale=8.0)
    if not isinstance(again, tf.__internal__.tracking.Trackable):  # Keras 3.0: no checkpoints
        return subject.api == "keras3"
    with tempfile.TemporaryDirectory() as folder:
        path = tf.train.Checkpoint(opt=trained.optimizer).write(folder + "/state")
        tf.train.Checkpoint(opt=again).read(path)
        return float(again.scale_loss(tf.constant(1.0))) != 64.0


def weights_do_not_restore_the_scale_of_an_unbuilt_optimizer(subject) -> bool:
    if subject.kind.name != "keras3":
        return False
    models = []
    for _ in range(2):
        layer = subject.kind.keras.layers.Dense(1)
        models.append(subject.kind.keras.Sequential([subject.kind.keras.layers.Input((1,)), layer]))
        models[-1].compile(optimizer_of(subject, period=1), "mse")
    ones = np.ones((1, 1), "float32")
    models[0].fit(ones, ones, verbose=0)  # the scale is 16 then
    with tempfile.TemporaryDirectory() as folder:
        models[0].save_weights(folder + "/model.weights.h5")
        models[1].load_weights(folder + "/model.weights.h5")
    models[1].fit(ones, ones, verbose=0)
    return subject.read(models[1].optimizer)[0] != 32.0


def a_second_build_resets_the_scale(subject) -> bool:
    if subject.kind.name != "keras3":
        return False
    step = Step(subject, NAN)
    step.optimizer.build([step.variable])
    return step.read()[0] != 4


def no_gradients_count_as_a_finite_step(subject) -> bool:
    step = Step(subject)
    step.optimizer.get_unscaled_gradients([])
    with pytest.raises(ValueError, match="No gradients"):
        step.optimizer.apply_gradients([(None, step.variable)])
    return step.read()[1] != 0


def schedule_free_averages_begin_at_zero_in_fit(subject) -> bool:
    if not hasattr(subject.kind.optimizers, "ScheduleFreeAdamW"):
        return subject.api == "keras3"
    keras = subject.kind.keras
    averages = []
    for eager in (True, False):
        optimizer = optimizer_of(subject, subject.inner("ScheduleFreeAdamW", learning_rate=0.5))
        layer = keras.layers.Dense(1, kernel_initializer="ones")
        model = keras.Sequential([keras.layers.Input((2,)), layer])
        model.compile(optimizer, "mse", run_eagerly=eager)
        model.fit(np.ones((4, 2), "float32"), np.ones((4, 1), "float32"), verbose=0)
        found = [
            variable
            for variable in optimizer.variables
            if variable.path.endswith("kernel_momentum")
        ]
        averages.append(np.asarray(found[0]))
    return not np.allclose(*averages, rtol=1e-5)


def _always(version: Tuple[int, int]) -> bool:
    return True


KERAS_2 = ("experimental", "final")

# Defect: the classes that can have it, and the versions of TensorFlow whose original has it.
PRESENT: Dict[Defect, Tuple[Tuple[str, ...], Callable[[Tuple[int, int]], bool]]] = {
    k3_no_config: (("experimental",), lambda v: v < (2, 0)),
    k4_no_slots: (KERAS_2, lambda v: v < (2, 3)),
    k5_sparse_gradients_become_dense: (KERAS_2, lambda v: v < (2, 3)),
    k6_iterations_stay_on_a_skipped_step: (KERAS_2, lambda v: v < (2, 3)),
    k6_iterations_of_keras_3_stay_on_a_skipped_step: (("keras3",), _always),
    k7_no_clipping: (KERAS_2, lambda v: v < (2, 4)),
    k8_exclusions_from_weight_decay_are_not_forwarded: (("keras3",), _always),
    k9_no_name: (KERAS_2, _always),
    k15_a_multiplier_is_refused: (("experimental",), lambda v: v >= (2, 4)),
    k15_a_custom_loss_scale_is_refused: (("experimental",), lambda v: v >= (2, 4)),
    k17_sparse_gradients_need_a_dense_shape: (KERAS_2, lambda v: v < (2, 13)),
    k18_rows_are_added_up_before_the_test: (KERAS_2, lambda v: v < (2, 13)),
    k20_from_config_changes_its_argument: ((*KERAS_2, "keras3"), lambda v: v >= (2, 0)),
    q1_the_scale_goes_below_1: (("keras3",), _always),
    q1_the_scale_falls_to_0: (("keras3",), _always),
    q2_the_scale_becomes_infinite: (("keras3",), _always),
    q3_no_growth_without_an_error: (("keras3", "final", "experimental"), _always),
    q4_dynamic_by_position_is_a_scale: (("keras3",), _always),
    q5_nests: (("keras3",), _always),
    q5_wraps_an_inner_optimizer_twice: (("keras3",), _always),
    q6_keras_2_configs_cannot_be_read: (("keras3",), _always),
    q10_a_wrong_scale_is_accepted: (("keras3",), _always),
    generators_of_gradients_are_lost: (("keras3",), _always),
    a_second_build_resets_the_scale: (("keras3",), _always),
    no_gradients_count_as_a_finite_step: (KERAS_2, lambda v: v < (2, 5)),
    weights_do_not_restore_the_scale_of_an_unbuilt_optimizer: (("keras3",), _always),
    the_first_loss_after_a_restore_has_the_initial_scale: (("keras3",), _always),
    schedule_free_averages_begin_at_zero_in_fit: (("keras3",), _always),
}

# The same, of originals that differ by the kind of the inner optimizer.
NEW_STYLE_ONLY: Tuple[Defect, ...] = (
    k8_hyperparameters_are_not_forwarded,
    k8_exclusions_from_weight_decay_are_not_forwarded,
    k21_old_configs_cannot_be_read,
)


def _name(defect: Any) -> str:
    return defect.__name__


def _subjects(who: str, apis: Tuple[str, ...]) -> Any:
    if who == "original":
        return [subject for subject in recorded.originals() if subject.api in apis]
    wanted = (*apis, "final") if "keras3" in apis else apis
    return [subject for subject in recorded.ours() if subject.api in wanted]


@pytest.mark.parametrize("defect", PRESENT, ids=_name)
def test_the_originals_have_it(defect: Defect):
    apis, has_it = PRESENT[defect]
    for subject in _subjects("original", apis):
        is_new_in_2_11 = subject.kind.name == "new" and recorded.TF < (2, 12)
        is_absent = defect is k20_from_config_changes_its_argument and is_new_in_2_11
        assert defect(subject) is (has_it(recorded.TF) and not is_absent), str(subject)


@pytest.mark.parametrize("defect", NEW_STYLE_ONLY, ids=_name)
def test_the_originals_over_new_style_optimizers_have_it(defect: Defect):
    for subject in _subjects("original", ("final",)):
        if subject.kind.name == "new":
            assert defect(subject), str(subject)


@pytest.mark.parametrize("subject", recorded.originals() + recorded.ours(), ids=str)
def test_copies(subject):
    """K22, kept over new-style optimizers, which cannot be copied themselves."""
    if subject.kind.name == "new":
        with pytest.raises(RuntimeError, match="single instance"):
            copy.deepcopy(subject.inner("SGD", learning_rate=0.5))
        assert k22_deepcopy_fails(subject)
    elif subject.kind.name == "legacy":
        assert k22_deepcopy_fails(subject) is (subject.who == "original" and recorded.TF > (2, 12))


OURS = list(dict.fromkeys([*PRESENT, *NEW_STYLE_ONLY, k16_no_gradients_at_all]))


@pytest.mark.parametrize("defect", OURS, ids=_name)
def test_ours_do_not(defect: Defect):
    apis = PRESENT[defect][0] if defect in PRESENT else KERAS_2
    subjects = _subjects("ours", apis)
    assert subjects
    for subject in subjects:
        assert not defect(subject), str(subject)


HYPERPARAMETERS = {
    "momentum": ("SGD", 0.25, 0.5),
    "nesterov": ("SGD", False, True),
    "epsilon": ("Adam", 0.25, 0.5),
    "amsgrad": ("Adam", False, True),
    "centered": ("RMSprop", False, True),
}


def outcome_of_setting(subject, name: str) -> Tuple[bool, bool]:
    """Whether a hyperparameter can be read, and whether setting it reaches the inner optimizer."""
    cls, first, second = HYPERPARAMETERS[name]
    inner = subject.inner(cls, learning_rate=0.5, **{name: first})
    optimizer = optimizer_of(subject, inner)
    is_read = not raises(AttributeError, lambda: getattr(optimizer, name))
    setattr(optimizer, name, second)
    return is_read, recorded.number(getattr(inner, name)) == second


@pytest.mark.parametrize("name", sorted(HYPERPARAMETERS))
def test_k8_hyperparameters(name: str):
    for subject in recorded.originals():
        is_hyper = name == "momentum" and subject.kind.name == "legacy" and recorded.TF >= (2, 4)
        assert outcome_of_setting(subject, name) == (is_hyper, is_hyper), str(subject)
    for subject in recorded.ours():
        assert outcome_of_setting(subject, name) == (True, True), str(subject)


def test_kept_float16_cannot_hold_every_scale():
    """K19: a large scale is infinite as float16, its reciprocal is 0; the originals' numbers."""
    for subject in recorded.ours() + _subjects("original", KERAS_2):
        half = tf.constant(1.0, tf.float16)
        for exponent in (15, 16, 24, 25):
            inner = subject.inner("SGD", learning_rate=0.5)
            optimizer = subject.fixed(inner, 2.0**exponent)
            assert (float(optimizer.get_scaled_loss(half)) == INF) is (exponent >= 16)
            assert (float(optimizer.get_unscaled_gradients([half])[0]) == 0) is (exponent >= 25)
