"""`convert_to_legacy_optimizer` of Keras 2, which `compile` calls without the behavior of TF 2."""

import importlib
from typing import Any, Dict

import pytest
import recorded

import tf_lossscale as tfls

NEW = [kind for kind in recorded.kinds() if kind.name == "new"]
new = pytest.mark.parametrize("kind", NEW, ids=lambda kind: kind.name)
MIXED_PRECISION = tfls.keras.mixed_precision
# The original fails on TensorFlow 2.11.
CLASSES = ["ours"] + (["original"] if recorded.TF >= (2, 12) else [])


def convert(kind: Any, optimizer: Any) -> Any:
    package = kind.keras.optimizers.SGD.__module__.partition(".optimizers")[0]
    return importlib.import_module(package + ".optimizers").convert_to_legacy_optimizer(optimizer)


def own_schedule(kind: Any) -> Any:
    class Own(kind.optimizers.schedules.LearningRateSchedule):  # type: ignore[misc,name-defined]
        """A schedule that Keras cannot make from a configuration: it is not registered."""

        def __call__(self, step: Any) -> float:
            return 0.25

        def get_config(self) -> Dict[str, Any]:
            return {}

    return Own()


RATES: Dict[str, Any] = {
    "number": lambda kind: 0.25,
    "schedule": lambda kind: kind.optimizers.schedules.InverseTimeDecay(0.25, 1, 0.5),
    "own schedule": own_schedule,
}


@pytest.mark.parametrize("whose", CLASSES)
@pytest.mark.parametrize("rate", list(RATES))
@new
def test_what_is_converted(kind: Any, rate: str, whose: str):
    learning_rate = RATES[rate](kind)
    owner = MIXED_PRECISION if whose == "ours" else kind.keras.mixed_precision
    given = owner.LossScaleOptimizer(kind.optimizers.Adam(learning_rate), True, 8.0, 3)
    legacy = convert(kind, given)
    kept = [legacy.dynamic, legacy.initial_scale, legacy.dynamic_growth_steps]
    assert kept == [True, 8.0, 3]
    inner = legacy.inner_optimizer
    assert isinstance(inner, kind.optimizers.legacy.Adam)
    if rate == "number":
        assert recorded.number(inner.learning_rate) == 0.25
    else:
        assert inner._get_hyper("learning_rate").get_config() == learning_rate.get_config()
    assert isinstance(legacy, MIXED_PRECISION.LossScaleOptimizer)
    assert not isinstance(legacy, MIXED_PRECISION.experimental.LossScaleOptimizer)


LOSS_SCALES: Dict[str, Any] = {
    "dynamic": lambda: "dynamic",
    "below 1": lambda: 0.5,
    "object": lambda: tfls.compat.v1.mixed_precision.DynamicLossScale(8.0, 3),
    "multiplier": lambda: tfls.compat.v1.mixed_precision.DynamicLossScale(8.0, 3, 4.0),
}


@pytest.mark.parametrize("loss_scale", list(LOSS_SCALES))
@pytest.mark.parametrize("rate", ["number", "schedule"])
@new
def test_the_experimental_class_stays_one(kind: Any, rate: str, loss_scale: str):
    experimental = MIXED_PRECISION.experimental.LossScaleOptimizer
    inner = kind.optimizers.SGD(RATES[rate](kind))
    given = experimental(inner, LOSS_SCALES[loss_scale]())
    legacy = convert(kind, given)
    assert isinstance(legacy, experimental)
    assert isinstance(legacy.inner_optimizer, kind.optimizers.legacy.SGD)
    settings = ("dynamic", "initial_scale", "dynamic_growth_steps")
    assert [getattr(legacy, name) for name in settings] == [
        getattr(given, name) for name in settings
    ]
    assert getattr(legacy._loss_scale, "multiplier", None) == getattr(
        given._loss_scale, "multiplier", None
    )


@new
def test_no_other_configuration_has_the_role(kind: Any):
    inner = kind.optimizers.SGD(0.25)
    optimizer = MIXED_PRECISION.experimental.LossScaleOptimizer(inner, "dynamic")
    expected = {"inner_optimizer", "dynamic", "initial_scale", "dynamic_growth_steps"}
    assert set(optimizer.get_config()) == expected
    convert(kind, optimizer)
    assert set(optimizer.get_config()) == expected
    assert set(kind.optimizers.serialize(optimizer)["config"]) == expected
