"""Sums and steps on four logical CPU devices: `mirrored.py graph|function|eager [dtypes]`.

Prints JSON: everything, or one step with gradients of several dtypes and kinds. In `graph` all is
built in the graph of SESSION, otherwise execution is eager.
"""

import functools
import json
import sys
import time

import numpy as np
import processes
import replicas
import support
import tensorflow as tf

import tf_lossscale as tfls

tf1 = tf.compat.v1
MODE = sys.argv[1]
SESSION = None
if MODE == "graph":
    tf1.disable_eager_execution()
    CONFIG = tf1.ConfigProto(device_count={"CPU": 4})
    SESSION = tf1.Session(config=CONFIG)
    STRATEGY = tf.distribute.MirroredStrategy([f"/cpu:{i}" for i in range(4)])
else:
    tf1.enable_eager_execution()
    STRATEGY = replicas.mirrored(4)
on_replicas = functools.partial(replicas.run, STRATEGY)
local = functools.partial(replicas.local, STRATEGY)
GROUPS = {
    "whole": None,
    "pairs": [[0, 1], [2, 3]],
    "crossed": [[0, 2], [3, 1]],
    "singles": [[2], [0], [3], [1]],
}
DTYPES = ("float16", "bfloat16", "float32", "float64", "int32", "uint32")

cross_replica_sum = tfls.contrib.tpu.cross_replica_sum
CrossShardOptimizer = tfls.compat.v1.tpu.CrossShardOptimizer


def replica_number():
    return tf.cast(tf.distribute.get_replica_context().replica_id_in_sync_group + 1, tf.float32)


def values_of(function):
    """Runs `function` on all replicas, twice, and returns its list of tensors, per replica."""
    if MODE == "graph":
        tensors = [local(value) for value in on_replicas(function)]
        SESSION.run(tensors)
        results = SESSION.run(tensors)
    else:
        run = tf.function(lambda: on_replicas(function)) if MODE == "function" else None
        for _ in range(2):
            outputs = run() if run else on_replicas(function)
        results = [[tensor.numpy() for tensor in local(output)] for output in outputs]
    return [[np.asarray(copy, np.float64).tolist() for copy in copies] for copies in results]


def sums():
    keys = [(dtype, group) for group in GROUPS for dtype in DTYPES]

    def on_each():
        r = replica_number()
        results = []
        for dtype, group in keys:
            total = cross_replica_sum(tf.cast(tf.stack([r, 3 * r]), dtype), GROUPS[group])
            assert total.dtype == dtype
            results.append(tf.cast(total, tf.float64))
        return results

    return dict(zip([" ".join(key) for key in keys], values_of(on_each)))


def gradients():
    def on_each():
        r = replica_number()
        results = []
        for groups in GROUPS.values():
            x = tf.stack([r, r * r])
            weights = tf.stack([r, 1.0])
            if MODE == "graph":
                y = tf.reduce_sum(cross_replica_sum(x, groups) * weights)
                results.append(tf1.gradients(y, [x])[0])
            else:
                with tf.GradientTape() as tape:
                    tape.watch(x)
                    y = tf.reduce_sum(cross_replica_sum(x, groups) * weights)
                results.append(tape.gradient(y, x))
        return results

    return dict(zip(GROUPS, values_of(on_each)))


def one_replica_fetched():
    """In a Session, fetching the sum of one replica alone does not wait for ever."""
    tensors = local(on_replicas(lambda: cross_replica_sum(replica_number(), GROUPS["crossed"])))
    return float(SESSION.run(tensors[3]))


def many_sums():
    """Many sums of all replicas, in an order that no schedule keeps."""

    def on_each():
        r = replica_number()
        total = tf.zeros([])
        for count in range(6):
            total += cross_replica_sum(r * (count + 1.0), list(GROUPS.values())[count % 4])
        return total

    return tf.add_n(local(on_replicas(on_each)))


def around_a_loop():
    """A loop around the replicas, before the devices have found each other for other sums."""

    def steps():
        def body(i, total):
            return i + 1, total + many_sums()

        return tf.while_loop(lambda i, _: i < 3, body, [0, 0.0])[1]

    if MODE == "function":
        steps = tf.function(steps, autograph=False)
    if MODE == "graph":
        total = steps()
        return [float(SESSION.run(total)) for _ in range(6)]
    # Several times: rounds that overlap fail now and then only.
    return [float(steps()) for _ in range(6)]


def order_of_rounds():
    """The rounds of a loop in a Session: when each begins, and ends with a slow sum."""
    seen = []

    def look(i, what):
        def see(number):
            if what == "slow":
                time.sleep(0.1)
            seen.append(f"{what} {number}")
            return np.float32(number)

        result = tf.numpy_function(see, [i], tf.float32)
        result.set_shape([])
        return result

    def body(i, begun, total):
        sums = on_replicas(lambda: cross_replica_sum(look(i, "slow")))
        return i + 1, begun + look(i, "begins"), total + look(local(sums)[0], "ends")

    loop = tf.while_loop(lambda i, *_: i < 3, body, [0, 0.0, 0.0])
    # Rounds that overlap may also wait for ever.
    SESSION.run(loop, options=tf1.RunOptions(timeout_in_ms=20000))
    return [text for text in seen if "slow" not in text]


def deeper_in_a_loop():
    """Sums in a branch, a loop and a function, each in a loop: none is built."""
    said = {}
    for name, inner in {
        "branch": lambda i: tf.cond(i < 2, many_sums, lambda: 0.0),
        "loop": lambda i: tf.while_loop(lambda _: i < 2, lambda x: [x + many_sums()], [0.0])[0],
        "function": lambda i: tf.function(many_sums, autograph=False)(),
    }.items():

        def body(i, total, inner=inner):
            return i + 1, total + inner(i)

        try:
            tf.while_loop(lambda i, _: i < 3, body, [0, 0.0])
        except NotImplementedError as error:
            said[name] = str(error)
    return said


def loops_of_the_replicas():
    """Each replica has a loop of control flow v1: sums in its rounds, and their gradient."""
    was_v2 = tf1.control_flow_v2_enabled()
    tf1.disable_control_flow_v2()

    def on_each():
        r = replica_number()

        def body(i, total):
            x = r * tf.cast(i + 1, tf.float32)
            pair = cross_replica_sum(x, GROUPS["crossed"])
            return i + 1, total + cross_replica_sum(x) + r * pair

        total = tf.while_loop(lambda i, _: i < 20, body, [0, 0.0])[1]
        return [total, tf1.gradients(total, [r])[0]]

    values = values_of(on_each)
    if was_v2:
        tf1.enable_control_flow_v2()
    return values


def loop_of_each_replica():
    """With control flow v2, or in eager mode; the graph is of no use after it fails."""

    def on_each():
        return [tf.while_loop(lambda i, _: i < 2, body, [0, replica_number()])[1]]

    def body(i, total):
        return i + 1, cross_replica_sum(total)

    tf1.enable_control_flow_v2()
    try:
        return values_of(on_each)[0]
    except NotImplementedError as error:
        return str(error)


def condition_of_each_replica():
    """Each replica has a loop with a sum in its condition; built in a graph of its own."""

    def on_each():
        r = replica_number()

        def condition(_, total):
            return cross_replica_sum(total) < 100.0

        return [tf.while_loop(condition, lambda i, total: (i + 1, total + r), [0, r])[1]]

    tf1.enable_control_flow_v2()
    try:
        if MODE != "graph":
            return values_of(on_each)[0]
        with tf.Graph().as_default():
            return str(on_replicas(on_each))
    except NotImplementedError as error:
        return str(error)


def one_replica_used():
    """The program uses the sum of one replica only, in body and condition of a loop."""

    def total(x):
        return local(on_replicas(lambda: cross_replica_sum(x * replica_number())))[1]

    def loop():
        return tf.while_loop(
            lambda _, x: total(x) < 100.0, lambda i, x: (i + 1, x + 0.1 * total(x)), [0, 1.0]
        )[1]

    def branch():
        return tf.cond(total(1.0) > 0.0, lambda: total(2.0), lambda: 0.0)

    if MODE == "eager":
        return [[float(loop()), float(branch())]]
    if MODE == "function":
        return [[float(tf.function(build, autograph=False)()) for build in (loop, branch)]]
    found = []
    was_v2 = tf1.control_flow_v2_enabled()
    for is_v2 in (False, True) if was_v2 else (False,):
        (tf1.enable_control_flow_v2 if is_v2 else tf1.disable_control_flow_v2)()
        with tf.Graph().as_default(), tf1.Session(config=CONFIG) as session:
            options = tf1.RunOptions(timeout_in_ms=20000)
            found.append([float(session.run(build(), options=options)) for build in (loop, branch)])
    return found


def in_a_branch():
    def on_each():
        r = replica_number()
        return [
            tf.cond(r > 0.0, lambda: cross_replica_sum(r, GROUPS["pairs"]), lambda: r),
        ]

    return values_of(on_each)[0]


def refusals():
    """What would wait for ever says so instead."""

    def outside():
        with STRATEGY.scope():
            return cross_replica_sum(tf.constant(1.0))

    own_function = tf.function(lambda: cross_replica_sum(replica_number()), autograph=False)
    said = {}
    for name, run in {
        "function": lambda: on_replicas(lambda: own_function()),
        "outside": outside,
        "groups": lambda: on_replicas(lambda: cross_replica_sum(tf.constant(1.0), [[0, 1], [2]])),
        "assigning": lambda: assigning(GROUPS["pairs"]),
        "variables": lambda: assigning(None),
    }.items():
        try:
            run()
        except (NotImplementedError, RuntimeError, ValueError) as error:
            said[name] = f"{type(error).__name__}: {error}"
    return said


def assigning(groups):
    optimizer = CrossShardOptimizer(Assigning(), group_assignment=groups)
    with STRATEGY.scope():
        w = tf1.get_variable(f"w_of_{groups is None}", initializer=tf.ones([2]))

    def step():
        on_replicas(lambda: optimizer.apply_gradients([(tf.ones([2]), w)]))
        return 0

    tf.function(step, autograph=False)()


class Clipping(tf1.train.MomentumOptimizer):
    """Does something with the gradients before TensorFlow's own code gets them."""

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        clipped = [(tf.clip_by_norm(g, 3.0), v) for g, v in grads_and_vars]
        return super().apply_gradients(clipped, global_step, name)


class Assigning(tf1.train.Optimizer):
    """Does the whole step by itself, as the optimizer of BERT does; momentum 0.5, rate 0.1."""

    def __init__(self):
        super().__init__(False, "Assigning")

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        assignments = []
        for gradient, variable in grads_and_vars:
            momentum = tf1.get_variable(
                variable.name.split(":")[0] + "/m",
                variable.shape,
                initializer=tf1.zeros_initializer(),
                trainable=False,
                use_resource=True,
            )
            after = momentum * 0.5 + gradient
            assignments += [variable.assign(variable - 0.1 * after), momentum.assign(after)]
        return tf.group(*assignments)


def contrib(inner):
    return support.contrib_optimizer(inner, 8.0, 100, 1, 2.0, 0.5)[0]


def dynamic(inner):
    return support.v1_optimizer(inner, 8.0, 100)[0]


def momentum():
    return tf1.train.MomentumOptimizer(0.1, 0.5)


MEAN, SUM = tf1.losses.Reduction.MEAN, tf1.losses.Reduction.SUM
CASES = {
    "mean": lambda: CrossShardOptimizer(momentum()),
    "sum": lambda: CrossShardOptimizer(momentum(), SUM),
    "pairs": lambda: CrossShardOptimizer(momentum(), group_assignment=GROUPS["pairs"]),
    "crossed": lambda: CrossShardOptimizer(momentum(), SUM, group_assignment=GROUPS["crossed"]),
    "clipping": lambda: CrossShardOptimizer(Clipping(0.1, 0.5)),
    "clipping crossed": lambda: CrossShardOptimizer(
        Clipping(0.1, 0.5), group_assignment=GROUPS["crossed"]
    ),
    "assigning": lambda: CrossShardOptimizer(Assigning()),
    "assigning in v1": lambda: CrossShardOptimizer(dynamic(Assigning())),
    "v1 around assigning": lambda: dynamic(CrossShardOptimizer(Assigning())),
    "twice": lambda: CrossShardOptimizer(CrossShardOptimizer(momentum(), SUM), SUM),
    "contrib inside": lambda: CrossShardOptimizer(contrib(momentum())),
    "contrib around": lambda: contrib(CrossShardOptimizer(momentum())),
    "v1 inside": lambda: CrossShardOptimizer(dynamic(momentum())),
    "v1 around": lambda: dynamic(CrossShardOptimizer(momentum())),
    "v1 inside pairs": lambda: CrossShardOptimizer(
        dynamic(momentum()), group_assignment=GROUPS["pairs"]
    ),
}
STEPS = 3
OVERFLOW_AT = 1  # in the cases with a loss scale, on the last replica only


def trained(name):
    """Returns weights and table of every replica after each of three steps.

    Replica r has the loss r * sum(w) + 2 * (row 1 of the table, twice), so that its gradients are
    r and, sparse, 4.
    """

    def variable(letter, start, **options):
        full = f"{letter}_{name.replace(' ', '_')}"
        return tf1.get_variable(full, initializer=start, **options)

    with STRATEGY.scope():
        w, table = variable("w", tf.ones([2])), variable("t", tf.ones([3, 1]))
        hurt = variable("h", tf.zeros([]), trainable=False)
        optimizer = CASES[name]()

    def on_each():
        r = replica_number()
        factor = tf.where(tf.logical_and(hurt > 0.0, r > 3.5), float("inf"), 1.0)

        def loss():
            rows = tf.nn.embedding_lookup(table, [1, 1])
            return tf.reduce_sum(w) * r * factor + 2.0 * tf.reduce_sum(rows)

        pairs = optimizer.compute_gradients(loss() if MODE == "graph" else loss, [w, table])
        return optimizer.apply_gradients(pairs)

    scaled = "contrib" in name or "v1" in name
    history = []
    if MODE == "graph":
        step = local(on_replicas(on_each))
        SESSION.run(tf1.global_variables_initializer())
        copies = [local(w), local(table)]
        hurting = [hurt.assign(float(flag)) for flag in (0, 1)] if scaled else []
    else:
        run = tf.function(lambda: (on_replicas(on_each), 0)[1], autograph=False)
    for number in range(STEPS):
        hurts = scaled and number == OVERFLOW_AT
        if MODE == "graph":
            if scaled:
                SESSION.run(local(hurting[int(hurts)]))
            SESSION.run(step)
            weights, tables = SESSION.run(copies)
        else:
            hurt.assign(float(hurts))
            run() if MODE == "function" else on_replicas(on_each)
            weights = [copy.numpy() for copy in local(w)]
            tables = [copy.numpy() for copy in local(table)]
        history.append([[float(weight[0]) for weight in weights], [float(t[1, 0]) for t in tables]])
    return history


FLOATS = ("float16", "bfloat16", "float32")
LARGE = 1 << 16


class Passing(tf1.train.GradientDescentOptimizer):
    """Has an `apply_gradients` of its own, and so is given sums."""

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        pairs = list(grads_and_vars)
        kinds = {type(gradient) for gradient, _ in pairs if gradient is not None}
        assert kinds == {type(tf.identity(pairs[0][0]))}  # dense
        assert all(gradient is None or gradient.dtype == v.dtype for gradient, v in pairs)
        return super().apply_gradients(pairs, global_step, name)


KINDS = {
    "plain": (tf1.train.GradientDescentOptimizer, None),
    "whole": (Passing, None),
    "crossed": (tf1.train.GradientDescentOptimizer, [[0, 2], [3, 1]]),
}


def step_of_dtypes(case):
    """Of each dtype there are two small variables, a large one, a table and one without gradient.

    Replica r (from 1) has the gradients r, 2 * r, r, and 3 * r for row 1 of the table, twice.
    """
    cls, groups = KINDS[case]
    shapes = {"a": [], "b": [3, 2], "large": [LARGE], "table": [4, 2], "unused": [2]}
    variables = {}
    with STRATEGY.scope():
        for dtype in FLOATS:
            for name, shape in shapes.items():
                variables[dtype, name] = tf1.get_variable(
                    "_".join([case.replace(" ", "_"), dtype, name]),
                    initializer=tf.zeros(shape, dtype),
                    use_resource=True,
                )
        optimizer = CrossShardOptimizer(cls(1.0), group_assignment=groups)

    def on_each():
        number = tf.distribute.get_replica_context().replica_id_in_sync_group + 1
        pairs = []
        for dtype in FLOATS:
            r = tf.cast(number, dtype)
            rows = tf.fill([2, 2], 3 * r)
            for name, gradient in {
                "a": r,
                "table": tf.IndexedSlices(rows, tf.constant([1, 1]), tf.constant([4, 2])),
                "b": tf.fill([3, 2], 2 * r),
                "unused": None,
                "large": tf.fill([LARGE], r),
            }.items():
                pairs.append((gradient, variables[dtype, name]))
        return optimizer.apply_gradients(pairs)

    if MODE == "graph":
        train = local(on_replicas(on_each))
        SESSION.run(tf1.global_variables_initializer())
        SESSION.run(train)
    else:
        tf.function(lambda: (on_replicas(on_each), 0)[1], autograph=False)()
    found = {}
    for (dtype, name), variable in variables.items():
        copies = [tf.cast(copy.read_value(), tf.float64) for copy in local(variable)]
        values = SESSION.run(copies) if MODE == "graph" else [copy.numpy() for copy in copies]
        lost = [sorted(set((-np.reshape(value, [-1])).tolist())) for value in values]
        found[f"{dtype} {name}"] = lost
    return found


def names():
    """The cases of this mode; those of the quick tests have each part of a case once."""
    if MODE == "eager":
        return ["mean", "crossed", "clipping crossed", "v1 around"]
    # Optimizers that make variables in their step are for graphs only.
    found = [name for name in CASES if MODE == "graph" or "assigning" not in name]
    if processes.LONG:
        return found
    repeated = ("mean", "clipping", "assigning", "contrib around", "v1 inside", "v1 around")
    return [name for name in found if name not in repeated]


if sys.argv[2:]:
    result = {case: step_of_dtypes(case) for case in KINDS}
else:
    result = {"loop": around_a_loop(), "sums": sums(), "gradients": gradients()}
    if MODE == "graph":
        if tf1.control_flow_v2_enabled():
            result.update(deeper=deeper_in_a_loop(), rounds=order_of_rounds())
        result.update(one=one_replica_fetched(), loops=loops_of_the_replicas())
    if MODE == "function":
        result.update(refusals=refusals())
    result.update(branch=in_a_branch(), used=one_replica_used())
    result["trained"] = {name: trained(name) for name in names()}
    result["own condition"] = condition_of_each_replica()
    result["own loop"] = loop_of_each_replica()
print(json.dumps(result))
