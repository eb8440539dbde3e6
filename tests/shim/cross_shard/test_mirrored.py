"""Four logical CPU devices under MirroredStrategy, against NumPy."""

import numpy as np
import pytest
from processes import LONG, run_program
from support import TF_VERSION

PROGRAM = "cross_shard/programs/mirrored.py"
GROUPS = {
    "whole": [[0, 1, 2, 3]],
    "pairs": [[0, 1], [2, 3]],
    "crossed": [[0, 2], [3, 1]],
    "singles": [[2], [0], [3], [1]],
}
pytestmark = pytest.mark.by_value("mode", "dtypes")

COUNTS = {"graph": 15 if LONG else 9, "function": 12 if LONG else 7, "eager": 4}
REPLICA = np.array([1.0, 2.0, 3.0, 4.0])
RESULTS = {}


@pytest.fixture(
    params=[
        "function",
        *(pytest.param(mode, marks=pytest.mark.slow) for mode in ("graph", "eager")),
    ]
)
def mode(request):
    if request.param not in RESULTS:
        RESULTS[request.param] = run_program(PROGRAM, request.param)
    return request.param


def group_sums(values, groups):
    total = np.empty_like(values)
    for group in groups:
        total[group] = values[group].sum(axis=0)
    return total


def test_sums(mode):
    found = RESULTS[mode]["sums"]
    assert len(found) == 24
    for key, values in found.items():
        expected = group_sums(np.stack([REPLICA, 3 * REPLICA], 1), GROUPS[key.split()[1]])
        np.testing.assert_array_equal(values, expected, err_msg=key)


def test_gradients_are_sums_over_the_same_groups(mode):
    for key, values in RESULTS[mode]["gradients"].items():
        expected = group_sums(np.stack([REPLICA, np.ones(4)], 1), GROUPS[key])
        np.testing.assert_array_equal(values, expected, err_msg=key)


# Gradients of the weights (the replica's number) and of the row of the table (4), as the inner
# optimizer is to apply them on each replica.
FOUR = np.full(4, 4.0)
APPLIED = {
    "mean": (np.full(4, 2.5), FOUR),
    "sum": (np.full(4, 10.0), 4 * FOUR),
    "pairs": (np.array([1.5, 1.5, 3.5, 3.5]), FOUR),
    "crossed": (np.array([4.0, 6.0, 4.0, 6.0]), 2 * FOUR),
    # Norms: 2.5 * sqrt(2) is over 3; of the crossed groups only 3 * sqrt(2) is.
    "clipping": (np.full(4, 3 / np.sqrt(2)), np.full(4, 3.0)),
    "clipping crossed": (np.array([2.0, 3 / np.sqrt(2)] * 2), np.full(4, 3.0)),
    "assigning": (np.full(4, 2.5), FOUR),
    "twice": (np.full(4, 40.0), 16 * FOUR),
    "v1 inside pairs": (np.array([1.5, 1.5, 3.5, 3.5]), FOUR),
}


def test_each_step_is_the_inner_optimizers_with_the_summed_gradients(mode):
    trained = RESULTS[mode]["trained"]
    assert len(trained) == COUNTS[mode]
    for name, history in trained.items():
        scaled = "contrib" in name or "v1" in name
        weight_gradients, row_gradients = APPLIED.get(name, APPLIED["mean"])
        weights, rows = np.ones(4), np.ones(4)
        weight_momentum, row_momentum = np.zeros(4), np.zeros(4)
        for step, (found_weights, found_rows) in enumerate(history):
            if not (scaled and step == 1):  # then the last replica overflows: none takes the step
                weight_momentum = 0.5 * weight_momentum + weight_gradients
                row_momentum = 0.5 * row_momentum + row_gradients
                weights = weights - 0.1 * weight_momentum
                rows = rows - 0.1 * row_momentum
            where = f"{name}, step {step}"
            np.testing.assert_allclose(found_weights, weights, 1e-5, 1e-6, err_msg=where)
            np.testing.assert_allclose(found_rows, rows, 1e-5, 1e-6, err_msg=where)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["graph"], indirect=True)
def test_a_session_may_fetch_the_sum_of_one_replica(mode):
    assert RESULTS[mode]["one"] == 6.0


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["graph"], indirect=True)
def test_each_replica_may_have_a_loop_in_a_session(mode):
    rounds = 20 * 21 / 2
    pairs = group_sums(REPLICA, GROUPS["crossed"])
    totals, gradients = RESULTS[mode]["loops"]
    np.testing.assert_allclose(totals, rounds * (10.0 + REPLICA * pairs))
    # Of r: 1 from each replica by the first sum; the pair's sum itself, and by way of that sum the
    # replica numbers of the pair.
    np.testing.assert_allclose(gradients, rounds * (4.0 + pairs + pairs))


def test_sums_in_branches_and_in_loops_around_the_replicas(mode):
    assert RESULTS[mode]["branch"] == [3.0, 3.0, 7.0, 7.0]
    total = sum(
        group_sums(REPLICA * (count + 1), list(GROUPS.values())[count % 4]) for count in range(6)
    )
    assert RESULTS[mode]["loop"] == [3 * total.sum()] * 6


@pytest.mark.slow
@pytest.mark.skipif(TF_VERSION < (2, 0), reason="has control flow v1")
@pytest.mark.parametrize("mode", ["graph"], indirect=True)
def test_rounds_in_a_session_do_not_overlap(mode):
    """If they did, the program would fail, hang or crash now and then."""
    rounds = RESULTS[mode]["rounds"]
    assert len(rounds) == 6
    assert rounds.index("ends 0.0") < rounds.index("begins 1")
    assert rounds.index("ends 4.0") < rounds.index("begins 2")
    said = RESULTS[mode]["deeper"]
    assert sorted(said) == ["branch", "function", "loop"]
    assert all("tf.compat.v1.disable_control_flow_v2()" in text for text in said.values())


def test_each_replica_may_have_a_loop_in_eager_mode_only(mode):
    """And with control flow v1, as above."""
    body, condition = RESULTS[mode]["own loop"], RESULTS[mode]["own condition"]
    if mode == "eager":
        assert body == [40.0] * 4
        assert condition == [10.0, 20.0, 30.0, 40.0]
    else:
        assert "A sum over replicas is inside a loop" in body
        assert "A sum over replicas is inside a loop" in condition


def test_loops_and_branches_around_the_replicas_may_use_one_of_them(mode):
    """In a Session with each control flow."""
    # The sum is 10 * x, so each round doubles x.
    used = RESULTS[mode]["used"]
    assert len(used) == (2 if mode == "graph" and TF_VERSION >= (2, 0) else 1)
    np.testing.assert_allclose(used, [[16.0, 20.0]] * len(used), rtol=1e-6)


@pytest.mark.parametrize("mode", ["function"], indirect=True)
def test_what_would_wait_for_ever_says_so(mode):
    said = RESULTS[mode]["refusals"]
    assert sorted(said) == ["assigning", "function", "groups", "outside", "variables"]
    assert "tf.function around `strategy.run`" in said["function"]
    assert said["outside"].startswith("RuntimeError: cross_replica_sum was called outside")
    assert said["groups"].startswith("ValueError: Argument `group_assignment`")
    assert said["assigning"].startswith("NotImplementedError: group_assignment=[[0, 1], [2, 3]]")
    assert "Assigning.apply_gradients assigns" in said["assigning"]
    assert said["variables"].startswith("ValueError")  # those that the step makes are the reason


@pytest.fixture(scope="module", params=[pytest.param("graph", marks=pytest.mark.slow), "function"])
def dtypes(request):
    """16-bit gradients, several dtypes, and dense beside sparse ones, in one step."""
    return run_program(PROGRAM, request.param, "dtypes")


@pytest.mark.parametrize("case", ["plain", "whole", "crossed"])
def test_each_gradient_is_summed_in_its_dtype(dtypes, case):
    sums = [4.0, 6.0] * 2 if case == "crossed" else [10.0] * 4
    assert len(dtypes[case]) == 15
    for key, found in dtypes[case].items():
        name = key.split()[1]
        expected = {
            "a": [[total] for total in sums],
            "b": [[2 * total] for total in sums],
            "large": [[total] for total in sums],
            "table": [[0.0, 6 * total] for total in sums],
            "unused": [[0.0]] * 4,
        }[name]
        assert found == expected, key


OPTIMIZERS = ("bare", "cross", "v1", "contrib")


@pytest.fixture(scope="module")
def branches():
    """Where a branch may stand around an optimizer's step, as docs/cross-shard.md says."""
    return run_program("cross_shard/programs/branches.py")


# Each replica's gradient is the weight, 1. The mean of the loss is taken by `minimize` alone.
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize(
    "place", ["around traced", "around eager", "inside eager", "chosen traced", "chosen eager"]
)
def test_the_step_is_taken(branches, optimizer, place):
    takes_mean = optimizer == "cross" and not place.startswith("chosen")
    assert branches[f"{optimizer} {place}"] == [0.0 if takes_mean else -1.0] * 2


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_traced_branch_inside_a_replica_fails_as_with_the_bare_optimizer(branches, optimizer):
    assert "merge_call" in branches[f"{optimizer} inside traced"]


@pytest.mark.skipif(TF_VERSION >= (2, 16), reason="TensorFlow has no Estimators from 2.16 on")
def test_an_estimator_with_a_strategy_takes_the_mean_once():
    found = run_program("cross_shard/programs/estimator.py")
    assert sorted(found) == ["bare", "mean", "sum"]
    # The losses of the four replicas have the gradients 1, 2, 3 and 4; the rate is 0.1.
    np.testing.assert_allclose(found["bare"], [-0.5], rtol=1e-5)  # an Estimator takes the mean
    np.testing.assert_allclose(found["mean"], [-0.5], rtol=1e-5)
    np.testing.assert_allclose(found["sum"], [-2.0], rtol=1e-5)
