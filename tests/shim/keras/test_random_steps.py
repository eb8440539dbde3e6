"""Random programs of Keras 2 train on Keras 3 as on Keras 2, and mixed with `fit` as well.

The oracle is the class of tf-keras. For steps of Keras 3, it is a step of Keras 2 with the same
loss.
"""

import importlib
import math
import random
import re
from typing import Any, List

import pytest
import random_steps
import recorded
import tensorflow as tf

import tf_lossscale as tfls

if recorded.TF < (2, 16):
    pytest.skip("there is no Keras 3", allow_module_level=True)
keras = importlib.import_module("keras")
tf_keras = pytest.importorskip("tf_keras", reason="the oracle is tf-keras")

COUNT = {"small": 4, "long": 500}
# Steps in parts and of both styles cannot always be explained; then they must be refused.
MOST_REFUSED = 0.02
EXPLAINED = re.compile("cannot tell whether its gradients are scaled|One step called both")


def made(cls: Any, package: Any, chance: random.Random) -> Any:
    momentum = chance.choice([0.0, 0.5])
    inner = package.optimizers.SGD(0.125, momentum=momentum)
    return cls(inner, initial_scale=chance.choice([64.0, 256.0]), dynamic_growth_steps=2)


def program(seed: int, count: int, ours: bool) -> random_steps.Program:
    package = keras if ours else tf_keras
    namespace = tfls.keras if ours else tf_keras
    chance = random.Random(seed)
    cls = namespace.mixed_precision.LossScaleOptimizer
    optimizers = [made(cls, package, chance) for _ in range(count)]
    return random_steps.Program(optimizers, keras.Variable if ours else tf.Variable)


def assert_same(found: List[Any], expected: List[Any], steps: List[Any]):
    for position, (row, other) in enumerate(zip(found, expected)):
        for mine, theirs in zip(row, other):
            assert all(map(is_close, mine, theirs)), (steps[: position + 1], mine, theirs)


def is_close(mine: float, theirs: float) -> bool:
    if math.isnan(theirs):
        return math.isnan(mine)
    return mine == theirs or math.isclose(mine, theirs, rel_tol=1e-5, abs_tol=1e-6)


@pytest.mark.filterwarnings("ignore")  # tf-keras warns of steps without scaling
@pytest.mark.parametrize(
    "keras_3",
    [
        pytest.param(False, id="two optimizers", marks=pytest.mark.slow),
        pytest.param(True, id="with fit"),
    ],
)
def test_random_programs(size: str, keras_3: bool):
    count = 1 if keras_3 else 2
    refused = 0
    for seed in range(COUNT[size]):
        steps = random_steps.random_program(seed, count, keras_3)
        oracle = [
            step._replace(style="usual") if step.style in random_steps.KERAS_3_STYLES else step
            for step in steps
        ]
        expected = random_steps.run(program(seed, count, ours=False), oracle)
        try:
            found = random_steps.run(program(seed, count, ours=True), steps)
        except RuntimeError as error:
            if not (keras_3 and EXPLAINED.search(str(error))):
                raise
            refused += 1
            continue
        assert_same(found, expected, steps)
    if size == "long":
        assert refused <= MOST_REFUSED * COUNT[size]
