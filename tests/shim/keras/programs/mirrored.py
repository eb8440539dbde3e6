"""What steps under a strategy add up, clip and refuse: `mirrored.py REPLICAS SUBJECT:MODE...`.

`sums` and `sums-clipped` count how often a step adds the gradients of the replicas up, without and
with clipping; `refused` gives the error for sums that an optimizer cannot take; `unequal` takes a
step with other gradients on each replica, which it calls sums. Prints JSON. The usual steps are in
`replicated.py`.
"""

import json
import sys
from typing import Any, Dict, List

import recorded
import replicas
import tensorflow as tf

tf.compat.v1.enable_v2_behavior()


def scalars(strategy: Any, variable: Any) -> List[float]:
    """A variable of shape `[]` on each replica."""
    value = variable if hasattr(variable, "values") else getattr(variable, "value", variable)
    value = value() if callable(value) else value
    return [float(copy.numpy()) for copy in replicas.local(strategy, value)]


def count_sums(strategy: Any, subject, mode: str, count: int) -> Dict[str, Any]:
    """How many sums over the replicas the graph of a step holds, and what it made of a weight."""
    with strategy.scope():
        variable = recorded.make_variable(subject.kind, 1.0, "v")
        inner = subject.inner("SGD", learning_rate=2.0**-4)
        if mode.endswith("clipped"):
            inner = subject.inner("SGD", learning_rate=2.0**-4, clipvalue=1.0)
        optimizer = subject.dynamic(inner, 2.0**20, 1000)
        if subject.kind.name == "keras3":
            optimizer.build([variable])

    def replica_step(gradient: Any):
        optimizer.get_unscaled_gradients([tf.constant(1.0)])
        optimizer.apply_gradients([(gradient * 1.0, variable)])  # each replica has one of its own

    @tf.function
    def step(gradient: Any):
        strategy.run(replica_step, args=(gradient,))

    graph = step.get_concrete_function(tf.constant(2.0)).graph.as_graph_def()
    bodies = [graph.node, *[function.node_def for function in graph.library.function]]
    # A sum is one operation, or one for each replica.
    operations = [node for body in bodies for node in body]
    at_once = [
        operation
        for operation in operations
        if operation.op == "AddN" and operation.attr["N"].i == count
    ]
    apart = [operation for operation in operations if operation.op.startswith("CollectiveReduce")]
    sums = len(at_once) + len(apart) / count
    step(tf.constant(2.0))
    return {"sums": sums, "weights": scalars(strategy, variable)}


def refused(strategy: Any, subject, mode: str, count: int) -> str:
    """The error of an optimizer that is to apply what is added up already, and cannot."""
    with strategy.scope():
        variable = recorded.make_variable(subject.kind, 1.0, "v")
        optimizer = subject.dynamic(subject.inner("Nadam", learning_rate=0.5), 8.0, 1000)
        optimizer.build([variable])

    def replica_step():
        gradients = optimizer.get_unscaled_gradients([tf.constant(1.0)])
        pairs = zip(gradients, [variable])
        optimizer.apply_gradients(pairs, skip_gradients_aggregation=True)

    try:
        strategy.run(replica_step)
    except ValueError as error:
        return str(error)
    return ""


def unequal(strategy: Any, subject, mode: str, count: int) -> Dict[str, Any]:
    """The weights and the scale after a step whose gradient is infinite on one replica only."""
    with strategy.scope():
        variable = recorded.make_variable(subject.kind, 1.0, "v")
        optimizer = subject.dynamic(subject.inner("SGD", learning_rate=0.5), 8.0, 1000)
        if subject.kind.name == "keras3":
            optimizer.build([variable])

    def replica_step():
        number = tf.distribute.get_replica_context().replica_id_in_sync_group
        gradient = tf.where(tf.equal(number, 1), float("inf"), 1.0)
        pairs = zip(optimizer.get_unscaled_gradients([gradient]), [variable])
        args = (True,) if subject.kind.name == "new" else ()
        kwargs = {} if args else {"experimental_aggregate_gradients": False}
        optimizer.apply_gradients(pairs, *args, **kwargs)

    tf.function(lambda: strategy.run(replica_step))()
    return {"weights": scalars(strategy, variable), "scale": subject.read(optimizer)[0]}


def main():
    count = int(sys.argv[1])
    strategy = replicas.mirrored(count)
    subjects = {str(subject): subject for subject in recorded.ours() + recorded.originals()}
    runs = {"sums": count_sums, "refused": refused, "unequal": unequal}
    found = {}
    for what in sys.argv[2:]:
        name, mode = what.split(":")
        found[what] = runs[mode.split("-")[0]](strategy, subjects[name], mode, count)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
