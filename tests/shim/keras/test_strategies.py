"""The supported strategies, in the constructor and in each step.

The originals of TensorFlow 1.15 and of Keras 3 accept every strategy; the others reject some.
"""

from typing import Any, Callable, Dict

import pytest
import recorded
import replicas
import tensorflow as tf

import tf_lossscale as tfls
from tf_lossscale._keras import strategies

REFUSAL = "Loss scaling is not supported with the tf.distribute.Strategy: CentralStorageStrategy"
SUBJECTS = recorded.ours() + recorded.originals()
DISTRIBUTE = tf.compat.v2.distribute


def refuses(subject) -> bool:
    if subject.who == "original" and subject.kind.name == "keras3":
        return False
    return recorded.TF >= (2, 2)


def central_storage(distribute: Any = DISTRIBUTE) -> Any:
    return distribute.experimental.CentralStorageStrategy(["/cpu:0"], "/cpu:0")


@pytest.mark.parametrize("subject", SUBJECTS, ids=str)
def test_a_strategy_is_refused_when_the_optimizer_is_made(subject):
    with recorded.eagerly(), central_storage().scope():
        inner = subject.inner("SGD", learning_rate=0.5)
        if refuses(subject):
            with pytest.raises(ValueError, match=REFUSAL):
                subject.dynamic(inner, 8.0, 100)
        else:
            assert isinstance(subject.dynamic(inner, 8.0, 100), subject.cls)


@pytest.mark.parametrize("name", ["MirroredStrategy", "OneDeviceStrategy"])
@pytest.mark.parametrize("subject", SUBJECTS, ids=str)
def test_the_strategies_that_are_supported(subject, name: str):
    devices = ["/cpu:0"] if name == "MirroredStrategy" else "/cpu:0"
    with recorded.eagerly(), getattr(DISTRIBUTE, name)(devices).scope():
        optimizer = subject.dynamic(subject.inner("SGD", learning_rate=0.5), 8.0, 100)
        assert isinstance(optimizer, subject.cls)


@pytest.mark.parametrize("fixed", [False, True], ids=["dynamic", "fixed"])
@pytest.mark.parametrize("step", ["apply_gradients", "minimize"])
@pytest.mark.parametrize("subject", [subject for subject in SUBJECTS if refuses(subject)], ids=str)
def test_a_strategy_is_refused_in_a_step(subject, step: str, fixed: bool):
    with recorded.eagerly():
        inner = subject.inner("SGD", learning_rate=0.5)
        optimizer = subject.fixed(inner, 8.0) if fixed else subject.dynamic(inner, 8.0, 100)
        strategy = central_storage()
        with strategy.scope():
            variable = recorded.make_variable(subject.kind, 1.0, "v")

            def take_step():
                if step == "minimize":
                    optimizer.minimize(
                        lambda: tf.square(recorded.gradient_source(variable)), [variable]
                    )
                else:
                    optimizer.get_scaled_loss(tf.constant(1.0))
                    optimizer.get_unscaled_gradients([tf.constant(8.0)])
                    optimizer.apply_gradients([(tf.constant(1.0), variable)])

            with pytest.raises(ValueError, match=REFUSAL):
                replicas.run(strategy, take_step)
            assert recorded.number(variable) == 1.0


class Other(DISTRIBUTE.Strategy):  # type: ignore[misc]  # untyped base
    """A strategy that TensorFlow does not have."""

    def __init__(self) -> None:
        extended = type(DISTRIBUTE.OneDeviceStrategy("/cpu:0").extended)
        super().__init__(extended(self, "/cpu:0"))


class Derived(Other):
    pass


@pytest.mark.parametrize("subject", SUBJECTS, ids=str)
def test_only_three_strategies_are_supported(subject):
    for cls in (Other, Derived):
        with recorded.eagerly(), cls().scope():
            inner = subject.inner("SGD", learning_rate=0.5)
            if refuses(subject):
                with pytest.raises(ValueError, match="Loss scaling is not supported with the"):
                    subject.dynamic(inner, 8.0, 100)
            else:
                subject.dynamic(inner, 8.0, 100)
    with recorded.eagerly(), DISTRIBUTE.OneDeviceStrategy("/cpu:0").scope():
        optimizer = subject.dynamic(subject.inner("SGD", learning_rate=0.5), 8.0, 100)
        assert isinstance(optimizer, subject.cls)


OURS = recorded.ours()


@pytest.mark.parametrize("subject", OURS, ids=str)
def test_a_step_on_one_device(subject):
    strategy = DISTRIBUTE.OneDeviceStrategy("/cpu:0")
    with recorded.eagerly(), strategy.scope():
        optimizer = subject.dynamic(subject.inner("SGD", learning_rate=0.5), 8.0, 100)
        variable = recorded.make_variable(subject.kind, 1.0, "v")
        replicas.run(strategy, lambda: optimizer.apply_gradients([(tf.constant(1.0), variable)]))
        assert recorded.number(variable) == 0.5


@pytest.fixture
def _nothing_is_allowed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(strategies, "_allowed", [])


@pytest.mark.skipif(
    not recorded.TF >= (2, 4) or recorded.default_kind() == "keras3",
    reason="Keras 2 of earlier versions has no final policies, and Keras 3 refuses no strategy",
)
def test_keras_2_refuses_float16_layers_under_some_strategies():
    mixed_precision = tf.keras.mixed_precision
    mixed_precision.set_global_policy("mixed_float16")
    try:
        with central_storage().scope(), pytest.raises(ValueError, match="precision is not supp"):
            tf.keras.layers.Dense(1)
    finally:
        mixed_precision.set_global_policy("float32")


@pytest.mark.usefixtures("_nothing_is_allowed")
@pytest.mark.skipif(recorded.TF < (2, 2), reason="1.15 accepts every strategy")
@pytest.mark.parametrize("subject", OURS, ids=str)
def test_a_strategy_that_is_allowed_is_used(subject):
    allow = "tf_lossscale.keras.mixed_precision.allow_strategy"
    with recorded.eagerly(), central_storage().scope():
        inner = subject.inner("SGD", learning_rate=0.5)
        with pytest.raises(ValueError, match=f"{allow}\\(CentralStorageStrategy\\)"):
            subject.dynamic(inner, 8.0, 100)
    tfls.keras.mixed_precision.allow_strategy(type(central_storage()))
    tfls.keras.mixed_precision.allow_strategy(type(central_storage()))  # twice is once
    strategy = central_storage()
    with recorded.eagerly(), strategy.scope():
        optimizer = subject.dynamic(subject.inner("SGD", learning_rate=0.5), 8.0, 100)
        variable = recorded.make_variable(subject.kind, 1.0, "v")
        gradient = tf.compat.v2.Variable(1.0)
        for value, after, scale in ((1.0, 0.5, 8.0), (float("nan"), 0.5, 4.0), (1.0, 0.0, 4.0)):
            gradient.assign(value)

            def step():
                optimizer.get_scaled_loss(tf.constant(1.0))
                optimizer.apply_gradients([(gradient.read_value(), variable)])

            if subject.kind.name == "legacy" and recorded.TF >= (2, 5):
                # Keras itself does not take the sums that it is given there.
                with pytest.raises(NotImplementedError, match="CentralStorageStrategy"):
                    replicas.run(strategy, step)
                return
            replicas.run(strategy, step)
            assert recorded.number(variable) == after
            assert float(subject.scale_and_counter(optimizer)[0].numpy()) == scale


@pytest.mark.usefixtures("_nothing_is_allowed")
@pytest.mark.skipif(recorded.TF < (2, 2), reason="1.15 accepts every strategy")
@pytest.mark.parametrize("subject", OURS, ids=str)
def test_a_subclass_of_an_allowed_class_is_allowed(subject):
    tfls.keras.mixed_precision.allow_strategy(Other)
    with recorded.eagerly(), Derived().scope():
        optimizer = subject.dynamic(subject.inner("SGD", learning_rate=0.5), 8.0, 100)
        assert isinstance(optimizer, subject.cls)


@pytest.mark.usefixtures("_nothing_is_allowed")
@pytest.mark.skipif(recorded.TF < (2, 2), reason="1.15 accepts every strategy")
def test_a_step_under_an_allowed_strategy_calls_merge_call(monkeypatch: pytest.MonkeyPatch):
    subject = OURS[-1]
    calls = []
    original = DISTRIBUTE.ReplicaContext.merge_call

    def merge_call(self: Any, *args: Any, **kwargs: Any) -> Any:
        calls.append(self)
        return original(self, *args, **kwargs)

    monkeypatch.setattr(DISTRIBUTE.ReplicaContext, "merge_call", merge_call)
    tfls.keras.mixed_precision.allow_strategy(Other)
    strategy = Other()
    with recorded.eagerly(), strategy.scope():
        optimizer = subject.dynamic(subject.inner("SGD", learning_rate=0.5), 8.0, 100)
        variable = recorded.make_variable(subject.kind, 1.0, "v")
        gradient = tf.compat.v2.Variable(1.0)
        replicas.run(
            strategy, lambda: optimizer.apply_gradients([(gradient.read_value(), variable)])
        )
    assert calls


@pytest.mark.skipif(recorded.TF < (2, 2), reason="TensorFlow 1.15 accepts every strategy")
def test_a_tpu_is_refused_with_another_message(monkeypatch):
    """No strategy for TPUs can be made without one, so it has only the class."""
    strategy = object.__new__(DISTRIBUTE.experimental.TPUStrategy)
    monkeypatch.setattr(strategies.tf.distribute, "has_strategy", lambda: True)
    monkeypatch.setattr(strategies.tf.distribute, "get_strategy", lambda: strategy)
    with pytest.raises(ValueError, match="Loss scaling is not supported with TPUStrategy"):
        strategies.refuse_unsupported()


@pytest.mark.usefixtures("_nothing_is_allowed")
def test_only_classes_of_strategies_can_be_allowed():
    allow = tfls.keras.mixed_precision.allow_strategy
    for wrong in (central_storage(), int, "CentralStorageStrategy", None):
        with pytest.raises(TypeError, match=r"such as type\(strategy\)"):
            allow(wrong)
    allow(tf.compat.v1.distribute.OneDeviceStrategy)


STRATEGIES_OF_1_15: Dict[str, Callable[[Any], Any]] = {
    "one": lambda distribute: distribute.OneDeviceStrategy("/cpu:0"),
    "mirrored": lambda distribute: distribute.MirroredStrategy(["/cpu:0"]),
    "workers": lambda distribute: distribute.experimental.MultiWorkerMirroredStrategy(),
    "central": central_storage,
}


@pytest.mark.skipif(recorded.TF >= (2, 2), reason="later classes refuse some strategies")
@pytest.mark.parametrize("api", ["v1", "v2"])
@pytest.mark.parametrize("name", sorted(STRATEGIES_OF_1_15))
@pytest.mark.parametrize("subject", SUBJECTS, ids=str)
def test_1_15_accepts_every_strategy(subject, name: str, api: str):
    with recorded.eagerly():
        strategy = STRATEGIES_OF_1_15[name](getattr(tf.compat, api).distribute)
        with strategy.scope():
            optimizer = subject.dynamic(subject.inner("SGD", learning_rate=0.5), 8.0, 100)
            variable = recorded.make_variable(subject.kind, 1.0, "v")
            gradient = tf.compat.v2.Variable(1.0)
            for value, after in ((1.0, 0.5), (float("nan"), 0.5), (1.0, 0.0)):
                gradient.assign(value)
                replicas.run(
                    strategy,
                    lambda: optimizer.apply_gradients([(gradient.read_value(), variable)]),
                )
                assert float(getattr(variable, "primary", variable).numpy()) == after
            assert float(subject.scale_and_counter(optimizer)[0].numpy()) == 4.0
