"""Keras models that several workers train with `fit`, as one process does on all batches."""

import outcomes
import processes
import pytest
import recorded
from processes import LONG

PROGRAM = "workers/programs/fit.py"
# Seconds, for machines under load: it takes a tenth of this.
TIMEOUT, LONG_TIMEOUT = 540, 3600
STEPS = 5

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        recorded.TF < (2, 3), reason="Keras cannot train under the strategy on loopback before 2.3"
    ),
]


def subjects(kind=None):
    """The classes over all kinds of optimizers, or over one."""
    ours = [subject for subject in recorded.ours() if subject.api == "final"]
    # Keras 3's own class leaves the other workers waiting forever at an overflow.
    originals = [subject for subject in recorded.originals() if subject.kind.name != "keras3"]
    if not LONG:
        originals = originals[:1]  # which shows that a program trains with it as with ours
    return [str(subject) for subject in ours + originals if kind in (None, subject.kind.name)]


def cases(kind):
    """All cases of a kind in the long tests, a choice of all kinds otherwise."""
    found = []
    for subject in subjects(kind):
        if LONG:
            found += [
                (subject, optimizer, gradients, mode)
                for optimizer in ("sgd", "momentum", "adam")
                for gradients in ("dense", "sparse", "half")
                for mode in ("fit", "eager", "loop")
            ]
        else:
            mode = "loop" if subject.endswith("keras3") else "fit"
            found.append((subject, "momentum", "sparse", mode))
    if not LONG:
        first, last = subjects(kind)[0], subjects(kind)[len(recorded.kinds()) - 1]
        found.append((first, "momentum", "dense", "eager"))
        found.append((last, "sgd", "half", "loop" if last.endswith("keras3") else "fit"))
    return [":".join(case) for case in found if is_possible(*case)]


def is_possible(subject, optimizer, gradients, mode):
    if (gradients, mode) == ("sparse", "eager") and recorded.TF < (2, 5):
        return False  # TensorFlow cannot, with bare optimizers either
    if subject.endswith("keras3") and mode != "loop":
        return False  # it raises on several workers before a step, with bare optimizers, too
    return not (mode == "loop" and subject.startswith("original-experimental"))


KINDS = [kind for kind in ("legacy", "new", "keras3") if subjects(kind)]


@pytest.fixture(scope="module", params=KINDS if LONG else [None])
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def trained(kind):
    """What each worker gave: all cases in one set of processes, as TensorFlow starts slowly."""
    workers = processes.start_workers(PROGRAM, 3 if LONG else 2, *cases(kind), keras=True)
    return processes.wait_for_workers(workers, timeout=LONG_TIMEOUT if LONG else TIMEOUT)


def test_they_agree_and_train_as_one_process_does(trained, kind):
    outcomes.check(trained, cases(kind), 3)


def test_they_train_as_the_originals_do(trained, kind):
    compared = 0
    for case, found in trained[0].items():
        subject, rest = case.split(":", 1)
        if subject.startswith("original"):
            ours = trained[0]["-".join(["ours", "final", subject.split("-")[2]]) + ":" + rest]
            compared += 1
            outcomes.close(ours["weights"], found["weights"], case)
    assert compared or kind == "keras3"


def test_an_overflow_of_one_worker_is_skipped_by_all(trained):
    for case, found in trained[0].items():
        assert found["scale"] == outcomes.FINAL_SCALE, case
        assert found["iterations"] == STEPS, case
