"""Each step calls the methods of the inner optimizer that the original calls, in its order.

`programs/hooks.py` records the calls: with which arguments, which values of flags, and how many
pairs. What differs on purpose is in `DIFFERENCES`, and in docs/known-differences.md.
"""

import os
from typing import Any, Callable, Dict, List, NamedTuple, Tuple

import processes
import pytest
import recorded
import tensorflow as tf

import tf_lossscale as tfls

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs", "hooks.py")
Calls = Dict[str, List[str]]


class Difference(NamedTuple):
    """A difference on purpose.

    Attributes:
      reason: why it is there.
      subjects: in which logs of the original.
      steps: in which steps.
      rewrite: what is left of a log to be compared.
    """

    reason: str
    subjects: Callable[[str], bool]
    steps: Callable[[str], bool]
    rewrite: Callable[[Calls], Calls]


def pairs_with_gradient(calls: Calls) -> Calls:
    return {
        who: [
            each.replace("apply_gradients(grads_and_vars[2]", "apply_gradients(grads_and_vars[1]")
            for each in made
        ]
        for who, made in calls.items()
    }


def without_build(calls: Calls) -> Calls:
    building = ("build(", "_build_index_dict(", "_var_key(", "add_variable_from_reference(")
    return {
        who: [each for each in made if not each.startswith(building)] for who, made in calls.items()
    }


DIFFERENCES: List[Difference] = [
    Difference(
        "2.11 does not build the inner optimizer before its step; later versions do",
        lambda subject: subject.endswith("-new") and recorded.TF < (2, 12),
        lambda step: True,
        without_build,
    ),
    Difference(
        "up to 2.4 pairs without a gradient reach apply_gradients of the inner optimizer",
        lambda subject: recorded.TF < (2, 5),
        lambda step: "bad" in step or "None" in step,
        pairs_with_gradient,
    ),
]


def pairs() -> List[Tuple[str, str]]:
    """The original and ours, over each kind of inner optimizer."""
    found = []
    for each in recorded.originals():
        if each.api == "experimental" and recorded.TF >= (2, 4):
            continue  # the same steps as the final one
        if recorded.TF < (2, 2):
            continue  # that original cannot take a step in a function, nor is it given flags
        api = "final" if each.api == "keras3" else each.api
        found.append((str(each), f"ours-{api}-{each.kind.name}"))
    return found


PAIRS = pairs()


@pytest.fixture(scope="module")
def logs() -> Dict[str, Any]:
    subjects = [each for pair in PAIRS for each in pair]
    return processes.run_program(PROGRAM, *subjects, timeout=500)


@pytest.mark.parametrize("pair", PAIRS, ids=[original for original, _ in PAIRS])
def test_the_inner_optimizers_methods_are_called(logs: Dict[str, Any], pair: Any) -> None:
    original, ours = (logs[each] for each in pair)
    assert set(original) == set(ours)
    works = {step: calls for step, calls in original.items() if "raises" not in calls}
    assert len(works) >= 8
    for step, calls in works.items():
        own = ours[step]
        for difference in DIFFERENCES:
            if difference.subjects(pair[0]) and difference.steps(step):
                calls, own = difference.rewrite(calls), difference.rewrite(own)
        assert own == calls, step


@pytest.mark.skipif(not PAIRS, reason="there is no original here to be compared with")
def test_the_log_is_made_from_the_class(logs: Dict[str, Any]) -> None:
    """Among what is recorded are the methods that others override."""
    hooks = {
        "legacy": {"apply_gradients"}
        | ({"_aggregate_gradients"} if recorded.TF >= (2, 2) else set()),
        "new": {"compute_gradients", "aggregate_gradients", "apply_gradients", "build"},
        "keras3": {"apply", "build", "update_step"},
    }
    for original, _ in PAIRS:
        seen = {
            call.partition("(")[0]
            for calls in logs[original].values()
            for who, made in calls.items()
            if who not in ("weights", "raises")
            for call in made
        }
        assert seen >= hooks[original.rpartition("-")[2]], seen


def legacy_hooked(kind: Any, change: Callable[[Any], Any], where: str) -> Any:
    """An inner `OptimizerV2` that changes gradients in one of the ways that there are."""
    sgd = kind.optimizers.SGD

    def changed(grads_and_vars: Any) -> Any:
        return [(change(gradient), variable) for gradient, variable in grads_and_vars]

    if where == "gradient_aggregator":
        return sgd(0.5, gradient_aggregator=changed)
    if where == "gradient_transformers":
        return sgd(0.5, gradient_transformers=[changed])

    class Hooked(sgd):  # type: ignore[misc, valid-type]
        def _transform_gradients(self, grads_and_vars: Any) -> Any:
            if where == "_transform_gradients":
                return changed(super()._transform_gradients(grads_and_vars))
            return super()._transform_gradients(grads_and_vars)

        def _aggregate_gradients(self, grads_and_vars: Any) -> Any:
            result = super()._aggregate_gradients(grads_and_vars)
            if where != "_aggregate_gradients":
                return result
            return [change(each) for each in result] if recorded.TF < (2, 4) else changed(result)

        def apply_gradients(self, grads_and_vars: Any, *args: Any, **kwargs: Any) -> Any:
            if where == "apply_gradients":
                grads_and_vars = changed(grads_and_vars)
            return super().apply_gradients(grads_and_vars, *args, **kwargs)

    return Hooked(0.5)


def new_hooked(kind: Any, change: Callable[[Any], Any], where: str) -> Any:
    class Hooked(kind.optimizers.SGD):  # type: ignore[misc, name-defined]
        def aggregate_gradients(self, grads_and_vars: Any) -> Any:
            result = super().aggregate_gradients(grads_and_vars)
            return [(change(gradient), variable) for gradient, variable in result]

    return Hooked(0.5)


def hooked() -> List[Tuple[Any, Any, str]]:
    found: List[Tuple[Any, Any, str]] = []
    for kind in recorded.kinds():
        if kind.name == "new":
            found.append((kind, new_hooked, "aggregate_gradients"))
        if kind.name == "legacy" and recorded.TF >= (2, 2):
            ways = ["_aggregate_gradients"]
            if recorded.TF >= (2, 4):
                ways += ["_transform_gradients", "gradient_aggregator", "gradient_transformers"]
            if recorded.TF < (2, 5):
                ways.append("apply_gradients")
            found += [(kind, legacy_hooked, where) for where in ways]
    return found


HOOKED = hooked()  # none on 1.15, whose optimizers have no such methods


@pytest.mark.parametrize("how", HOOKED, ids=[f"{kind.name}-{where}" for kind, _, where in HOOKED])
@pytest.mark.parametrize("in_function", [False, True], ids=["eager", "function"])
def test_what_is_applied_is_tested(how: Any, in_function: bool) -> None:
    """A hook that makes finite gradients infinite cannot reach the weights."""
    kind, make, where = how
    factor = tf.compat.v2.Variable(2.0)
    inner = make(kind, lambda gradient: gradient * factor, where)
    optimizer = tfls.keras.mixed_precision.LossScaleOptimizer(inner, initial_scale=8.0)
    variable = recorded.make_variable(kind, 1.0, "v")

    def step() -> None:
        optimizer.apply_gradients([(tf.ones([]), variable)])

    run = tf.function(step, autograph=False) if in_function else step
    run()
    assert float(variable.numpy()) == 0.0  # changed once
    assert float(optimizer.loss_scale) == 8.0
    assert int(optimizer.dynamic_counter) == 1
    factor.assign(float("inf"))
    run()
    assert float(variable.numpy()) == 0.0
    assert float(optimizer.loss_scale) == 4.0
    assert int(optimizer.dynamic_counter) == 0
    assert int(optimizer.iterations) == 2
    factor.assign(2.0)
    run()
    assert float(variable.numpy()) == -1.0
    assert int(optimizer.iterations) == 3
