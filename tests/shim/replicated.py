"""Steps of one or several replicas with known gradients; as a program, prints what they did.

`replicated.py REPLICAS WATCH CASE...`; WATCH is `nothing`, `record` or `monitor`. A case is
CLASS:MODE. CLASS is `v1-ours`, `contrib-ours`, the same with `fixed-` before it or of the original,
or a subject of `recorded.py`. MODE is `graph`, `eager`, `function` or `xla`, and how: of a graph
`-v2` (control flow), `-references` (variables) and `-monitored` (session), of one replica `-sparse`
(gradients), and of Keras's optimizers `-scaled`, which gives scaled gradients to Keras 3's `apply`,
and `-aggregated`, which adds them up itself. With TF_CONFIG set this is one worker of a cluster,
and REPLICAS is the number of workers.

Each case takes the `steps`, and `expected` says what must come of them. What is watched is run
again without: `changed` has the names of what that changes.
"""

import contextlib
import functools
import json
import os
import sys
import tempfile
from typing import Any, Dict, List, NamedTuple, Optional

import numpy as np
import processes
import recorded
import replicas
import support
import tensorflow as tf

import tf_lossscale as tfls
from tf_lossscale._records.reading import read_record

tf1 = tf.compat.v1
PROGRAM = os.path.abspath(__file__)
INF, NAN = float("inf"), float("nan")
HUGE = 2.0**127  # finite, but the sum of two is not
SHAPES: Dict[str, List[int]] = {"first": [2], "second": [3, 2], "third": []}
SIZES = [2, 6, 1]
RATE, SCALE, PERIOD = 2.0**-4, 2.0**20, 2
MOMENTA = {"momentum": 0.5}
if processes.LONG:
    MOMENTA["sgd"] = 0.0


def steps(count: int) -> List[List[List[float]]]:
    """For each step, for each replica, for each variable: the gradient of each element."""
    fine = [[2.0**number, -(2.0**number), 2.0 ** (number - 8)] for number in range(count)]

    def but(value: float, *places: Any) -> List[List[float]]:
        table = [list(row) for row in fine]
        for replica, variable in places:
            table[replica][variable] = value
        return table

    last = count - 1
    cancelling = but(INF, (0, 0))
    cancelling[last][0] = -INF
    overflowing = [but(HUGE, *((replica, 2) for replica in range(count)))] if last else []
    return [
        fine,
        *(but(NAN, (bad, (bad + 1) % 3)) for bad in range(count)),
        *(but(INF, (bad, bad % 3)) for bad in (0, last)),
        cancelling,
        *overflowing,
        fine,
        fine,
    ]


SUM_OVERFLOWS = -3
"""The step in which each replica is finite, and the sum of the gradients is not."""


class Step(NamedTuple):
    """What must come of a step: the weights and the scale after it, and how it was."""

    weights: List[float]
    scale: float
    applied: bool
    norm: Optional[float]
    bad: Optional[int]


def expected(count: int, momentum: float) -> List[Step]:
    """The rule, written out: one decision, about the sums of the gradients."""
    moved, velocity, scale, good, found = np.zeros(3), np.zeros(3), SCALE, 0, []
    for table in steps(count):
        with np.errstate(all="ignore"):
            sums = np.sum(np.array(table, np.float32), 0)
        bad = next((i for i, total in enumerate(sums) if not np.isfinite(total)), None)
        norm = None
        if bad is None:
            velocity = momentum * velocity + RATE * sums
            moved, good = moved + velocity, good + 1
            scale, good = (scale * 2, 0) if good == PERIOD else (scale, good)
            norm = float(np.sqrt(np.sum(SIZES * sums**2)))
        else:
            scale, good = scale / 2, 0
        found.append(Step(np.repeat(1.0 - moved, SIZES).tolist(), scale, bad is None, norm, bad))
    return found


def check(runs: Dict[str, Any], what: str, count: int, copies: int):
    """Asserts that all replicas of this process, `copies`, did in each run what they must."""
    for name, run in runs.items():
        wanted, applied = expected(count, MOMENTA[name]), 0
        assert len(run["rows"]) == len(wanted), what
        for number, (row, step) in enumerate(zip(run["rows"], wanted)):
            applied += step.applied
            assert row["weights"] == [step.weights] * copies, (what, name, number)
            assert set(row["scales"]) == {step.scale}, (what, name, number)
            # Keras counts skipped steps, too.
            steps_so_far = number + 1 if what in SUBJECTS else applied
            assert row["count"] == steps_so_far, (what, name, number)


def check_readings(run: Dict[str, Any], what: str, count: int, momentum: float = 0.5):
    """Asserts that the monitor reported each step, and changed nothing."""
    skipped, in_a_row, bad, wanted = 0, 0, None, []
    for number, step in enumerate(expected(count, momentum), 1):
        skipped += not step.applied
        in_a_row = 0 if step.applied else in_a_row + 1
        bad = bad if step.bad is None else list(SHAPES)[step.bad]
        wanted.append([number, skipped, in_a_row, bad, step.scale])
    assert (run["readings"], run["changed"]) == (wanted, []), what


SUBJECTS = {str(subject): subject for subject in recorded.originals() + recorded.ours()}


def replica_id() -> Any:
    if "TF_CONFIG" in os.environ:  # TensorFlow 2.3 says 0 on every worker
        return replicas.task()[1]
    return tf.distribute.get_replica_context().replica_id_in_sync_group


def loss_of(variables: List[Any]) -> Any:
    return tf.add_n([tf.reduce_sum(variable) for variable in variables])


class Training:
    """An optimizer, the variables that it trains, and the step of a replica."""

    def __init__(self, strategy: Any, name: str, mode: str, momentum: float):
        self._strategy, self._mode = strategy, mode
        self._in_graph = mode.startswith("graph")
        self.subject = SUBJECTS.get(name)
        with strategy.scope():
            ones = {name: np.ones(shape, np.float32) for name, shape in SHAPES.items()}
            if self._in_graph:
                resource = "references" not in mode
                self.variables = [
                    tf1.get_variable(name, initializer=ones[name], use_resource=resource)
                    for name in ones
                ]
            elif not self.subject:
                self.variables = [tf.compat.v2.Variable(ones[name], name=name) for name in ones]
            else:
                kind = self.subject.kind
                self.variables = [recorded.make_variable(kind, ones[name], name) for name in ones]
            if not self.subject:
                self._wrap_v1(name, momentum)
                return
            inner = self.subject.inner("SGD", learning_rate=RATE, momentum=momentum)
            self.optimizer = self.subject.dynamic(inner, SCALE, PERIOD)
            if kind.name == "keras3":
                self.optimizer.build(self.variables)

    def _wrap_v1(self, name: str, momentum: float):
        inner: Any = tf1.train.GradientDescentOptimizer(RATE)
        if momentum:
            inner = tf1.train.MomentumOptimizer(RATE, momentum)
        *fixed, family, whose = name.split("-")
        if family == "contrib":
            namespace = support.contrib_namespaces()[whose]
            arguments = (SCALE, PERIOD, 1, 2, 0.5)
            manager = namespace.ExponentialUpdateLossScaleManager(*arguments)
            manager = namespace.FixedLossScaleManager(SCALE) if fixed else manager
            self.optimizer = namespace.LossScaleOptimizer(inner, manager)
            self._scale = manager.get_loss_scale()
        else:
            namespace = support.v1_namespaces()[whose]
            scale = namespace.DynamicLossScale(SCALE, PERIOD)
            scale = namespace.FixedLossScale(SCALE) if fixed else scale
            self.optimizer = namespace.MixedPrecisionLossScaleOptimizer(inner, scale)
            self._scale = scale() if fixed else scale._current_loss_scale
        self._count = tf1.Variable(
            0,
            dtype=tf.int64,
            trainable=False,
            use_resource=True,
            aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
        )

    def step(self, table: Any) -> Any:
        """A step of all replicas; returns what each does, the loss first."""
        of_one = self._of_keras if self.subject else self._of_v1
        return replicas.run(self._strategy, of_one, (table,))

    def _of_v1(self, table: Any) -> Any:
        losses: List[Any] = []

        def loss() -> Any:
            losses.append(loss_of(self.variables))
            return losses[-1]

        loss_or_function = loss() if self._in_graph else loss
        pairs = self.optimizer.compute_gradients(loss_or_function, self.variables)
        # Gradients are unscaled before they are added up, so these must overflow by themselves.
        gradients = self._changed([gradient for gradient, _ in pairs], table)
        pairs = list(zip(gradients, self.variables))
        done = self.optimizer.apply_gradients(pairs, global_step=self._count)
        return (losses[-1], done) if self._in_graph else losses[-1]

    def _changed(self, gradients: List[Any], table: Any) -> List[Any]:
        factors = tf.unstack(tf.gather(table, replica_id()), num=len(SHAPES))
        found = [gradient * factor for gradient, factor in zip(gradients, factors)]
        if "sparse" in self._mode:
            found[1] = tf.IndexedSlices(found[1], tf.constant([0, 1, 2]), tf.constant([3, 2]))
        return found

    def _of_keras(self, table: Any) -> Any:
        assert self.subject
        optimizer, variables = self.optimizer, self.variables
        as_keras_3 = self.subject.api == "keras3" or self._mode.endswith("scaled")
        in_keras_3 = self.subject.kind.name == "keras3"
        sources = [variable.value for variable in variables] if in_keras_3 else variables
        with tf.GradientTape() as tape:
            loss = loss_of(sources)
            scaled = (optimizer.scale_loss if as_keras_3 else optimizer.get_scaled_loss)(loss)
        gradients = tape.gradient(scaled, sources)
        if not as_keras_3:
            gradients = optimizer.get_unscaled_gradients(gradients)
        gradients = self._changed(gradients, table)
        if as_keras_3:
            optimizer.apply(gradients, variables)
        elif self._mode.endswith("aggregated"):
            context = tf.distribute.get_replica_context()
            sums = context.all_reduce(tf.distribute.ReduceOp.SUM, gradients)
            # The newer optimizers take `skip_gradients_aggregation` as the second argument.
            args = (True,) if self.subject.kind.name == "new" else ()
            kwargs = {} if args else {"experimental_aggregate_gradients": False}
            optimizer.apply_gradients(zip(sums, variables), *args, **kwargs)
        else:
            optimizer.apply_gradients(list(zip(gradients, variables)))
        return loss

    def copies(self, variable: Any) -> List[Any]:
        """What each replica of this process holds."""
        if not hasattr(variable, "values"):
            variable = getattr(variable, "value", variable)
            variable = variable() if callable(variable) else variable
        return replicas.local(self._strategy, variable)

    def row(self) -> Dict[str, Any]:
        """The state, outside of graphs."""
        if self.subject:
            scale, _, count = self.subject.read(self.optimizer)
            scales = [scale]
        else:
            scales = [float(copy.numpy()) for copy in self.copies(self._scale)]
            count = int(self.copies(self._count)[0].numpy())
        copies = zip(*[[copy.numpy() for copy in self.copies(v)] for v in self.variables])
        return {"weights": flat(copies), "scales": scales, "count": count}

    def state(self) -> List[Any]:
        """The tensors of the state, in a graph."""
        found = (self._scale, self._count, *self.variables)
        local = functools.partial(replicas.local, self._strategy)
        return [[tf.identity(copy) for copy in local(value)] for value in found]


def flat(copies: Any) -> List[List[float]]:
    return [np.concatenate([np.ravel(weight) for weight in copy]).tolist() for copy in copies]


def own(name: str) -> bool:
    """Whether an operation is not one that watches."""
    return "tf_lossscale_rec" not in name and "tf_lossscale_monitor" not in name


class Watch:
    """The monitor of an optimizer, and what it reports after each step."""

    def __init__(self, optimizer: Any, wanted: bool):
        make = tfls.monitoring.Monitor
        self._monitor = make(optimizer, warn_at_minimum=False) if wanted else None
        self.readings: List[Any] = []

    def read(self):
        if self._monitor is not None:
            scale = self._monitor.loss_scale
            self.readings.append([*self._monitor.counts(), self._monitor.first_bad, scale])


def in_session(training: Training, watch: Watch, count: int, mode: str) -> Dict[str, Any]:
    graph, rows = tf1.get_default_graph(), []
    fed = tf1.placeholder(tf.float32, [count, len(SHAPES)])
    losses, done = (replicas.local(training._strategy, value) for value in training.step(fed))
    step, reads = tf.group(*done), training.state()
    noise, everything = tf1.random.normal([2]), tf1.global_variables()
    initialize, saver = tf1.global_variables_initializer(), tf1.train.Saver()
    files: Dict[str, bytes] = {}
    monitored = "monitored" in mode
    if count == 1 and not monitored:
        graph.finalize()
    with tf1.train.MonitoredSession() if monitored else tf1.Session() as session:
        if not monitored:
            session.run(initialize)
        for table in steps(count):
            loss, _ = session.run([losses, step], {fed: table})
            scales, counts, *weights = session.run(reads)
            rows.append(
                {"weights": flat(zip(*weights)), "scales": [float(scale) for scale in scales]}
            )
            rows[-1].update(count=int(counts[0]), loss=float(sum(loss)))
            watch.read()
        kept = {
            "values": [value.tolist() for value in session.run(everything)],
            "variables": [variable.name for variable in everything],
            "noise": session.run(noise).tolist(),
            "operations": [
                operation.name for operation in graph.get_operations() if own(operation.name)
            ],
            "collections": sorted(map(str, graph.get_all_collection_keys())),
        }
        if count == 1 and not monitored:
            # The graph in `.meta` does hold the operations that record (docs/prove.md).
            options = {"write_meta_graph": False, "write_state": False}
            files = files_of(lambda path: saver.save(session, path, **options))
    return {"rows": rows, "kept": dict(kept, files=files)}


def files_of(save: Any) -> Dict[str, bytes]:
    """The files of a checkpoint."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        save(os.path.join(folder, "model"))
        for name in os.listdir(folder):
            with open(os.path.join(folder, name), "rb") as file:
                found[name] = file.read()
    return found


JIT = {"jit_compile": True} if recorded.TF >= (2, 5) else {"experimental_compile": True}


def eagerly(training: Training, watch: Watch, count: int, mode: str) -> Dict[str, Any]:
    step, rows = training.step, []
    if not mode.startswith("eager"):
        step = tf.function(training.step, **(JIT if mode.startswith("xla") else {}))
    for table in steps(count):
        losses = replicas.local(training._strategy, step(tf.constant(table)))
        rows.append(dict(training.row(), loss=float(sum(loss.numpy() for loss in losses))))
        watch.read()
    inner = getattr(training.optimizer, "inner_optimizer", None)
    state = recorded.variables_of(inner) if inner is not None else []
    kept: Dict[str, Any] = {
        "state": [[variable.name, variable.numpy().tolist()] for variable in state],
        "noise": tf.random.normal([2]).numpy().tolist(),
    }
    if count == 1 and hasattr(training.optimizer, "_checkpoint_dependencies"):
        checkpoint = tf.train.Checkpoint(optimizer=training.optimizer)
        kept["files"] = files_of(checkpoint.write)
    return {"rows": rows, "kept": kept}


def run(strategy: Any, what: str, momentum: float, count: int, watch: str) -> Dict[str, Any]:
    """Takes the steps of one case, and returns what the program itself saw and what is kept."""
    name, mode = what.split(":")
    with contextlib.ExitStack() as stack:
        if count == 1 and name in SUBJECTS:
            SUBJECTS[name].kind.keras.backend.clear_session()  # it numbers its objects
        if mode.startswith("graph"):
            one = count == 1
            stack.enter_context(support.graph("v2" in mode) if one else tf.Graph().as_default())
            stack.enter_context(strategy.scope())
        tf1.set_random_seed(3)
        training = Training(strategy, name, mode, momentum)
        monitor = Watch(training.optimizer, watch == "monitor")
        take = in_session if mode.startswith("graph") else eagerly
        return dict(take(training, monitor, count, mode), readings=monitor.readings)


def of_one(what: str, watch: str, path: Any = None) -> Dict[str, Any]:
    """What one replica did, in this process, with Momentum; `path` is that of the record."""
    return watched(tf.distribute.get_strategy(), what, 0.5, 1, watch, path)


def watched(
    strategy: Any, what: str, momentum: float, count: int, watch: str, path: Any = None
) -> Dict[str, Any]:
    """The same with a recording or a monitor, and the names of what is otherwise without it."""
    with tempfile.TemporaryDirectory() as folder:
        if watch == "record":
            path = str(path or os.path.join(folder, "record.jsonl"))
            tfls.recording.start(path)
        try:
            found = run(strategy, what, momentum, count, watch)
        finally:
            tfls.recording.stop()
        if watch == "record":
            found["record"] = summary(path)
    if watch != "nothing":
        bare = run(strategy, what, momentum, count, "nothing")
        both = [{**outcome["kept"], "rows": outcome["rows"]} for outcome in (found, bare)]
        found["changed"] = [key for key in both[0] if not same(*(outcome[key] for outcome in both))]
    del found["kept"]
    return found


def summary(path: str) -> Dict[str, Any]:
    """What a record says of its only optimizer, and of the run."""
    record = read_record(path)
    (optimizer,) = record.optimizers
    names = ("loss", "scales", "applied", "finite", "norm", "bad", "shapes")
    found: Dict[str, Any] = {name: getattr(optimizer, name) for name in names}
    found.update(rule=optimizer.scale.rule, known=optimizer.initial_weights is not None)
    return dict(found, replicas=record.header.replicas, xla=record.header.xla)


def same(one: Any, other: Any) -> bool:
    try:
        np.testing.assert_equal(one, other)
    except AssertionError:
        return False
    return True


def make_strategy(count: int, in_graph: bool) -> Any:
    """The strategy, after the choice of the mode, which comes before the first operation."""
    if in_graph:
        tf1.disable_eager_execution()
    else:
        tf1.enable_v2_behavior()
    return replicas.multi_worker() if "TF_CONFIG" in os.environ else replicas.mirrored(count)


def main():
    count, watch, cases = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
    strategy = make_strategy(count, ":graph" in cases[0])
    print(
        json.dumps(
            {
                what: {
                    name: watched(strategy, what, momentum, count, watch)
                    for name, momentum in MOMENTA.items()
                }
                for what in cases
            }
        )
    )


if __name__ == "__main__":
    main()
