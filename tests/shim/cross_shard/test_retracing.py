"""Workers that trace a step at other times, or take another step: real processes on loopback."""

import numpy as np
import pytest
import support
from processes import LONG, start_workers, wait_for_workers

RETRACING, MISMATCH = (
    f"cross_shard/programs/{program}.py" for program in ("retracing", "mismatch")
)
TIMEOUT = 540  # for machines under load: it takes a tenth of this
# TensorFlow 1.15 cannot make variables of 16 bits under the strategy.
HALF = not support.IS_TF1
# Up to TensorFlow 2.4 the strategy itself waits forever when a worker traces again.
STRATEGY_RETRACES = support.TF_VERSION >= (2, 5)
STEPS = 3
SIZES = (3, 1, 4)

pytestmark = pytest.mark.slow


def cases():
    found = ["sums:-:function", "sums:-:eager"]
    if LONG:
        found += [
            f"{what}:{optimizer}:{mode}"
            for what in ("dense", "half", "mixed", "scaled", "reversed", "subgroups")
            for optimizer in ("sgd", "momentum", "assigning")
            for mode in ("function", "eager")
        ]
    else:
        found += ["dense:assigning:function", "dense:momentum:function", "half:sgd:function"]
        found += ["mixed:momentum:eager", "scaled:assigning:function"]
    if STRATEGY_RETRACES:
        names = ("sgd", "momentum") if LONG else ("momentum",)
        found += [
            f"{what}:{name}:function" for what in ("contrib", "v1", "keras") for name in names
        ]
    return [case for case in found if HALF or not case.startswith(("half", "mixed"))]


def expected(case, workers, index):
    """The weights after each step, or the sums."""
    what, optimizer, _ = case.split(":")
    members = {index, (index + 2) % 4} if what == "subgroups" else range(workers)
    totals = [sum(member + 1.0 for member in members) * (step + 1) for step in range(STEPS)]
    if what == "sums":
        return [[t, 2 * t, 2 * workers * t, 2 * t, t, t, t] for t in totals]
    history, weight, velocity = [], 0.0, 0.0
    for total in totals:
        velocity = total + (0.5 * velocity if optimizer == "momentum" else 0.0)
        weight -= 0.5 * velocity
        history.append([[weight * (i + 1)] * size for i, size in enumerate(SIZES)])
    return history


def test_workers_agree_however_often_each_has_traced():
    names = cases()
    count = 4 if LONG else 2  # with four, subgroups are of two
    workers = start_workers(RETRACING, count, *names)
    results = wait_for_workers(workers, timeout=TIMEOUT)
    for index, found in enumerate(results):
        assert list(found) == names
        for case in names:
            want = expected(case, count, index)
            for step in range(STEPS):
                for ours, theirs in zip(found[case][step], want[step]):
                    np.testing.assert_allclose(ours, theirs, rtol=1e-3, err_msg=case)


# In a process of its own each: TensorFlow's collectives are of no use after an error.
MISMATCHES = (
    [
        f"{what}:{optimizer}:{mode}"
        for what in ("order", "optimizer")
        for optimizer in ("sgd", "momentum", "assigning")
        for mode in ("function", "eager")
    ]
    + ["sum:-:function", "sum:-:eager"]
    if LONG
    else ["order:momentum:function", "sum:-:eager"]
)
LINES = {"order": ("update_vector", "update_scalar"), "sum": ("(2,)", "()")}


@pytest.mark.parametrize("case", MISMATCHES)
def test_another_step_of_one_worker_is_an_error_on_all(case):
    count = 3 if LONG else 2
    workers = start_workers(MISMATCH, count, case)
    results = wait_for_workers(workers, timeout=TIMEOUT)
    for index, result in enumerate(results):
        error = result["error"]
        assert "workers are at different steps" in error
        assert result["type"] == "InvalidArgumentError"
        assert result["kept"]  # nothing was applied
        shown = LINES.get(case.split(":")[0])
        if shown:
            assert shown[index == count - 1] in error
            assert shown[index != count - 1] not in error


@pytest.mark.skipif(support.TF_VERSION >= (2, 4), reason="here the next step works")
def test_collectives_no_longer_work_after_the_error():
    for result in wait_for_workers(start_workers(MISMATCH, 2, "again:momentum:function"), TIMEOUT):
        assert "workers are at different steps" in result["error"]
        assert not result["later"].startswith("no error")


def test_a_shape_that_only_some_workers_know_while_tracing():
    """`sums` above has shapes that none knows, too."""
    for result in wait_for_workers(start_workers(MISMATCH, 2, "unknown:-:function"), TIMEOUT):
        if support.TF_VERSION < (2, 4):
            assert "workers are at different steps" in result["error"]
        else:
            assert result["error"] == "no error, and 4.0"


def test_two_optimizers_of_one_line_look_the_same():
    results = wait_for_workers(start_workers(MISMATCH, 2, "twins:momentum:function"), TIMEOUT)
    for result in results:
        assert result["error"] == "no error, and 0.0"
        assert not result["kept"]


def test_workers_wait_for_one_that_takes_fewer_steps():
    results = wait_for_workers(start_workers(MISMATCH, 2, "fewer:momentum:function"), TIMEOUT)
    assert [result["error"] for result in results] == ["no error, and 0.0"] * 2
    first, last = (result["seconds"] for result in results)
    assert first > 2.0 + last


# In a Session nothing is traced again, but graphs may differ. (With Momentum TensorFlow itself
# stops where they do, as it makes slots in the order of the steps.) Three workers, as a worker can
# only be left waiting by one that others have ended. test_workers.py has the same graph on all.
CASES = "order:sgd order:assigning late:sgd sum:- shape:-"
IN_SESSIONS = [case + ":session" for case in CASES.split()]


@pytest.mark.parametrize("case", IN_SESSIONS[: None if LONG else 1])
def test_another_graph_of_one_worker_is_an_error_on_all(case):
    workers = start_workers(MISMATCH, 3, case)
    for result in wait_for_workers(workers, timeout=TIMEOUT):
        assert "workers are at different steps" in result["error"]
        assert result["type"] == "InvalidArgumentError"
        assert result["kept"]
        # Each waited before it failed: otherwise one could be left waiting, though it seldom is.
        assert result["seconds"] > 9.9
