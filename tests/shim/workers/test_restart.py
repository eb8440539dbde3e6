"""A worker is killed: the others end with an error, and a restart goes on where they were."""

import json
import subprocess
import time

import processes
import pytest
import recorded
import replicas
import support
import tensorflow as tf

import tf_lossscale as tfls

tf1 = tf.compat.v1
PROGRAM = "workers/programs/restart.py"
WORKERS = 3 if processes.LONG else 2
DIE_AT, STEPS = 3, 5
# Seconds: for machines under load. TensorFlow takes 10 to 60 to notice.
TRAINED, NOTICED, WAITED = 300, 250, 100


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


@pytest.mark.parametrize("traced", [False, True], ids=["eager", "function"])
@pytest.mark.parametrize("wrap", [None, tfls.tpu.CrossShardOptimizer], ids=["bare", "cross"])
def test_powers_of_adam_in_files_of_a_strategy(wrap, traced, tmp_path):
    """TensorFlow's own Adam saves them from 2.13 on, before only if its first step is eager."""
    with support.eager():
        strategy = tf.distribute.MirroredStrategy(["/cpu:0"])
        with strategy.scope():
            weight = tf1.Variable(1.0, use_resource=True)
            optimizer = tf1.train.AdamOptimizer(0.1)
            optimizer = wrap(optimizer) if wrap else optimizer

        def step():
            replicas.run(strategy, lambda: (optimizer.apply_gradients(pairs), 0)[1])

        pairs = [(tf.constant(1.0), weight)]
        (tf.function(step, autograph=False) if traced else step)()
        path = tf.train.Checkpoint(optimizer=optimizer, weight=weight).save(str(tmp_path / "c"))
    names = " ".join(name for name, _ in tf.train.list_variables(path))
    for slot in ("SLOT/optimizer/m/", "SLOT/optimizer/v/"):
        assert slot in names
    for power in ("optimizer/beta1_power/", "optimizer/beta2_power/"):
        assert (power in names) == (recorded.TF >= (2, 13) or not traced)


@pytest.mark.slow
def test_a_worker_that_dies_ends_the_others_from_2_4_on():
    workers = processes.start_workers(
        "cross_shard/programs/mismatch.py", 2, "dies:momentum:function"
    )
    try:
        assert workers[-1].wait(timeout=TRAINED) < 0
        if recorded.TF < (2, 4):
            with pytest.raises(subprocess.TimeoutExpired):
                workers[0].communicate(timeout=WAITED)
        else:
            output, errors = workers[0].communicate(timeout=NOTICED)
            assert workers[0].returncode == 0, errors[-2000:]
            assert not json.loads(output.splitlines()[-1])["error"].startswith("no error")
    finally:
        for worker in workers:
            worker.kill()
            worker.communicate()
