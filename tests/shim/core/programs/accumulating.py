"""Accumulates gradients with every optimizer of the shim, and compares with plain steps.

`accumulating.py REPLICAS`. The oracle is the inner optimizer in float32, to which the means of the
micro-batches, summed over the replicas, are applied once. A step with an infinity in any
micro-batch of any replica is no step of the oracle. Prints what differs, by case.
"""

import json
import sys
from typing import Any, Callable, Dict, Iterator, List, Tuple

import numpy as np
import processes
import recorded
import replicas
import support
import tensorflow as tf

import tf_lossscale as tfls

tf1 = tf.compat.v1
INF, NAN = float("inf"), float("nan")
MICRO_BATCHES, PERIOD, SCALE = 3, 2, 64.0
SHAPES = {"first": [2], "second": [3, 2], "third": []}
COUNT = int(sys.argv[1])


def steps() -> List[List[List[List[float]]]]:
    """For each step, micro-batch and replica: the gradient of each variable."""

    def value(step: int, batch: int, replica: int, position: int) -> float:
        return (step + 1.0) * (batch - 1.5) + replica * 0.5 + position * 0.25

    table = [
        [
            [[value(step, batch, replica, index) for index in range(3)] for replica in range(COUNT)]
            for batch in range(MICRO_BATCHES)
        ]
        for step in range(5)
    ]
    table[1][0][COUNT - 1][1] = INF  # in the first micro-batch of the last replica
    table[3][MICRO_BATCHES - 1][0][2] = NAN
    return table


BAD = (1, 3)


def zeros() -> List[Any]:
    return [np.zeros(shape, "float32") for shape in SHAPES.values()]


def expected(apply: Callable[[List[Any]], None], skip: Callable[[], None]) -> float:
    """Makes the steps of the oracle; returns the loss scale after them."""
    scale, good = SCALE, 0
    for number, batches in enumerate(steps()):
        if number in BAD:
            scale, good = scale / 2, 0
            skip()
            continue
        means = np.sum(np.asarray(batches, "float32"), axis=(0, 1)) / np.float32(MICRO_BATCHES)
        apply([np.full(shape, mean, "float32") for shape, mean in zip(SHAPES.values(), means)])
        good += 1
        if good == PERIOD:
            scale, good = scale * 2, 0
    return scale


class Case:
    """An optimizer of the shim: how it and its plain inner optimizer are made."""

    def __init__(self, kind: Any, inner: Callable[[], Any], wrap: Callable[[Any], Tuple[Any, Any]]):
        self.kind = kind
        self.inner = inner
        self.wrap = wrap  # returns the wrapper, and what reads its scale

    def variables(self, name: str) -> List[Any]:
        values = zip(SHAPES, zeros())
        if self.kind is None:
            return [
                tf1.get_variable(f"{name}/{variable_name}", initializer=value, use_resource=True)
                if not tf.executing_eagerly()
                else tf.Variable(value)
                for variable_name, value in values
            ]
        return [recorded.make_variable(self.kind, value, f"{name}_{e}") for e, value in values]


def cases() -> Iterator[Tuple[str, Case]]:
    inner_of_v1 = {
        "sgd": lambda: tf1.train.GradientDescentOptimizer(0.5),
        "momentum": lambda: tf1.train.MomentumOptimizer(0.5, 0.5),
    }
    inner_of_keras: List[Tuple[str, Dict[str, Any]]] = [("SGD", {}), ("SGD", {"momentum": 0.5})]
    if processes.LONG:
        inner_of_v1["adam"] = lambda: tf1.train.AdamOptimizer(0.5)
        inner_of_keras.append(("Adam", {}))

    def contrib(inner: Any) -> Tuple[Any, Any]:
        return support.contrib_optimizer(inner, SCALE, PERIOD, 1, 2, 0.5)

    def v1(inner: Any) -> Tuple[Any, Any]:
        return support.v1_optimizer(inner, SCALE, PERIOD)

    for name, make in inner_of_v1.items():
        yield f"contrib {name}", Case(None, make, contrib)
        yield f"v1 {name}", Case(None, make, v1)
    for subject in recorded.with_own_step():
        # In Keras 3.0, each replica makes a step of its own, with the original, too.
        is_apart = subject.kind.name == "keras3" and recorded.keras_version().startswith("3.0.")
        if COUNT > 1 and is_apart:
            continue
        for name, options in inner_of_keras:
            yield keras_case(subject, name, options)


def keras_case(subject, name: str, options: Dict[str, Any]) -> Tuple[str, Case]:
    def inner() -> Any:
        return subject.inner(name, learning_rate=0.5, **options)

    def wrap(inner: Any) -> Tuple[Any, Any]:
        optimizer = subject.dynamic(inner, SCALE, PERIOD)
        return optimizer, lambda: subject.scale_and_counter(optimizer)[0]

    return f"{subject} {name}{options}", Case(subject.kind, inner, wrap)


def apply_plainly(case: Case, variables: List[Any]) -> float:
    optimizer = case.inner()

    def apply(means: List[Any]):
        optimizer.apply_gradients(list(zip(map(tf.constant, means), variables)))

    def skip():
        if case.kind is not None:  # the shim's Keras classes count skipped steps, too
            optimizer.iterations.assign_add(1)

    return expected(apply, skip)


def values(variables: List[Any], read: Callable[[Any], Any] = lambda each: each.numpy()) -> Any:
    return [np.ravel(read(variable)).tolist() for variable in variables]


def copies_of(strategy: Any, variables: List[Any], read: Callable[[Any], Any]) -> List[Any]:
    """The values of the variables in each replica."""
    if strategy is None:
        return [values(variables, read)]
    # Keras 3 keeps TensorFlow's variable inside; that of 1.15 is no `tf.Variable`.
    held = [variable if hasattr(variable, "values") else variable.value for variable in variables]
    of_replicas = list(zip(*[replicas.local(strategy, holder) for holder in held]))
    assert len(of_replicas) == COUNT
    return [values(list(copy), read) for copy in of_replicas]


def difference(found: Any, wanted: Any) -> str:
    """What differs in the scale or the variables, as text; empty if they are the same."""
    pairs = zip(found[1], wanted[1])
    same = all(np.allclose(ours, plain, rtol=1e-6, atol=1e-6) for ours, plain in pairs)
    return "" if same and found[0] == wanted[0] else f"{found} is not {wanted}"


def row_of_replica(strategy: Any, rows: Any) -> Any:
    if strategy is None:
        return rows[0]
    return tf.gather(rows, tf.distribute.get_replica_context().replica_id_in_sync_group)


def gradients_here(row: Any) -> List[Any]:
    return [tf.fill(shape, row[position]) for position, shape in enumerate(SHAPES.values())]


def run_eagerly(case: Case, is_function: bool, strategy: Any) -> str:
    """Steps in eager mode, or in a `tf.function`, of one or several replicas."""
    plain = case.variables("plain")
    wanted = (apply_plainly(case, plain), values(plain))
    with strategy.scope() if strategy else tf.name_scope("here"):
        variables = case.variables("accumulated")
        optimizer, read = case.wrap(case.inner())
        accumulated = tfls.accumulate(optimizer, MICRO_BATCHES)

    def in_replica(rows: Any):
        pairs = zip(gradients_here(row_of_replica(strategy, rows)), variables)
        accumulated.apply_gradients(pairs)

    def step(rows: Any):
        if strategy is None:
            in_replica(rows)
        else:
            replicas.run(strategy, in_replica, [rows])

    call = tf.function(step) if is_function else step
    for batches in steps():
        for rows in batches:
            call(tf.constant(rows))
    copies = copies_of(strategy, variables, lambda each: each.numpy())
    found = [(recorded.number(read()), copy) for copy in copies]
    return next(filter(None, (difference(result, wanted) for result in found)), "")


def run_in_graph(case: Case, control_flow_v2: bool, strategy: Any) -> str:
    """Steps in a Session, of one or several replicas."""
    with support.eager():
        plain = case.variables("plain")
        wanted = (apply_plainly(case, plain), values(plain))
    with support.graph(control_flow_v2) as session:
        rows = tf1.placeholder(tf.float32, [COUNT, 3])
        with strategy.scope() if strategy else tf.name_scope("here"):
            variables = case.variables("accumulated")
            step = tf1.train.get_or_create_global_step()
            optimizer, read = case.wrap(case.inner())
            accumulated = tfls.accumulate(optimizer, MICRO_BATCHES)
            scale = read()
        counted = {"global_step": step} if case.kind is None else {}

        def in_replica() -> Any:
            pairs = zip(gradients_here(row_of_replica(strategy, rows)), variables)
            return accumulated.apply_gradients(pairs, **counted)

        train_op = in_replica() if strategy is None else replicas.run(strategy, in_replica)
        train_ops = [train_op] if strategy is None else replicas.local(strategy, train_op)
        session.run(tf1.global_variables_initializer())
        for batches in steps():
            for gradients in batches:
                session.run(train_ops, {rows: gradients})
        copies = copies_of(strategy, variables, session.run)
        if counted:
            assert session.run(step) == len(steps()) - len(BAD)
        found = [(float(session.run(scale)), copy) for copy in copies]
    return next(filter(None, (difference(result, wanted) for result in found)), "")


def run_in_conditional(case: Case, strategy: Any) -> str:
    """Calls it in a `tf.cond` of a replica, which TensorFlow refuses (`docs/accumulate.md`)."""
    with strategy.scope():
        variables = case.variables("conditional")
        accumulated = tfls.accumulate(case.wrap(case.inner())[0], MICRO_BATCHES)

    def in_replica(row: Any):
        def add() -> Any:
            accumulated.apply_gradients(zip(gradients_here(row), variables))
            return tf.constant(0)

        tf.cond(row[0] > 0.0, add, lambda: tf.constant(0))

    try:
        tf.function(lambda: replicas.run(strategy, in_replica, [tf.ones([3])]))()
    except RuntimeError as error:
        return "" if "`merge_call` called while defining a new graph" in str(error) else str(error)
    return "no error"


def outcome(run: Callable[..., str], *args: Any) -> str:
    try:
        return run(*args)
    except Exception as error:
        return f"{type(error).__name__}: {error}"[-500:]


def main():
    with support.eager():  # where TensorFlow 1.15 gives devices other names
        eager_strategy = replicas.mirrored(COUNT) if COUNT > 1 else None
        found = {}
        for name, case in cases():
            for is_function in (False, True):
                # TensorFlow's v1 optimizers count replicas in a function only.
                if is_function or COUNT == 1 or case.kind is not None:
                    title = name + (" function" if is_function else " eager")
                    found[title] = outcome(run_eagerly, case, is_function, eager_strategy)
            if COUNT > 1 and case.kind is not None:
                found[name + " conditional"] = outcome(run_in_conditional, case, eager_strategy)
    for control_flow_v2 in (False, True):
        for name, case in cases():
            # In a Session with several replicas and control flow v2, Keras optimizers up to 2.4
            # raise an error if their slots are made within two conditionals.
            is_broken = COUNT > 1 and control_flow_v2 and recorded.TF < (2, 5)
            if case.kind is None or (case.kind.name == "legacy" and not is_broken):
                with tf.Graph().as_default():
                    strategy = (
                        tf.distribute.MirroredStrategy(
                            [f"/cpu:{number}" for number in range(COUNT)]
                        )
                        if COUNT > 1
                        else None
                    )
                title = name + (" graph, control flow v2" if control_flow_v2 else " graph")
                found[title] = outcome(run_in_graph, case, control_flow_v2, strategy)
    print("\n" + json.dumps(found))


if __name__ == "__main__":
    main()
