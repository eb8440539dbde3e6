"""Makes steps under one strategy with gradients that differ by replica; prints them as JSON.

Usage: mirrored.py REPLICAS SUBJECT:MODE..., such as `3 ours-final-legacy:eager`. A mode is `eager`
or `function`, and may have more to it: `function-scaled` gives scaled gradients to Keras 3's
`apply`, `function-aggregated` adds gradients up itself. Steps are made with Momentum (in the long
tests with SGD, too), each on variables of several shapes; `weights` has what each replica has in
all of them. `sums` and `sums-clipped` count how often a step adds the gradients of the replicas up,
without and with clipping; `refused` gives the error for sums that an optimizer cannot take; `norm`
makes a step with finite gradients whose norm overflows. With TF_CONFIG set this is one worker of a
cluster, and REPLICAS is the number of workers.
"""

import itertools
import json
import os
import sys
from typing import Any, Dict, List

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE), os.path.dirname(os.path.dirname(HERE))]

import numpy as np  # noqa: E402 - after the path is set
import tensorflow as tf  # noqa: E402 - after the path is set

tf1 = tf.compat.v1
if tf.__version__.startswith("1."):
    tf1.enable_v2_behavior()

import recorded  # noqa: E402 - after the path is set

INF, NAN = float("inf"), float("nan")
HUGE = 2.0**127  # finite, but the sum of two is not
# The shape of each variable, and its gradient where a replica's is 1. HUGE overflows for the first
# two alone.
VARIABLES = [([], 1.0), ([2], -1.0), ([3, 2], 2.0**-8)]
MOMENTA = {"momentum": 0.5}
if os.environ.get("TFLS_TEST_SIZE") == "long":
    MOMENTA["sgd"] = 0.0


def steps(replicas: int) -> List[Dict[str, Any]]:
    """The gradients of each replica, and what must come of the step: their sum, or None."""
    fine = [float(2**i) for i in range(replicas)]
    found = [{"gradients": fine, "applied": sum(fine)}]
    for bad in range(replicas):
        for value in (NAN, INF) if bad in (0, replicas - 1) else (NAN,):
            gradients = list(fine)
            gradients[bad] = value
            found.append({"gradients": gradients, "applied": None})
    cancelling = [1.0] * replicas
    cancelling[0], cancelling[-1] = INF, -INF
    found.append({"gradients": cancelling, "applied": None})
    found.append({"gradients": [HUGE] * replicas, "applied": None, "sum overflows": True})
    found.append({"gradients": fine, "applied": sum(fine)})
    return found


def make_strategy(replicas: int) -> Any:
    if "TF_CONFIG" in os.environ:
        names = ("MultiWorkerMirroredStrategy",)
        spaces = (tf.distribute, tf.distribute.experimental)
        cls = next(getattr(s, n) for s in spaces for n in names if hasattr(s, n))
        return cls()
    config = tf.config.experimental
    cpu = config.list_physical_devices("CPU")[0]
    config.set_virtual_device_configuration(
        cpu, [config.VirtualDeviceConfiguration() for _ in range(replicas)]
    )
    return tf.distribute.MirroredStrategy([f"/cpu:{i}" for i in range(replicas)])


def local(strategy: Any, variable: Any) -> List[List[float]]:
    """The elements of a variable on each replica."""
    variable = getattr(variable, "value", variable) if not hasattr(variable, "values") else variable
    variable = variable() if callable(variable) else variable
    copies = strategy.experimental_local_results(variable)
    return [each.numpy().ravel().tolist() for each in copies]


def scalars(strategy: Any, variable: Any) -> List[float]:
    """A variable of shape `[]` on each replica."""
    return list(itertools.chain(*local(strategy, variable)))


def train(strategy: Any, subject: Any, mode: str, replicas: int) -> Dict[str, Any]:
    return {
        name: train_with(strategy, subject, mode, replicas, momentum)
        for name, momentum in MOMENTA.items()
    }


def train_with(
    strategy: Any, subject: Any, mode: str, replicas: int, momentum: float
) -> List[Dict[str, Any]]:
    run = getattr(strategy, "run", None) or strategy.experimental_run_v2
    with strategy.scope():
        variables = [
            recorded.make_variable(subject.kind, np.ones(shape), f"v{index}")
            for index, (shape, _) in enumerate(VARIABLES)
        ]
        inner = subject.inner("SGD", learning_rate=2.0**-4, momentum=momentum)
        optimizer = subject.dynamic(inner, 2.0**20, 1000)
        if subject.kind.name == "keras3":
            optimizer.build(variables)
        table = tf.constant([step["gradients"] for step in steps(replicas)])

    def replica_step(number: Any) -> None:
        of_replica = tf.gather(tf.gather(table, number), replica_id())
        gradients = [tf.fill(shape, of_replica * factor) for shape, factor in VARIABLES]
        if subject.api == "keras3" or mode.endswith("scaled"):
            scale = recorded_scale(subject, optimizer)
            optimizer.scale_loss(tf.constant(1.0))  # so that it is known that these are scaled
            optimizer.apply([each * scale for each in gradients], variables)
            return
        # No scaling of HUGE, which would overflow before it is added up.
        optimizer.get_unscaled_gradients([tf.constant(1.0)])
        if mode.endswith("aggregated"):
            context = tf.distribute.get_replica_context()
            sums = context.all_reduce(tf.distribute.ReduceOp.SUM, gradients)
            optimizer.apply_gradients(zip(sums, variables), experimental_aggregate_gradients=False)
            return
        optimizer.apply_gradients(zip(gradients, variables))

    def step(number: Any) -> None:
        run(replica_step, args=(number,))

    compiled = tf.function(step) if mode.startswith("function") else step
    rows = []
    for number, expected in enumerate(steps(replicas)):
        compiled(tf.constant(number))
        scale, _, iterations = subject.read(optimizer)
        copies = zip(*[local(strategy, each) for each in variables])
        weights = [list(itertools.chain(*copy)) for copy in copies]
        rows.append(dict(expected, weights=weights, loss_scale=scale, iterations=iterations))
    return rows


def count_sums(strategy: Any, subject: Any, mode: str, replicas: int) -> Dict[str, Any]:
    """How many sums over the replicas the graph of a step holds, and what it made of a weight."""
    with strategy.scope():
        variable = recorded.make_variable(subject.kind, 1.0, "v")
        inner = subject.inner("SGD", learning_rate=2.0**-4)
        if mode.endswith("clipped"):
            inner = subject.inner("SGD", learning_rate=2.0**-4, clipvalue=1.0)
        optimizer = subject.dynamic(inner, 2.0**20, 1000)
        if subject.kind.name == "keras3":
            optimizer.build([variable])

    def replica_step(gradient: Any) -> None:
        optimizer.get_unscaled_gradients([tf.constant(1.0)])
        optimizer.apply_gradients([(gradient * 1.0, variable)])  # each replica has one of its own

    @tf.function
    def step(gradient: Any) -> None:
        strategy.run(replica_step, args=(gradient,))

    graph = step.get_concrete_function(tf.constant(2.0)).graph.as_graph_def()
    bodies = [graph.node, *[each.node_def for each in graph.library.function]]
    # A sum is one operation, or one for each replica.
    operations = [node for body in bodies for node in body]
    at_once = [each for each in operations if each.op == "AddN" and each.attr["N"].i == replicas]
    apart = [each for each in operations if each.op.startswith("CollectiveReduce")]
    sums = len(at_once) + len(apart) / replicas
    step(tf.constant(2.0))
    return {"sums": sums, "weights": scalars(strategy, variable)}


def overflow_norm(strategy: Any, subject: Any, mode: str, replicas: int) -> List[Any]:
    """The weights after a step that `global_clipnorm` makes NaN, and after one that is finite."""
    with strategy.scope():
        variable = recorded.make_variable(subject.kind, 1.0, "v")
        decay = {} if subject.kind.name == "legacy" else {"weight_decay": 0.5}
        inner = subject.inner("SGD", learning_rate=2.0**-4, global_clipnorm=1.0, **decay)
        optimizer = subject.dynamic(inner, 1.0, 1000)
        if subject.kind.name == "keras3":
            optimizer.build([variable])

    def replica_step(gradient: Any) -> None:
        gradients = optimizer.get_unscaled_gradients([gradient * 1.0])
        optimizer.apply_gradients(zip(gradients, [variable]))

    step = tf.function(lambda gradient: strategy.run(replica_step, args=(gradient,)))
    found = []
    for gradient in (1e30, 2.0):
        step(tf.constant(gradient))
        found.append([scalars(strategy, variable), *subject.read(optimizer)[1:]])
    return found


def refused(strategy: Any, subject: Any, mode: str, replicas: int) -> str:
    """The error of an optimizer that is to apply what is added up already, and cannot."""
    with strategy.scope():
        variable = recorded.make_variable(subject.kind, 1.0, "v")
        optimizer = subject.dynamic(subject.inner("Nadam", learning_rate=0.5), 8.0, 1000)
        optimizer.build([variable])

    def replica_step() -> None:
        gradients = optimizer.get_unscaled_gradients([tf.constant(1.0)])
        pairs = zip(gradients, [variable])
        optimizer.apply_gradients(pairs, skip_gradients_aggregation=True)

    try:
        strategy.run(replica_step)
    except ValueError as error:
        return str(error)
    return ""


def replica_id() -> Any:
    if "TF_CONFIG" in os.environ:  # TensorFlow 2.3 says 0 on every worker
        return json.loads(os.environ["TF_CONFIG"])["task"]["index"]
    return tf.distribute.get_replica_context().replica_id_in_sync_group


def recorded_scale(subject: Any, optimizer: Any) -> Any:
    return tf.convert_to_tensor(subject.scale_and_counter(optimizer)[0])


def main() -> None:
    replicas = int(sys.argv[1])
    strategy = make_strategy(replicas)
    everything = {str(each): each for each in recorded.originals() + recorded.ours()}
    result = {}
    for what in sys.argv[2:]:
        run: Any
        name, mode = what.split(":")
        run = {"sums": count_sums, "refused": refused, "norm": overflow_norm}.get(
            mode.split("-")[0], train
        )
        result[what] = run(strategy, everything[name], mode, replicas)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
