"""Recording under a `MirroredStrategy`: one row for each step of all replicas, the run the same."""

import pytest
import recorded
import replicated
from processes import LONG, run_program
from recordings import check_steps

V1 = ["contrib-ours", "v1-ours"]


def cases(mode):
    if mode == "graph":
        return [f"{name}:graph" for name in [*V1, "v1-original"]]
    ours = [subject for subject in recorded.ours() if subject.api == "final"]
    modes = ["eager", "function"] if LONG else ["eager"]
    keras = [f"{subject}:{mode}" for subject in [*ours, *recorded.originals()] for mode in modes]
    return [f"{name}:function" for name in V1] + keras


@pytest.mark.sampled(2)
@pytest.mark.parametrize("mode", ["graph", "eager"])
def test_each_step_of_all_replicas_is_one_row_and_the_run_is_the_same(mode):
    runs = run_program(replicated.PROGRAM, "2", "record", *cases(mode), timeout=600, keras=True)
    for what, of_each in runs.items():
        for name, run in of_each.items():
            check_steps(run, what, 2, replicated.MOMENTA[name])


def test_fit():
    (subject,) = [subject for subject in recorded.ours() if subject.api == "final"][-1:]
    assert run_program("recording/mirrored_fit.py", str(subject), keras=True)


@pytest.mark.skipif(recorded.TF >= (2, 16), reason="TensorFlow has no Estimators from 2.16 on")
def test_an_estimator_with_a_strategy_has_no_loss():
    """Each replica makes its own optimizer, so no optimizer has the losses of all."""
    found = run_program("recording/mirrored_estimator.py", timeout=300)
    steps, losses, norms = found["alone"]
    assert (steps, norms) == ([0, 1], [1.0, 1.0])
    assert losses == pytest.approx([1.0, 0.9])
    # The gradients 1 and 2 are divided by the number of replicas, and summed.
    assert found["mirrored"] == [[0, 1], [None, None], [1.5, 1.5]]
