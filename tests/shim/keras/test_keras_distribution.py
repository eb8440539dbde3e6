"""Under a strategy every replica takes the same decision, from what the optimizer will apply.

Three logical devices of one process, and two workers that talk over gRPC.
"""

import math
from typing import Any, Dict, List

import processes
import pytest
import recorded
import replicated

REPLICAS = 3  # so that one is neither the first nor the last
LEARNING_RATE = replicated.RATE
KERAS_3 = "original-keras3-keras3"
# How many sums over the replicas a step makes, and the sum of clipped gradients (each is 2, clipped
# to 1) that it applies: Keras 2 clips the sum, Keras 3 each replica's own, which Keras 3.3 does not
# add up.
SUMS = {"sums": (1, 2.0 * REPLICAS), "sums-clipped": (1, 1.0)}
ADDS_UP = recorded.TF < (2, 16) or not recorded.keras_version().startswith(("3.0.", "3.3.", "3.4."))
KERAS_3_SUMS = {
    "sums": (1, 2.0 * REPLICAS),
    "sums-clipped": (2, 1.0 * REPLICAS) if ADDS_UP else (1, 1.0),
}


def subjects(size: str) -> List[recorded.Subject]:
    return recorded.with_own_step() if size == "small" else recorded.ours()


def cases(size: str) -> List[str]:
    """The steps that are taken: by ours, and by the originals whose defects are fixed."""
    found = []
    for subject in subjects(size):
        modes = ["function"] + (["eager"] if size != "small" else [])
        modes += ["function-scaled"] if subject.kind.name == "keras3" else []
        modes += ["function-aggregated"] if recorded.TF >= (2, 3) else []
        found += [f"{subject}:{mode}" for mode in modes]
    return found + [f"{subject}:function" for subject in recorded.originals()]


@pytest.fixture(scope="module")
def mirrored(size: str) -> Dict[str, Any]:
    """What the steps on logical devices gave; one process, because each start takes long."""
    return processes.run_program(
        replicated.PROGRAM, str(REPLICAS), "nothing", *cases(size), timeout=540, keras=True
    )


@pytest.mark.slow
def test_one_decision_for_all_replicas_which_train_as_with_the_originals(
    mirrored: Dict[str, Any],
):
    """All steps, or those before the first in which an original has a defect that ours does not."""
    for what, runs in mirrored.items():
        if what.startswith("ours"):
            replicated.check(runs, what.split(":")[0], REPLICAS, REPLICAS)
    for original in recorded.originals():
        for name, run in mirrored[f"{original}:function"].items():
            expected = mirrored[f"ours-final-{original.kind.name}:function"][name]["rows"]
            known = len(expected)
            if str(original) == KERAS_3 and not ADDS_UP:
                known = 0
                assert run["rows"][0]["weights"] != expected[0]["weights"]
            elif str(original) == KERAS_3:
                known = 1  # D2: the next step has a NaN on one replica, which it does not see
            elif recorded.TF < (2, 5):
                known += replicated.SUM_OVERFLOWS  # D1
            for row, ours in zip(run["rows"][:known], expected):
                for key in ("weights", "scales"):
                    assert row[key] == ours[key], (str(original), name, row, ours)
            if str(original) == KERAS_3:
                after = run["rows"][-1]["weights"]
                assert any(math.isnan(value) for copy in after for value in copy)
            elif (2, 3) <= recorded.TF < (2, 5):
                assert all(math.isinf(copy[-1]) for copy in run["rows"][known]["weights"])


def originals_of_keras_2() -> List[recorded.Subject]:
    return [subject for subject in recorded.originals() if subject.kind.name != "keras3"]


@pytest.fixture(scope="module")
def counted(size: str) -> Dict[str, Any]:
    """What the steps of `programs/mirrored.py` gave."""
    found = []
    for subject in subjects(size):
        modes = list(SUMS) if recorded.TF >= (2, 5) else []
        modes += ["refused"] if subject.kind.name == "keras3" else []
        modes += ["unequal"] if recorded.TF >= (2, 3) else []
        found += [f"{subject}:{mode}" for mode in modes]
    if recorded.TF >= (2, 3):
        found += [f"{subject}:unequal" for subject in originals_of_keras_2()]
    program = "keras/programs/mirrored.py"
    return processes.run_program(program, str(REPLICAS), *found, timeout=540, keras=True)


@pytest.mark.slow
@pytest.mark.skipif(recorded.TF < (2, 5), reason="the sums are made of other operations")
def test_gradients_are_added_up_once(counted: Dict[str, Any]):
    """Also on Keras 3, whose optimizers do so themselves, unless they clip before."""
    found = {what: outcome for what, outcome in counted.items() if ":sums" in what}
    assert found
    for what, outcome in found.items():
        subject, mode = what.split(":")
        sums, applied = (KERAS_3_SUMS if subject.endswith("keras3") else SUMS)[mode]
        weights = [1.0 - LEARNING_RATE * applied] * REPLICAS
        assert outcome == {"sums": sums, "weights": weights}, what


@pytest.mark.slow
@pytest.mark.skipif(
    recorded.TF < (2, 3), reason="the argument that calls gradients sums came with 2.3"
)
def test_gradients_that_are_called_sums_are_tested_on_all_replicas(counted: Dict[str, Any]):
    found = {what: outcome for what, outcome in counted.items() if what.endswith(":unequal")}
    assert found
    for what, outcome in found.items():
        if what.startswith("original") and recorded.TF >= (2, 5):  # it tests those of the first
            assert outcome["scale"] == 8.0, what
            assert not all(math.isfinite(weight) for weight in outcome["weights"]), what
        else:
            assert outcome == {"weights": [1.0] * REPLICAS, "scale": 4.0}, what


@pytest.mark.slow
@pytest.mark.skipif(recorded.TF < (2, 16), reason="there is no Keras 3")
def test_an_optimizer_with_an_update_of_its_own_refuses_sums(counted: Dict[str, Any]):
    assert "Nadam of Keras 3 sums the gradients" in counted["ours-final-keras3:refused"]


def test_two_workers(size: str):
    # The newest kind of each environment: between them, all kinds.
    kinds = recorded.kinds() if size == "long" else recorded.kinds()[-1:]
    found = [f"ours-final-{kind.name}:function" for kind in kinds]
    workers = processes.start_workers(replicated.PROGRAM, 2, "2", "nothing", *found, keras=True)
    for result in processes.wait_for_workers(workers):
        for what in found:
            replicated.check(result[what], what.split(":")[0], 2, 1)
