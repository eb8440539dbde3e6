"""The update rules that `compare` replays, against the recorded traces of the real classes."""

import copy
import glob
import json
import math
import os

import pytest

from tf_lossscale._compare.scale_rules import parameters_that_differ, replay
from tf_lossscale._records.format import OptimizerRecord, ScaleParameters, number

TESTS = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TRACES = sorted(glob.glob(os.path.join(TESTS, "data", "golden", "*.json")))


def parameters(kind, given):
    values = {name: float(value) for name, value in given.items()}
    if kind == "contrib":
        return ScaleParameters(
            "exponential",
            values["init_loss_scale"],
            int(values["incr_every_n_steps"]),
            values.get("incr_ratio", 2.0),
            int(values.get("decr_every_n_nan_or_inf", 2)),
            values.get("decr_ratio", 0.8),
        )
    multiplier = values.get("multiplier", 2.0)
    return ScaleParameters(
        "keras3" if kind == "k3" else "dynamic",
        values.get("initial_loss_scale", 2.0**15),
        int(values.get("increment_period", 2000)),
        multiplier,
        shrink_factor=1 / multiplier if multiplier else math.inf,
    )


def records(path):
    with open(path) as file:
        trace = json.load(file)
    for case in trace["cases"]:
        found = OptimizerRecord("", parameters(trace["kind"], case["params"]))
        flags = [flag == "1" for flag in case["flags"]] + [None]
        for step, (scale, finite) in enumerate(zip(case["loss_scale"], flags)):
            found.add(step, scales=number(scale), finite=finite)
        yield found


@pytest.mark.parametrize("path", TRACES, ids=os.path.basename)
def test_the_rules_replay_what_the_real_classes_did(path):
    found = list(records(path))
    assert found
    assert [replay(trace) for trace in found] == [None] * len(found)


def test_a_scale_that_the_rule_does_not_give_is_found():
    for path in TRACES:
        for found in records(path):
            wrong = copy.deepcopy(found)
            place = len(wrong.scales) // 2
            was = wrong.scales[place]
            if not math.isfinite(was) or was == 0:
                continue
            wrong.scales[place] = was * 3
            assert replay(wrong).step in (place, place + 1)


def test_after_a_gap_the_counts_are_unknown_until_the_scale_changes():
    found = OptimizerRecord("", ScaleParameters("dynamic", 8.0, 4))
    for step, scale in enumerate([8.0] * 4 + [16.0] * 4 + [32.0] * 5):
        if not 1 <= step <= 2:
            found.add(step, scales=scale, finite=True)
    assert replay(found).step == 12
    del found.scales[-1], found.steps[-1], found.finite[-1]
    assert replay(found) is None


def shrinking(rule, minimum, scales):
    """A record of skipped steps with these scales."""
    found = OptimizerRecord("", ScaleParameters(rule, scales[0], minimum_scale=minimum))
    for step, scale in enumerate(scales):
        found.add(step, scales=scale, finite=False)
    return found


@pytest.mark.parametrize("rule", ["dynamic", "exponential"])
def test_a_scale_shrinks_down_to_its_minimum(rule):
    assert replay(shrinking(rule, 0.25, [1.0, 0.5, 0.25, 0.25])) is None
    assert replay(shrinking(rule, 3.0, [8.0, 4.0, 3.0, 3.0])) is None
    assert replay(shrinking(rule, 1.0, [2.0, 1.0, 1.0])) is None
    below = replay(shrinking(rule, 0.25, [0.5, 0.25, 0.125]))
    assert (below.step, below.expected, below.parameter) == (2, 0.25, "the smallest scale")
    assert replay(shrinking(rule, 0.25, [1.0, 0.5, 0.5])).step == 2
    assert replay(shrinking("keras3", 1.0, [1.0, 0.5, 0.25])) is None  # it has no minimum


def test_minimums_are_declared_parameters():
    old, new = ScaleParameters("dynamic"), ScaleParameters("dynamic", minimum_scale=0.125)
    assert parameters_that_differ(old, new) == ["minimum_scale 1 and 0.125"]
    assert parameters_that_differ(new, new) == []
    assert parameters_that_differ(ScaleParameters("keras3"), new) == []
    assert parameters_that_differ(ScaleParameters("fixed"), ScaleParameters("fixed")) == []
