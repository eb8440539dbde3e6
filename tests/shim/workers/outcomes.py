"""What several workers must have trained, beside what one process does on all batches."""

import numpy as np

# The scale starts at 8 and is doubled after two finite steps; step 2 of 5 overflows on one worker,
# and all skip it: 8 -> 16 -> 8 -> 16.
FINAL_SCALE = 16.0


def check(workers, cases, count):
    """Asserts that the workers agree, and have the weights of one process in each case."""
    keys = [key for key in next(iter(workers[0].values())) if key not in ("again", "own")]
    for worker in workers:
        assert list(worker) == cases
        for case, found in worker.items():
            assert {key: found[key] for key in keys} == {
                key: workers[0][case][key] for key in keys
            }, case
    for case, found in workers[0].items():
        assert len(found["weights"]) == count
        close(found["weights"], found["whole"], case, 1e-5, 1e-5)


def close(one, other, case, rtol=1e-6, atol=1e-7):
    for mine, theirs in zip(one, other):
        np.testing.assert_allclose(mine, theirs, rtol=rtol, atol=atol, err_msg=case)
