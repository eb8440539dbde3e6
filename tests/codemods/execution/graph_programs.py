"""Random graph-mode programs of TensorFlow 1.15: contrib, v1 loss scales, rewrite, cross-shard.

What is not loss scaling is spelled through `compat.v1`, as after `tf_upgrade_v2`, so that the same
program runs on TensorFlow 1.15 and, migrated, on any later one.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

from .graph_traps import GRAPH_TRAPS
from .program import ANY, REWRITTEN, Program, indented
from .spelling import Deep, Names, Root, spell

CONTRIB = "contrib.mixed_precision"
MANAGERS = ("FixedLossScaleManager", "ExponentialUpdateLossScaleManager")
CONTRIB_SYMBOLS = (*MANAGERS, "LossScaleManager", "LossScaleOptimizer")
_CONTRIB_MANAGERS = Deep("tensorflow.contrib.mixed_precision.python", "loss_scale_manager")
CONTRIB_DEEP = {
    "FixedLossScaleManager": _CONTRIB_MANAGERS,
    "ExponentialUpdateLossScaleManager": _CONTRIB_MANAGERS,
    "LossScaleManager": _CONTRIB_MANAGERS,
    "LossScaleOptimizer": Deep("tensorflow.contrib.mixed_precision.python", "loss_scale_optimizer"),
}
_V1 = "tensorflow.python.training.experimental"
V1_DEEP = {
    "FixedLossScale": Deep(_V1, "loss_scale"),
    "DynamicLossScale": Deep(_V1, "loss_scale"),
    "MixedPrecisionLossScaleOptimizer": Deep(_V1, "loss_scale_optimizer"),
    "enable_mixed_precision_graph_rewrite": Deep(_V1, "mixed_precision"),
}
TPU_DEEP = {"CrossShardOptimizer": Deep("tensorflow.python.tpu", "tpu_optimizer")}


_PLAIN = ("import tensorflow as tf",)
ROOTS = (
    Root("tf", "tensorflow", "tf.compat.v1", _PLAIN),
    Root("tf", "tensorflow", "tf1", _PLAIN, ("tf1 = tf.compat.v1",)),
    Root("tf", "tensorflow", "tf1", (*_PLAIN, "import tensorflow.compat.v1 as tf1")),
    Root(
        "tensorflow",
        "tensorflow",
        "v1",
        ("import tensorflow", "from tensorflow.compat import v1"),
    ),
)
V1_ROOTS = (
    Root("tf", "tensorflow.compat.v1", "tf", ("import tensorflow.compat.v1 as tf",)),
    Root("tf", "tensorflow.compat.v1", "tf", ("from tensorflow.compat import v1 as tf",)),
)
"""Below these there is no contrib."""


def _optimizer(rng: random.Random, v1: str) -> str:
    return rng.choice(
        [
            f"{v1}.train.GradientDescentOptimizer(0.125)",
            f"{v1}.train.GradientDescentOptimizer(learning_rate=0.5)",
            f"{v1}.train.MomentumOptimizer(0.125, 0.75)",
            f"{v1}.train.MomentumOptimizer(0.25, momentum=0.5, use_nesterov=True)",
            f"{v1}.train.AdamOptimizer(0.0625)",
            f"{v1}.train.AdagradOptimizer(0.25)",
        ]
    )


def _batches(rng: random.Random, finite: bool) -> str:
    rows = []
    for _ in range(rng.randint(7, 10)):
        kind = 0.0 if finite else rng.random()
        if kind < 0.6:
            first = str(rng.choice([0.5, 1.0, -1.5, 2.0, 3.25, 0.75]))
        elif kind < 0.8:
            first = rng.choice(["INF", "-INF", "NAN"])
        else:
            first = rng.choice(["1e35", "-3e34", "2e36", "1e33"])
        rows.append(f"[{first}, {rng.choice(['1.0', '-0.5', '2.5'])}]")
    return f"BATCHES = [{', '.join(rows)}]"


def _loss(rng: random.Random, v1: str) -> str:
    return rng.choice(
        [
            f"loss = {v1}.reduce_sum(weights * x)",
            f"loss = {v1}.reduce_sum({v1}.square(weights * x - 1.0)) * 0.125",
            f"loss = {v1}.reduce_sum(weights * x) + {v1}.reduce_sum(bias * 0.5)",
            f"loss = {v1}.reduce_mean(weights * x * 0.5 + {v1}.square(bias))",
        ]
    )


def _train_op(rng: random.Random, v1: str) -> list[str]:
    """From `optimizer` and `loss` to `train_op`."""
    apply = rng.choice(
        [
            "optimizer.apply_gradients(grads_and_vars, global_step=step)",
            "optimizer.apply_gradients(grads_and_vars, step)",
            "optimizer.apply_gradients(grads_and_vars, global_step=step, name='train')",
        ]
    )
    compute = [
        "grads_and_vars = optimizer.compute_gradients(loss)",
        "grads_and_vars = [pair for pair in grads_and_vars if pair[0] is not None]",
    ]
    clip = [
        "grads, tvars = zip(*grads_and_vars)",
        f"grads, norm = {v1}.clip_by_global_norm(grads, 1.5)",
        "grads_and_vars = list(zip(grads, tvars))",
    ]
    each = [f"grads_and_vars = [({v1}.clip_by_norm(g, 0.75), v) for g, v in grads_and_vars]"]
    value = ["grads_and_vars = [(g * 0.5, v) for g, v in grads_and_vars]"]
    bert = [
        "grads, tvars = list(zip(*grads_and_vars))",
        f"all_are_finite = {v1}.reduce_all([{v1}.reduce_all({v1}.is_finite(g)) for g in grads])",
        f"clipped, _ = {v1}.clip_by_global_norm(grads, clip_norm=1.0,",
        f"    use_norm={v1}.cond(all_are_finite, lambda: {v1}.global_norm(grads),",
        f"                      lambda: {v1}.constant(1.0)))",
        "grads_and_vars = list(zip(clipped, tvars))",
    ]
    form = rng.choice(["minimize", "minimize", "plain", "clip", "each", "value", "bert"])
    if form == "minimize":
        arguments = rng.choice(
            ["loss, global_step=step", "loss, step", "loss=loss, global_step=step"]
        )
        return [f"train_op = optimizer.minimize({arguments}, var_list=[weights])"]
    between = {"plain": [], "clip": clip, "each": each, "value": value, "bert": bert}[form]
    return [*compute, *between, f"train_op = {apply}"]


def _session(v1: str, scale: str) -> list[str]:
    """Runs the graph and records every step."""
    feed = "feed_dict={x: batch}"
    record = ['record["weights"].append(session.run(weights).tolist())']
    record += ['record["steps"].append(int(session.run(step)))']
    if scale:
        record += [f'record["scales"].append(float(session.run({scale})))']
    record += [
        "for variable in counters:",
        '    record["counters"].append(int(session.run(variable)))',
    ]
    return [
        f"counters = [v for v in {v1}.global_variables() if '_steps' in v.op.name]",
        f"with {v1}.Session() as session:",
        f"    session.run({v1}.global_variables_initializer())",
        "    for batch in BATCHES:",
        f"        session.run(train_op, {feed})",
        *indented(record, 2),
        'record["names"] = sorted(v.op.name for v in counters)',
        "print(json.dumps(record))",
    ]


def _manager(rng: random.Random, finite: bool) -> tuple[str, bool]:
    """A manager's expression, and whether a later class gives the same numbers."""
    if rng.random() < 0.35:
        value = rng.choice(["128", "1024.0", "2 ** 10", "OPTIONS['loss_scaler']", "float(2**7)"])
        form = rng.choice(["{Fixed}(%s)", "{Fixed}(loss_scale=%s)"])
        return form % value, finite
    initial = rng.choice(["2**32", "1024", "16.0", "2 ** 15", "8", "OPTIONS['loss_scaler']", "1e6"])
    period = rng.choice(["1", "2", "3", "1000"])
    bad = rng.choice(["1", "2", "3"])
    up = rng.choice(["2", "2.0", "4.0", "1.5"])
    down = rng.choice(["0.5", "0.8", "0.25"])
    equal = bad == "1" and (up, down) in {("2", "0.5"), ("2.0", "0.5"), ("4.0", "0.25")}
    forms = [
        (f"{{Exp}}({initial}, {period})", False),
        (f"{{Exp}}(init_loss_scale={initial}, incr_every_n_steps={period})", False),
        (f"{{Exp}}({initial}, {period}, {bad}, {up}, {down})", equal),
        (
            f"{{Exp}}(init_loss_scale={initial}, incr_every_n_steps={period},"
            f" decr_every_n_nan_or_inf={bad}, decr_ratio={down})",
            bad == "1" and down == "0.5",
        ),
        (
            f"{{Exp}}({initial}, {period}, incr_ratio={up}, decr_every_n_nan_or_inf=1,"
            f" decr_ratio={down})",
            (up, down) in {("2", "0.5"), ("2.0", "0.5"), ("4.0", "0.25")},
        ),
    ]
    return rng.choice(forms)


def contrib_program(seed: int, number: int) -> Program:
    """Managers and the optimizer of `tf.contrib.mixed_precision`; every class has a shim twin."""
    rng = random.Random(f"contrib {seed} {number}")
    root = rng.choice(ROOTS)
    finite = rng.random() < 0.2
    manager, equal = _manager(rng, finite)
    lines: list[str]
    after: list[str] = []
    layout = rng.choice(["plain", "plain", "inline", "branches", "function", "subclass"])
    scale, read = "manager.get_loss_scale()", rng.random() < 0.8
    wrap = rng.choice(
        [
            "{LSO}(optimizer, manager)",
            "{LSO}(optimizer, loss_scale_manager=manager)",
            "{LSO}(opt=optimizer, loss_scale_manager=manager)",
            "{LSO}(\n    optimizer,  # float16 gradients\n    manager)",
        ]
    )
    inner = _optimizer(rng, root.v1)
    if layout == "inline":
        read = False
        lines = [f"optimizer = {inner}", f"optimizer = {{LSO}}(optimizer, {manager})"]
    elif layout == "branches":
        other, _ = _manager(rng, finite)
        equal = False
        lines = [
            f"optimizer = {inner}",
            "if OPTIONS['dynamic']:",
            f"    manager = {manager}",
            "else:",
            f"    manager = {other}",
            f"optimizer = {wrap}",
        ]
    elif layout == "function":
        equal = False
        lines = [
            "def wrapped(optimizer, fp16):",
            "    if not fp16:",
            "        return optimizer, None",
            f"    manager = {manager}",
            f"    return {wrap}, manager".replace("\n", "\n    "),
            "",
            f"optimizer, manager = wrapped({inner}, True)",
        ]
    elif layout == "subclass":
        equal = False
        base = "{Fixed}" if "{Fixed}" in manager else "{Exp}"
        lines = [
            f"class Logged({base}):",
            "    updates = 0",
            "",
            "    def update_loss_scale(self, finite_grads):",
            "        Logged.updates += 1",
            "        return super(Logged, self).update_loss_scale(finite_grads)",
            "",
            f"manager = {manager.replace(base, 'Logged')}",
            f"optimizer = {inner}",
            f"optimizer = {wrap}",
        ]
        after = ['record["updates"] = Logged.updates']
    else:
        lines = [f"manager = {manager}", f"optimizer = {inner}", f"optimizer = {wrap}"]
    symbols = {"{Fixed}": MANAGERS[0], "{Exp}": MANAGERS[1], "{LSO}": "LossScaleOptimizer"}
    needed = [name for key, name in symbols.items() if any(key in line for line in lines)]
    names = spell(rng, root, CONTRIB, needed, deep=CONTRIB_DEEP)
    for key, name in symbols.items():
        lines = [line.replace(key, names.written.get(name, "")) for line in lines]
    expects = {"shim": REWRITTEN, "final2": REWRITTEN, "final3": REWRITTEN}
    if equal and not read:
        expects["unsafe2"] = REWRITTEN
    source = _source(
        rng,
        root,
        [names],
        lines,
        scale if read else "",
        _batches(rng, finite),
        [*_train_op(rng, root.v1), *after],
    )
    ignores = {"unsafe2": ("names", "counters")}
    return Program(f"contrib-{number:04}", "contrib", source, "1.15", expects, ignores)


def _source(
    rng: random.Random,
    root: Root,
    names: list[Names],
    lines: list[str],
    scale: str,
    batches: str,
    train: Sequence[str] = (),
) -> str:
    """The whole program around `lines`, which make an `optimizer`; `train` makes `train_op`."""
    v1 = root.v1
    resource = ", use_resource=True" if rng.random() < 0.4 else ""
    initial = rng.choice(["[1.0, -2.0]", "[0.5, 0.25]"])
    body = [
        *(line for each in names for line in each.assignments),
        "INF, NAN = float('inf'), float('nan')",
        f"OPTIONS = {{'dynamic': {rng.random() < 0.5}, 'loss_scaler': {rng.choice([64.0, 512])}}}",
        batches,
        "record = {key: [] for key in ('scales', 'steps', 'weights', 'counters')}",
        f"x = {v1}.placeholder({v1}.float32, [2])",
        f"weights = {v1}.get_variable('weights', initializer={initial}{resource})",
        f"bias = {v1}.get_variable('bias', initializer=[0.5]{resource})",
        f"step = {v1}.train.get_or_create_global_step()",
        _loss(rng, v1),
        *lines,
        *(train or _train_op(rng, v1)),
        *_session(v1, scale),
    ]
    imports = [line for each in names for line in each.imports]
    text = "\n".join(body).split("\n")
    multi = any(line.startswith("class ") or "global " in line for line in text)
    if rng.random() < 0.2 and not multi:
        whole = [*root.imports, *imports, *root.assignments, *text]
        program = ["import json", "", "", "def main():", *indented(whole), "", "", "main()"]
    else:
        program = ["import json", "", *root.imports, *imports, "", *root.assignments, *text]
    return "\n".join(program) + "\n"


def _v1_scale(rng: random.Random) -> str:
    initial = rng.choice(["8", "64.", "2 ** 10", "2**15", "1024.0", "OPTIONS['loss_scaler']"])
    period, factor = rng.choice(["1", "2", "3", "1000"]), rng.choice(["2", "4.0", "2.", "1.5"])
    return rng.choice(
        [
            "'dynamic'",
            '"dynamic"',
            rng.choice(["128", "2 ** 9", "64.0"]),
            "{Dynamic}()",
            f"{{Dynamic}}({initial}, {period})",
            f"{{Dynamic}}(initial_loss_scale={initial}, increment_period={period})",
            f"{{Dynamic}}({initial}, {period}, {factor})",
            f"{{Dynamic}}(initial_loss_scale={initial}, increment_period={period},"
            f" multiplier={factor})",
            "{Fixed}(128)",
            "{Fixed}(loss_scale_value=1024.)",
        ]
    )


def v1_program(seed: int, number: int) -> Program:
    """v1 loss scales, their optimizer and the graph rewrite, under `train.experimental`."""
    rng = random.Random(f"v1 {seed} {number}")
    root = rng.choice((*ROOTS, *V1_ROOTS))
    scale = _v1_scale(rng)
    inner = _optimizer(rng, root.v1)
    wrapper = rng.choice(["{Optimizer}", "{Optimizer}", "{rewrite}"])
    named = rng.random() < 0.5
    argument = "loss_scaler" if named else scale
    call = rng.choice(
        [
            f"{wrapper}(optimizer, {argument})",
            f"{wrapper}(optimizer, loss_scale={argument})",
            f"{wrapper}(opt=optimizer, loss_scale={argument})",
            f"{wrapper}(\n    optimizer,\n    {argument},  # from the paper\n)",
        ]
    )
    lines = [f"optimizer = {inner}"]
    if named:
        lines.insert(rng.randint(0, 1), f"loss_scaler = {scale}")
    if wrapper == "{rewrite}" and rng.random() < 0.25:
        # Called for its side effect alone; the optimizer that trains is another one.
        lines += [f"_ = {call.replace('optimizer', inner, 1) if 'opt=' not in call else call}"]
    elif rng.random() < 0.3:
        lines += ["if USE_FP16:", *indented([f"optimizer = {call}".replace("\n", "\n    ")])]
    else:
        lines += [f"optimizer = {call}"]
    log = ""
    if named and "{" in scale and rng.random() < 0.7:
        lines += [f"logged = {root.v1}.identity(loss_scaler(), name='loss_scale_log')"]
        log = "logged" if rng.random() < 0.5 else "loss_scaler()"
    symbols = {
        "{Fixed}": "FixedLossScale",
        "{Dynamic}": "DynamicLossScale",
        "{Optimizer}": "MixedPrecisionLossScaleOptimizer",
        "{rewrite}": "enable_mixed_precision_graph_rewrite",
    }
    needed = [name for key, name in symbols.items() if any(key in line for line in lines)]
    packages = [root.package]
    if root.package == "tensorflow":
        packages = rng.choice([packages, ["tensorflow.compat.v1"]])
    names = spell(rng, root, "train.experimental", needed, packages, deep=V1_DEEP)
    for key, name in symbols.items():
        lines = [line.replace(key, names.written.get(name, "")) for line in lines]
    lines.insert(0, "USE_FP16 = True")
    expects = {"shim": REWRITTEN, "final2": REWRITTEN, "final3": REWRITTEN}
    source = _source(rng, root, [names], lines, log, _batches(rng, False))
    return Program(f"v1-{number:04}", "v1", source, "1.15", expects, {})


def graph_trap_program(seed: int, number: int) -> Program:
    """Programs of graph mode that a rewrite by spelling breaks."""
    rng = random.Random(f"graph_traps {seed} {number}")
    trap = list(GRAPH_TRAPS.values())[number % len(GRAPH_TRAPS)].drawn(rng)
    root = rng.choice(ROOTS)
    lines = [*trap.lines]
    names: list[Names] = []
    text = "\n".join([*lines, *trap.train])
    for path, symbols, deep in (
        (CONTRIB, CONTRIB_SYMBOLS, CONTRIB_DEEP),
        ("train.experimental", V1_DEEP, V1_DEEP),
    ):
        used = [symbol for symbol in symbols if f"{{{symbol}}}" in text]
        taken = {name for each in names for name in each.bound}
        taken.update(re.findall(r"^(\w+) =", text, re.MULTILINE))
        if used:
            names.append(spell(rng, root, path, used, deep=deep, taken=taken))
    train = [*trap.train] or _train_op(rng, root.v1)

    def filled(line: str) -> str:
        for each in names:
            for symbol, expression in each.written.items():
                line = line.replace(f"{{{symbol}}}", expression)
        line = line.replace("{inner}", _optimizer(rng, root.v1)).replace("{v1}", root.v1)
        return line.replace("{tf}", root.name)

    source = _source(
        rng,
        root,
        names,
        [filled(line) for line in lines],
        trap.scale,
        _batches(rng, False),
        [filled(line) for line in train],
    )
    expects = dict.fromkeys(("shim", "final2", "final3"), trap.expected)
    return Program(f"graph_traps-{number:04}", "graph_traps", source, "1.15", expects, {})


def cross_shard_program(seed: int, number: int) -> Program:
    """`if use_tpu: optimizer = CrossShardOptimizer(optimizer)`: trained without a TPU, or built."""
    rng = random.Random(f"cross_shard {seed} {number}")
    path = rng.choice(["contrib.tpu", "contrib.tpu", "tpu"])
    root = rng.choice(ROOTS)  # below `compat.v1` the class is where it must be already
    names = spell(rng, root, path, ["CrossShardOptimizer"], deep=TPU_DEEP)
    cross = names.written["CrossShardOptimizer"]
    inner = _optimizer(rng, root.v1)
    keyword = rng.choice(["", "", f", reduction={root.v1}.losses.Reduction.SUM", ", name='Cross'"])
    trains = rng.random() < 0.7
    wrap = rng.choice(
        [
            ["if USE_TPU:", f"    optimizer = {cross}(optimizer{keyword})"],
            [f"optimizer = {cross}(optimizer{keyword}) if USE_TPU else optimizer"],
            [
                "def for_tpu(opt):",
                f"    if isinstance(opt, {cross}):",
                "        return opt",
                f"    return {cross}(opt{keyword})",
                "",
                "if USE_TPU:",
                "    optimizer = for_tpu(for_tpu(optimizer))",
            ],
        ]
    )
    lines = [f"USE_TPU = {not trains}", f"optimizer = {inner}", *wrap]
    source = _source(rng, root, [names], lines, "", _batches(rng, True))
    if not trains:  # the operation that sums over TPU cores has no kernel elsewhere
        head, _, _ = source.partition(
            f"{'    ' if 'def main' in source else ''}with {root.v1}.Session()"
        )
        margin = "    " if "def main" in source else ""
        graph = [
            "operations = [op.type for op in x.graph.get_operations()]",
            "record['cross'] = operations.count('CrossReplicaSum')",
            "record['names'] = sorted(v.op.name for v in optimizer.variables()",
            "                         if '_power' not in v.op.name)",
            f"record['wrapped'] = isinstance(optimizer, {cross})",
            "print(json.dumps(record))",
        ]
        tail = [margin + line for line in graph]
        if margin:
            tail += ["", "", "main()"]
        source = head + "\n".join(tail) + "\n"
    expects = {"final2": REWRITTEN, "final3": REWRITTEN}
    if trains:
        # The optimizer that `for_tpu` tests can come from another file.
        expects["shim"] = REWRITTEN if "def for_tpu" not in source else ANY
    return Program(f"cross_shard-{number:04}", "cross_shard", source, "1.15", expects, {})
