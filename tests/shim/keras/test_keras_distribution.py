"""Under a strategy every replica takes the same decision, from what the optimizer will apply.

Three logical devices of one process, and two workers that talk over gRPC.
"""

import math
import os
from typing import Any, Dict, List

import processes
import pytest
import recorded

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs", "mirrored.py")
LEARNING_RATE = 2.0**-4
REPLICAS = 3  # so that one is neither the first nor the last
KERAS_3 = "original-keras3-keras3"
# How many sums over the replicas a step makes, and the sum of clipped gradients (each is 2, clipped
# to 1) that it applies: Keras 2 clips the sum, Keras 3 each replica's own.
SUMS = {"sums": (1, 2.0 * REPLICAS), "sums-clipped": (1, 1.0)}
KERAS_3_SUMS = {"sums": (1, 2.0 * REPLICAS), "sums-clipped": (2, 1.0 * REPLICAS)}
NO_STEPS = (":sums", ":sums-clipped", ":refused", ":norm")
BEFORE_2_5 = "original-experimental-legacy" if recorded.TF < (2, 5) else ""


# The gradient of each element of the variables of `mirrored.py`, where a replica's is 1.
ELEMENTS = [1.0] + 2 * [-1.0] + 6 * [2.0**-8]
MOMENTA = {"momentum": 0.5}
if os.environ.get("TFLS_TEST_SIZE") == "long":
    MOMENTA["sgd"] = 0.0


def check(runs: Dict[str, List[Dict[str, Any]]], what: str) -> None:
    assert sorted(runs) == sorted(MOMENTA)
    for name, rows in runs.items():
        moved, velocity, scale = 0.0, 0.0, 2.0**20
        for number, row in enumerate(rows):
            where = f"{what}, {name}, step {number}: {row}"
            if row["applied"] is None:
                scale /= 2
            else:
                velocity = MOMENTA[name] * velocity + LEARNING_RATE * row["applied"]
                moved += velocity
            assert row["loss_scale"] == scale, where
            assert row["iterations"] == number + 1, where
            assert row["weights"], where
            expected = [1.0 - moved * each for each in ELEMENTS]
            assert all(each == expected for each in row["weights"]), where


def specifications(size: str) -> List[str]:
    """The classes that the program runs: ours, and the originals whose defects are fixed."""
    found = []
    for subject in recorded.with_own_step() if size == "small" else recorded.ours():
        found += [f"{subject}:function"]
        found += [f"{subject}:eager"] if size != "small" else []
        if subject.kind.name == "keras3":
            found += [f"{subject}:function-scaled"]
        if recorded.TF >= (2, 3):
            found += [f"{subject}:function-aggregated"]
        if recorded.TF >= (2, 4):
            found += [f"{subject}:norm"]
        if recorded.TF >= (2, 5):
            found += [f"{subject}:{mode}" for mode in SUMS]
        if subject.kind.name == "keras3":
            found += [f"{subject}:refused"]
    return found + [f"{each}:function" for each in recorded.originals()]


@pytest.fixture(scope="module")
def mirrored(size: str) -> Dict[str, Any]:
    """What the steps on logical devices gave; one process, because each start takes long."""
    found = specifications(size)
    return processes.run_program(PROGRAM, str(REPLICAS), *found, timeout=540, keras=True)


def test_one_decision_for_all_replicas(mirrored: Dict[str, Any], size: str) -> None:
    ours = [each for each in specifications(size) if "ours" in each and not each.endswith(NO_STEPS)]
    assert ours
    for what in ours:
        assert all(len(rows) > REPLICAS for rows in mirrored[what].values())
        check(mirrored[what], what)


def test_replicas_train_as_with_the_originals(mirrored: Dict[str, Any]) -> None:
    """All steps, or those before the first in which an original has a defect that ours does not."""
    for original in recorded.originals():
        ours = f"ours-final-{original.kind.name}:function"
        for name in MOMENTA:
            found, expected = mirrored[ours][name], mirrored[f"{original}:function"][name]
            known = len(expected)
            if str(original) == KERAS_3:
                known = next(i for i, row in enumerate(expected) if row["applied"] is None)
            elif recorded.TF < (2, 5):
                known = next(i for i, row in enumerate(expected) if row.get("sum overflows"))
            assert known > 0
            for row, expected_row in zip(found[:known], expected[:known]):
                for key in ("weights", "loss_scale"):
                    assert row[key] == expected_row[key], (str(original), name, row, expected_row)


@pytest.mark.skipif(recorded.TF < (2, 5), reason="the sums are made of other operations")
def test_gradients_are_added_up_once(mirrored: Dict[str, Any], size: str) -> None:
    """Also on Keras 3, whose optimizers do so themselves, unless they clip before."""
    counted = [each for each in specifications(size) if ":sums" in each]
    assert counted
    for what in counted:
        subject, mode = what.split(":")
        sums, applied = (KERAS_3_SUMS if subject.endswith("keras3") else SUMS)[mode]
        assert mirrored[what]["sums"] == sums, what
        assert mirrored[what]["weights"] == [1.0 - LEARNING_RATE * applied] * REPLICAS, what


@pytest.mark.skipif(recorded.TF < (2, 4), reason="optimizers have no global_clipnorm before 2.4")
def test_a_norm_that_overflows_reaches_no_weight(mirrored: Dict[str, Any], size: str) -> None:
    counted = [each for each in specifications(size) if each.endswith(":norm")]
    assert counted
    for what in counted:
        applied = REPLICAS if "keras3" in what else 1  # Keras 3 clips each replica's own
        decayed = 1.0 if "legacy" in what else 1.0 - LEARNING_RATE * 0.5
        weight = decayed - LEARNING_RATE * applied
        assert mirrored[what] == [[[1.0] * REPLICAS, 0, 1], [[weight] * REPLICAS, 1, 2]], what


@pytest.mark.skipif(recorded.TF < (2, 16), reason="there is no Keras 3")
def test_an_optimizer_with_an_update_of_its_own_refuses_sums(mirrored: Dict[str, Any]) -> None:
    assert "Nadam of Keras 3 sums the gradients" in mirrored["ours-final-keras3:refused"]


@pytest.mark.skipif(recorded.TF < (2, 16), reason="there is no Keras 3")
def test_the_original_of_keras_3_looks_at_one_replica_only(mirrored: Dict[str, Any]) -> None:
    """The fixed defect D2: a NaN on another replica reaches the weights."""
    rows = mirrored[KERAS_3 + ":function"]["momentum"]
    elsewhere = next(row for row in rows if math.isnan(row["gradients"][-1]))
    assert any(math.isnan(each) for copy in elsewhere["weights"] for each in copy)


@pytest.mark.skipif(
    not (2, 3) <= recorded.TF < (2, 5), reason="the originals have this defect up to 2.4"
)
def test_the_originals_apply_a_sum_that_overflows(mirrored: Dict[str, Any]) -> None:
    """The fixed defect D1: each replica is finite, but the sum that is applied is not."""
    rows = mirrored[BEFORE_2_5 + ":function"]["momentum"]
    overflowing = next(row for row in rows if row.get("sum overflows"))
    assert all(math.isinf(copy[0]) for copy in overflowing["weights"])


@pytest.mark.skipif(recorded.TF < (2, 3), reason="the strategy cannot run on loopback before 2.3")
def test_two_workers(size: str) -> None:
    # The newest kind of each environment: between them, all kinds.
    kinds = recorded.kinds() if size == "long" else recorded.kinds()[-1:]
    subjects = [f"ours-final-{kind.name}:function" for kind in kinds]
    workers = processes.start_workers(PROGRAM, 2, "2", *subjects, keras=True)
    results = processes.wait_for_workers(workers)
    assert len(results) == 2
    for result in results:
        assert sorted(result) == sorted(subjects)
        for what, rows in result.items():
            check(rows, what)
