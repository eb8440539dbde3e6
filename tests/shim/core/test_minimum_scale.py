"""`minimum_scale`: how far a dynamic loss scale shrinks; by default to 1, as TensorFlow's."""

from typing import Any, Callable, Dict, List

import pytest
import recorded
import support
import tensorflow as tf

import tf_lossscale as tfls

NAN = float("nan")
V1 = tfls.compat.v1.mixed_precision
CONTRIB = tfls.contrib.mixed_precision
SUBJECTS = [subject for subject in recorded.ours() if subject.api == "final"]
EXPERIMENTAL = [subject for subject in recorded.ours() if subject.api == "experimental"]
by_subject = pytest.mark.parametrize("subject", SUBJECTS, ids=str)
by_experimental = pytest.mark.parametrize("subject", EXPERIMENTAL, ids=str)


def sgd(subject) -> Any:
    return subject.inner("SGD", learning_rate=0.5)


def scales_of(subject, optimizer: Any, steps: int = 5) -> List[float]:
    """The loss scale after each of some skipped steps."""
    variable = recorded.make_variable(subject.kind, 1.0, "v")
    found = []
    for _ in range(steps):
        optimizer.apply_gradients([(tf.constant(NAN), variable)])
        found.append(recorded.number(recorded.scale_of(optimizer)))
    return found


KERAS_2 = [subject for subject in recorded.originals() if subject.kind.name != "keras3"]


@pytest.mark.parametrize("subject", [*KERAS_2, *SUBJECTS, *EXPERIMENTAL], ids=str)
def test_without_it_the_scale_falls_to_1(subject):
    """But with Keras 3's own class, whose scale falls to 0."""
    with support.eager():
        optimizer = subject.dynamic(sgd(subject), 2.0, 100)
        optimizer.get_unscaled_gradients([])
        assert scales_of(subject, optimizer, 3) == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("namespace", support.v1_namespaces().values())
def test_without_it_the_v1_loss_scale_falls_to_1(namespace):
    with support.eager():
        scale = namespace.DynamicLossScale(2.0, 100)
        for _ in range(3):
            scale.update([tf.constant(NAN)])
        assert float(scale()) == 1.0


@pytest.mark.parametrize("namespace", support.contrib_namespaces().values())
def test_without_it_the_scale_of_contrib_falls_to_1(namespace):
    with support.graph() as session:
        manager = namespace.ExponentialUpdateLossScaleManager(2.0, 100, 1, 2, 0.5)
        update = manager.update_loss_scale(tf.constant(False))
        session.run(tf.compat.v1.global_variables_initializer())
        for _ in range(3):
            session.run(update)
        assert session.run(manager.get_loss_scale()) == 1.0


@pytest.mark.parametrize("minimum", [2.0**-3, 1.0, 4.0])
@by_subject
def test_the_final_class(subject, minimum: float):
    with support.eager():
        optimizer = subject.cls(sgd(subject), initial_scale=8.0, minimum_scale=minimum)
        assert optimizer.minimum_scale == minimum
        assert scales_of(subject, optimizer, 8) == [max(8.0 / 2**n, minimum) for n in range(1, 9)]


@by_experimental
def test_the_experimental_class_and_from_loss_scale(subject):
    with support.eager():
        for make in (subject.cls, tfls.keras.mixed_precision.from_loss_scale):
            for multiplier in (2.0, 4.0):
                scale = V1.DynamicLossScale(1.0, 9, multiplier, minimum_scale=2.0**-4)
                optimizer = make(sgd(subject), scale)
                assert scales_of(subject, optimizer)[-1] == 2.0**-4


@by_subject
def test_it_is_saved_in_configurations(subject):
    with support.eager():
        usual = subject.cls(sgd(subject))
        assert "minimum_scale" not in str(usual.get_config())
        optimizer = subject.cls(sgd(subject), minimum_scale=2.0**-6)
        again = subject.cls.from_config(optimizer.get_config())
        assert again.minimum_scale == 2.0**-6
        keras = subject.kind.keras.optimizers
        read = keras.deserialize(keras.serialize(again))
        assert getattr(read, "minimum_scale", None) == 2.0**-6 or not recorded.is_ours(read)


@by_experimental
def test_it_is_saved_in_configurations_of_the_experimental_class(subject):
    with support.eager():
        scale = V1.DynamicLossScale(8.0, 9, minimum_scale=2.0**-6)
        optimizer = subject.cls(sgd(subject), scale)
        assert subject.cls.from_config(optimizer.get_config()).minimum_scale == 2.0**-6


def test_the_v1_loss_scale_in_a_session():
    with support.graph() as session:
        scale = V1.DynamicLossScale(2.0, 9, minimum_scale=0.25)
        update, _ = scale.update([tf.constant(NAN)])
        session.run(tf.compat.v1.global_variables_initializer())
        found = []
        for _ in range(5):
            session.run(update)
            found.append(session.run(scale()))
        assert found == [1.0, 0.5, 0.25, 0.25, 0.25]
        assert V1.DynamicLossScale.from_config(scale.get_config()).minimum_scale == 0.25
        assert set(V1.DynamicLossScale().get_config()) == {
            *("initial_loss_scale", "increment_period", "multiplier"),
        }


def test_the_manager_of_contrib():
    with support.eager():
        manager = CONTRIB.ExponentialUpdateLossScaleManager(2.0, 9, 1, 2, 0.5, minimum_scale=0.25)
        found = []
        for _ in range(5):
            manager.update_loss_scale(False)
            found.append(recorded.number(manager.get_loss_scale()))
        assert found == [1.0, 0.5, 0.25, 0.25, 0.25]


@by_subject
def test_it_is_passed_by_keyword(subject):
    manager = CONTRIB.ExponentialUpdateLossScaleManager
    with support.eager():
        for make, arguments in (
            (subject.cls, (sgd(subject), True, 8.0, 9)),
            (V1.DynamicLossScale, (8.0, 9, 2.0)),
            (manager, (8.0, 9, 1, 2.0, 0.5)),
        ):
            make(*arguments, minimum_scale=0.5)
            with pytest.raises(TypeError, match="positional arguments"):
                make(*arguments, 0.5)


def test_originals_refuse_its_configurations():
    with support.eager():
        scale = V1.DynamicLossScale(8.0, minimum_scale=0.5)
        with pytest.raises(TypeError, match="minimum_scale"):
            tf.compat.v1.train.experimental.DynamicLossScale.from_config(scale.get_config())
        for subject in recorded.originals():
            if subject.api == "experimental":
                continue
            ours = subject.counterpart()
            config = ours.cls(sgd(subject), minimum_scale=0.5).get_config()
            theirs = type(subject.dynamic(sgd(subject)))
            with pytest.raises((TypeError, ValueError), match="minimum_scale"):
                theirs.from_config(config)


WRONG: Dict[str, Callable[[float], Any]] = {
    "v1": lambda minimum: V1.DynamicLossScale(minimum_scale=minimum),
    "contrib": lambda minimum: CONTRIB.ExponentialUpdateLossScaleManager(
        8.0, 2, minimum_scale=minimum
    ),
}


@pytest.mark.parametrize("minimum", [0.0, -1.0, NAN, float("inf"), 1e-50])
@pytest.mark.parametrize("name", WRONG)
def test_other_numbers_are_refused(name: str, minimum: float):
    with support.eager(), pytest.raises(ValueError, match="minimum_scale must be a number above 0"):
        WRONG[name](minimum)


@by_subject
def test_a_minimum_above_the_initial_scale_is_refused(subject):
    makers: Dict[str, Callable[[], Any]] = {
        "final": lambda: subject.cls(sgd(subject), initial_scale=4.0, minimum_scale=8.0),
        "v1": lambda: V1.DynamicLossScale(4.0, minimum_scale=8.0),
        "contrib": lambda: CONTRIB.ExponentialUpdateLossScaleManager(4.0, 2, minimum_scale=8.0),
    }
    with support.eager():
        for make in makers.values():
            with pytest.raises(ValueError, match=r"minimum_scale is 8\.0, above the initial"):
                make()
        # Without the argument, the classes do as TensorFlow's.
        assert V1.DynamicLossScale(0.5).minimum_scale == 1.0


@by_subject
def test_a_fixed_scale_has_none(subject):
    with support.eager(), pytest.raises(ValueError, match="does not shrink"):
        subject.cls(sgd(subject), dynamic=False, initial_scale=8.0, minimum_scale=0.5)


@by_subject
def test_the_monitor_does_not_call_1_the_minimum(subject):
    with support.eager():
        optimizer = subject.cls(sgd(subject), initial_scale=2.0, minimum_scale=2.0**-6)
        monitor = tfls.monitoring.Monitor(optimizer)
        scales_of(subject, optimizer, 3)
        assert monitor.counts().skipped == 3  # warnings are errors
