"""One `DynamicLossScale` for several experimental optimizers, in the originals and in ours.

Up to TensorFlow 2.3 they share its state. From 2.4 on each has its own, which begins at the initial
scale, and the loss scale that was passed stays as it is.
"""

from typing import Any, Dict, List, Tuple

import pytest
import recorded
import tensorflow as tf
from recorded import number, scale_of

import tf_lossscale as tfls

SHARES = recorded.TF < (2, 4)
EXPERIMENTAL = recorded.experimental()
IN_GRAPHS = [subject for subject in EXPERIMENTAL if subject.kind.name == "legacy"]
# On Keras 3 a loss-scale optimizer saves its variables under other names.
KERAS_2 = [subject for subject in EXPERIMENTAL if subject.kind.name != "keras3"]
CONFIG = {"initial_loss_scale": 4.0, "increment_period": 1, "multiplier": 2.0}

CASES = recorded.with_loss_scales(EXPERIMENTAL)
every = pytest.mark.parametrize(("subject", "scales"), CASES)
keras_2 = pytest.mark.parametrize(
    ("subject", "scales"), [case for case in CASES if case.values[0] in KERAS_2]
)
in_graphs = pytest.mark.parametrize(
    ("subject", "scales"), [case for case in CASES if case.values[0] in IN_GRAPHS]
)


def make(subject, loss_scale: Any, momentum: float = 0.0) -> Any:
    inner = subject.inner("SGD", learning_rate=0.125, momentum=momentum)
    return subject.cls(inner, loss_scale)


def train(subject, optimizer: Any, steps: int):
    """Makes steps with finite gradients, which double the scale where the period is 1."""
    variable = recorded.make_variable(subject.kind, 1.0, "v")
    for _ in range(steps):
        gradients = optimizer.get_unscaled_gradients([tf.constant(8.0)])
        optimizer.apply_gradients(list(zip(gradients, [variable])))


@every
def test_a_step_of_one_optimizer(subject, scales: Any):
    loss_scale = scales.DynamicLossScale(4, 1)
    trained, other = make(subject, loss_scale), make(subject, loss_scale)
    train(subject, trained, 3)
    scales_now = [number(scale_of(trained)), number(scale_of(other)), number(loss_scale())]
    assert scales_now == ([32.0, 32.0, 32.0] if SHARES else [32.0, 4.0, 4.0])
    assert number(other.get_scaled_loss(tf.constant(1.0))) == scales_now[1]
    assert loss_scale.get_config() == CONFIG
    # One made later begins like the loss scale, which only an optimizer that shares has changed.
    assert number(scale_of(make(subject, loss_scale))) == scales_now[2]


@every
def test_an_update_by_hand(subject, scales: Any):
    loss_scale = scales.DynamicLossScale(4, 1)
    optimizer = make(subject, loss_scale)
    loss_scale.update([tf.constant(1.0)])
    assert number(loss_scale()) == 8.0
    # Where it is not shared, one that is made later begins at the initial scale, too (K14).
    for owner in (optimizer, make(subject, loss_scale)):
        assert number(scale_of(owner)) == (8.0 if SHARES else 4.0)


@every
def test_with_an_optimizer_of_the_v1_class(subject, scales: Any):
    """That class shares the object on every version."""
    loss_scale = scales.DynamicLossScale(4, 1)
    inner = tf.compat.v1.train.GradientDescentOptimizer(0.125)
    first, second = (scales.MixedPrecisionLossScaleOptimizer(inner, loss_scale) for _ in range(2))
    optimizer = make(subject, loss_scale)
    first.apply_gradients([(tf.constant(1.0), tf.compat.v2.Variable(1.0))])
    assert number(first._loss_scale()) == number(second._loss_scale()) == 8.0
    train(subject, optimizer, 2)
    found = [number(second._loss_scale()), number(scale_of(optimizer)), number(loss_scale())]
    assert found == ([32.0, 32.0, 32.0] if SHARES else [8.0, 16.0, 8.0])


@keras_2
def test_a_subclass_without_methods_of_its_own(subject, scales: Any):
    class Later(scales.DynamicLossScale):
        initial_loss_scale = 64.0

    loss_scale = Later(4, 1)
    optimizer = make(subject, loss_scale)
    train(subject, optimizer, 1)
    # Where the state is shared it begins with the argument, otherwise with the attribute.
    assert number(scale_of(optimizer)) == (8.0 if SHARES else 128.0)
    assert number(loss_scale()) == (8.0 if SHARES else 4.0)


@keras_2
def test_made_in_a_function(subject, scales: Any):
    loss_scale = scales.DynamicLossScale(4, 1)
    made: List[Any] = []

    @tf.function
    def function() -> Any:
        if not made:
            made.append(make(subject, loss_scale))
        return tf.constant(0)

    function()
    train(subject, made[0], 1)
    assert number(scale_of(made[0])) == 8.0
    assert number(loss_scale()) == (8.0 if SHARES else 4.0)


@keras_2
def test_keys_and_values_of_a_checkpoint(subject, scales: Any, tmp_path: Any):
    def objects(scale: float) -> Dict[str, Any]:
        loss_scale = scales.DynamicLossScale(scale, 1)
        first, second = make(subject, loss_scale), make(subject, loss_scale, momentum=0.5)
        return {"first": first, "loss_scale": loss_scale, "second": second}

    saved = objects(4)
    train(subject, saved["first"], 1)
    path = tf.train.Checkpoint(**saved).save(str(tmp_path / "saved"))
    reader = tf.train.load_checkpoint(path)
    found = {
        key.split("/.ATTRIBUTES")[0]: float(reader.get_tensor(key))
        for key in reader.get_variable_to_shape_map()
        if "current_loss_scale" in key or "good_steps" in key
    }
    owned = {"first/loss_scale": 8.0, "second/loss_scale": 4.0, "loss_scale": 4.0}
    owners = {"loss_scale": 8.0} if SHARES else owned
    assert found == {
        f"{owner}/{name}": value
        for owner, scale in owners.items()
        for name, value in (("current_loss_scale", scale), ("good_steps", 0.0))
    }
    restored = objects(2)
    tf.train.Checkpoint(**restored).restore(path)
    scales_now = [number(scale_of(restored[name])) for name in ("first", "second")]
    assert scales_now == ([8.0, 8.0] if SHARES else [8.0, 4.0])
    assert number(restored["loss_scale"]()) == (8.0 if SHARES else 4.0)


def steps_in_a_graph(subject, loss_scale: Any) -> Tuple[Any, List[Any]]:
    """The operation that makes a step of the first of two optimizers, and the tensors of scales."""
    trained, other = make(subject, loss_scale), make(subject, loss_scale)
    weight = tf.compat.v1.get_variable("weight", initializer=1.0, use_resource=True)
    step = trained.apply_gradients([(tf.constant(1.0), weight)])
    return step, [scale_of(trained), scale_of(other), loss_scale()]


@in_graphs
def test_in_a_graph(subject, scales: Any):
    with tf.Graph().as_default():
        step, tensors = steps_in_a_graph(subject, scales.DynamicLossScale(4, 1))
        names = [variable.op.name for variable in tf.compat.v1.global_variables()]
        with tf.compat.v1.Session() as session:
            session.run(tf.compat.v1.global_variables_initializer())
            for _ in range(2):
                session.run(step)
            found = session.run(tensors)
    assert list(found) == ([16.0, 16.0, 16.0] if SHARES else [16.0, 4.0, 4.0])
    # As files of the v1 Saver have them: those of the loss scale first, then those of the copies.
    suffixes = [""] if SHARES else ["", "_1", "_2"]
    assert [name for name in names if "scale" in name or "good" in name] == [
        f"{name}{suffix}" for suffix in suffixes for name in ("current_loss_scale", "good_steps")
    ]


@pytest.mark.parametrize("subject", IN_GRAPHS, ids=str)
def test_names_of_variables_by_kind_of_argument(subject):
    """Only a loss scale that is an object, or made from a dict, is copied."""
    arguments = {
        "dynamic": lambda: "dynamic",
        "dict": lambda: {"class_name": "DynamicLossScale", "config": dict(CONFIG)},
        "config": None,
    }
    if recorded.TF < (2, 0):
        del arguments["dict"], arguments["config"]
    found = {}
    for name, argument in arguments.items():
        with tf.Graph().as_default():
            if argument is None:
                config = make(subject, "dynamic").get_config()
                before = len(tf.compat.v1.global_variables())
                subject.cls.from_config(config)
            else:
                before = 0
                make(subject, argument())
            found[name] = len(tf.compat.v1.global_variables()) - before
    copied = 2 if SHARES else 4
    assert found == {name: 2 if name == "dynamic" else copied for name in arguments}


# The original of 1.15 has no get_config; ours has.
WITH_CONFIG = [
    subject for subject in EXPERIMENTAL if recorded.TF >= (2, 0) or subject.who != "original"
]


@pytest.mark.parametrize("subject", WITH_CONFIG, ids=str)
def test_a_subclass_gets_an_object_from_its_config(subject):
    seen = []

    # mypy cannot know the base class, which differs between the subjects.
    class Noting(subject.cls):
        def __init__(self, optimizer: Any, loss_scale: Any):
            seen.append(type(loss_scale).__name__)
            super().__init__(optimizer, loss_scale)

    optimizer = Noting(subject.inner("SGD", learning_rate=0.125), subject.dynamic_loss_scale(4, 1))
    type(optimizer).from_config(optimizer.get_config())
    assert seen == ["DynamicLossScale", "DynamicLossScale"]


@pytest.mark.slow
def test_under_a_strategy_in_the_graph_rewrite_and_by_compile(in_a_process: Any):
    has_original = any(subject.who == "original" for subject in EXPERIMENTAL)
    who = ["ours", "original"] if has_original else ["ours"]

    def scales(value: float) -> List[float]:
        return [value] * 3 if SHARES else [value, 4.0, 4.0]

    # Each of three steps adds the gradients of two replicas, times the learning rate.
    weights = {"0.0": 1 - 0.25 * 3, "0.5": 1 - 0.25 * (1 + 1.5 + 1.75)}
    assert in_a_process["shared"] == {
        f"{owner}, {where}, momentum {momentum}": [*scales(32.0), weight]
        for owner in who
        for where in ("outside", "inside")
        for momentum, weight in weights.items()
    }
    assert in_a_process["rewritten"] == dict.fromkeys(who, scales(8.0))
    assert in_a_process["compiled"] == {
        owner: [owner == "ours", *scales(16.0)] for owner in who if has_original
    }


SAYS = "A DynamicLossScale was read, or given to another optimizer"
OURS = [case for case in CASES if case.values[0].who != "original"]


@pytest.mark.parametrize("is_read", [False, True], ids=["given", "read"])
@pytest.mark.parametrize(("subject", "scales"), OURS)
def test_ours_says_that_nothing_is_shared(subject, scales: Any, is_read: bool, log: List[str]):
    """Once, if the loss scale of an optimizer is given to another one, or read."""
    loss_scale = scales.DynamicLossScale(4, 1)
    assert number(loss_scale()) == 4.0  # no optimizer's yet
    make(subject, loss_scale)
    make(subject, scales.DynamicLossScale(4, 1))
    make(subject, "dynamic")
    assert not [message for message in log if SAYS in message]
    for _ in range(2):
        if is_read:
            assert number(loss_scale()) == 4.0
        else:
            make(subject, loss_scale)
    assert len([message for message in log if SAYS in message]) == (0 if SHARES else 1)
    assert isinstance(loss_scale, scales.DynamicLossScale)


@pytest.mark.parametrize(
    "scales", list(recorded.LOSS_SCALES.values()), ids=list(recorded.LOSS_SCALES)
)
def test_from_loss_scale_says_that_nothing_is_shared(scales: Any, log: List[str]):
    loss_scale = scales.DynamicLossScale(4, 1)
    for expected in (0, 1, 1):
        tfls.keras.mixed_precision.from_loss_scale(tf.keras.optimizers.SGD(0.125), loss_scale)
        found = [message for message in log if SAYS in message]
        assert len(found) == expected
