"""A worker is killed: the others end with an error, and a restart goes on where they were."""

import json
import time

import processes
import pytest
import recorded

PROGRAM = "workers/programs/restart.py"
WORKERS = 3 if processes.LONG else 2
DIE_AT, STEPS = 3, 5
# Seconds: for machines under load. TensorFlow takes about 25 to notice.
TRAINED, NOTICED = 300, 250


@pytest.mark.slow
@pytest.mark.skipif(recorded.TF < (2, 5), reason="nothing looks whether other workers are alive")
def test_a_restart_goes_on_where_the_workers_were(tmp_path):
    workers = processes.start_workers(PROGRAM, WORKERS, str(tmp_path), str(DIE_AT), keras=True)
    try:
        assert workers[-1].wait(timeout=TRAINED) < 0
        died = time.monotonic()
        unbroken = []
        for worker in workers[:-1]:
            output, errors = worker.communicate(timeout=died + NOTICED - time.monotonic())
            assert worker.returncode != 0
            unbroken.append(json.loads(output.splitlines()[0]))
            assert "UnavailableError" in errors or "task:" in errors, errors[-2000:]
    finally:
        for worker in workers:
            worker.kill()
        workers[-1].communicate()
    restarted = processes.start_workers(PROGRAM, WORKERS, str(tmp_path), keras=True)
    for found in processes.wait_for_workers(restarted, timeout=TRAINED):
        # Step OVERFLOW was skipped, and there were steps after it, before and after the restart.
        assert sorted(found) == [str(number) for number in range(DIE_AT, STEPS)]
        for number, classes in found.items():
            for name, (variables, scale) in classes.items():
                for expected in unbroken:
                    assert [variables, scale] == expected[number][name], (number, name)
        assert unbroken[0]["0"] != unbroken[0][str(DIE_AT)] != found[str(STEPS - 1)]
        for before, after in zip(unbroken[0]["0"].values(), unbroken[0]["1"].values()):
            assert before[0] == after[0]
