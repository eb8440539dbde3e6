"""Random programs with the Keras experimental loss-scale optimizer and policies, TF 2.3 and 2.4."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import NamedTuple

from .keras_traps import TRAPS
from .program import ANY, REWRITTEN, Program, indented
from .spelling import Names, Root, spell

KERAS_SYMBOLS = ("LossScaleOptimizer", "Policy", "set_policy", "global_policy")
SCALE_SYMBOLS = ("DynamicLossScale", "FixedLossScale")
KERAS = "keras.mixed_precision.experimental"
ROOTS = (
    *[Root("tf", "tensorflow", "", ("import tensorflow as tf",))] * 4,
    Root("tensorflow", "tensorflow", "", ("import tensorflow",)),
    Root("tf2", "tensorflow", "", ("import tensorflow as tf2",)),
    Root("tf", "tensorflow.compat.v2", "", ("import tensorflow.compat.v2 as tf",)),
)
PACKAGES = ("tensorflow", "tensorflow", "tensorflow.compat.v2")
SCALE_PATHS = ("mixed_precision.experimental", "train.experimental")


class Scale(NamedTuple):
    """A `loss_scale` argument, with placeholders for its classes, and what goes before it."""

    text: str
    setup: tuple[str, ...] = ()


def _literal_scale(rng: random.Random) -> Scale:
    initial = rng.choice(["8", "64.", "2 ** 10", "2**15", "1024.0", "1e4", "float(2 ** 7)"])
    period = rng.choice(["1", "2", "3", "1000"])
    return Scale(
        rng.choice(
            [
                "'dynamic'",
                '"dynamic"',
                "'dynamic'",
                rng.choice(["16", "128.", "2 ** 12", "1024.0", "(512)"]),
                "{DynamicLossScale}()",
                f"{{DynamicLossScale}}({initial})",
                f"{{DynamicLossScale}}({initial}, {period})",
                f"{{DynamicLossScale}}(initial_loss_scale={initial}, increment_period={period})",
                f"{{DynamicLossScale}}(increment_period={period})",
                f"{{DynamicLossScale}}({initial}, increment_period={period}, multiplier=2)",
                f"{{DynamicLossScale}}({initial}, {period}, 2.)",
                f"{{DynamicLossScale}}(initial_loss_scale={initial}, increment_period={period},"
                " multiplier=2.0)",
                "{FixedLossScale}(64.)",
                "{FixedLossScale}(loss_scale_value=2 ** 9)",
            ]
        )
    )


def _scale(rng: random.Random) -> Scale:
    literal = _literal_scale(rng)
    form = rng.choice(["literal"] * 5 + ["named"] * 3 + ["late"] * 4)
    if form == "literal":
        return literal
    if form == "named":
        name = rng.choice(["loss_scale", "SCALE", "scaling"])
        return Scale(name, (f"{name} = {literal.text}",))
    other = _literal_scale(rng).text
    flags = f"FLAGS = {{'loss_scale': {literal.text}, 'fp16': True}}"
    return rng.choice(
        [
            Scale(
                "choose(True)",
                ("def choose(fp16):", f"    return {literal.text} if fp16 else {other}", ""),
            ),
            Scale("FLAGS['loss_scale']", (flags,)),
            Scale(f"{literal.text} if FLAGS['fp16'] else {other}", (flags,)),
            Scale(
                "Settings.loss_scale", ("class Settings:", f"    loss_scale = {literal.text}", "")
            ),
            Scale(
                "chosen",
                (
                    flags,
                    "if FLAGS['fp16']:",
                    f"    chosen = {literal.text}",
                    "else:",
                    f"    chosen = {other}",
                ),
            ),
            Scale("pick()", (f"pick = lambda: {literal.text}",)),
        ]
    )


def _constructed(rng: random.Random, lso: str, inner: str, scale: str) -> list[str]:
    """One call of the constructor, on one line or several."""
    form = rng.choice(["positional", "half", "keywords", "swapped", "lines", "comments"])
    if form == "positional":
        return [f"{lso}({inner}, {scale})"]
    if form == "half":
        return [f"{lso}({inner}, loss_scale={scale})"]
    if form == "keywords":
        return [f"{lso}(optimizer={inner}, loss_scale={scale})"]
    if form == "swapped":
        return [f"{lso}(loss_scale={scale}, optimizer={inner})"]
    if form == "lines":
        return [f"{lso}(", f"    {inner},", f"    loss_scale={scale}", ")"]
    return [f"{lso}(", f"    {inner},  # as before", f"    loss_scale={scale},", ")"]


def _inner(rng: random.Random, root: str) -> str:
    optimizers = f"{root}.keras.optimizers"
    return rng.choice(
        [
            f"{optimizers}.SGD(0.125)",
            f"{optimizers}.SGD(learning_rate=0.25)",
            f"{optimizers}.SGD(0.125, momentum=0.5)",
            f"{optimizers}.SGD(learning_rate=0.125, momentum=0.75, nesterov=True)",
            f"{optimizers}.Adam(0.0625)",
            f"{optimizers}.Adam(learning_rate=0.125, beta_1=0.75)",
        ]
    )


def _batches(rng: random.Random) -> str:
    """Two numbers per step; some steps overflow, some only at a large scale."""
    kinds: list[Callable[[], str]] = [
        lambda: str(rng.choice([0.5, 1.0, -1.5, 2.0, 3.25])),
        lambda: str(rng.choice([0.25, -0.75, 1.5])),
        lambda: rng.choice(["INF", "-INF", "NAN"]),
        lambda: rng.choice(["1e35", "-3e34", "2e36"]),
    ]
    rows = []
    for _ in range(rng.randint(6, 9)):
        kind = rng.choices(kinds, [5, 4, 2, 2])[0]
        rows.append(f"[{kind()}, {rng.choice(['1.0', '-0.5', '2.5'])}]")
    return f"BATCHES = [{', '.join(rows)}]"


def _losses(rng: random.Random, root: str) -> list[str]:
    body = rng.choice(
        [
            [f"return {root}.reduce_sum(weights * x)"],
            [f"return {root}.reduce_sum(weights * x) + {root}.square(bias)"],
            [
                f"half = {root}.cast(weights, {root}.float16) * {root}.cast(x, {root}.float16)",
                f"return {root}.reduce_sum(half) + {root}.cast(bias, {root}.float16)",
            ],
            [f"return {root}.reduce_sum({root}.square(weights * x - 1.0)) * 0.125 + bias"],
        ]
    )
    return ["def loss_of(x):", *indented(body), ""]


def _after_unscale(rng: random.Random, root: str) -> list[str]:
    """What looks at the unscaled gradients before they are applied."""
    return rng.choice(
        [
            [],
            [],
            [],
            [f"grads, norm = {root}.clip_by_global_norm(grads, 1.5)"],
            [f"grads = [{root}.clip_by_norm(g, 0.75) for g in grads]"],
            [f"grads = [{root}.clip_by_value(g, -1.0, 1.0) for g in grads]"],
            [
                f"norm = {root}.linalg.global_norm(grads)",
                "grads = [g / (norm + 1.0) for g in grads]",
            ],
            ["grads = [g * 0.5 for g in grads]"],
        ]
    )


def _step(rng: random.Random, root: str, lso: str, opt: str) -> list[str]:
    """The body of a training step over `x`."""
    form = rng.choice(
        ["plain"] * 4 + ["guard"] * 2 + ["choice", "accumulate", "minimize", "callable"]
    )
    if form == "minimize":
        return [f"{opt}.minimize(lambda: loss_of(x), [weights, bias])"]
    if form == "callable":
        return [
            f"scaled_loss = {opt}.get_scaled_loss(lambda: loss_of(x))",
            f"with {root}.GradientTape() as tape:",
            "    loss = scaled_loss()",
            f"grads = {opt}.get_unscaled_gradients(tape.gradient(loss, [weights, bias]))",
            f"{opt}.apply_gradients(zip(grads, [weights, bias]))",
        ]
    if form == "accumulate":
        return [
            f"total = [{root}.zeros_like(weights), {root}.zeros_like(bias)]",
            "for part in (x, x * 0.5):",
            f"    with {root}.GradientTape() as tape:",
            f"        loss = {opt}.get_scaled_loss(loss_of(part))",
            "    grads = tape.gradient(loss, [weights, bias])",
            f"    grads = {opt}.get_unscaled_gradients(grads)",
            "    total = [",
            "        t if g is None else t + g / 2.0 for t, g in zip(total, grads)",
            "    ]",
            f"{opt}.apply_gradients(zip(total, [weights, bias]))",
        ]
    if form == "guard":
        test = rng.choice([f"isinstance({opt}, {lso})", f"isinstance({opt}, ({lso},))", "USE_FP16"])
        return [
            f"with {root}.GradientTape() as tape:",
            "    loss = loss_of(x)",
            f"    if {test}:",
            f"        loss = {opt}.get_scaled_loss(loss)",
            "grads = tape.gradient(loss, [weights, bias])",
            f"if {test}:",
            f"    grads = {opt}.get_unscaled_gradients(grads)",
            "grads = [g if g is not None else 0.0 * v for g, v in zip(grads, [weights, bias])]",
            *_after_unscale(rng, root),
            f"{opt}.apply_gradients(zip(grads, [weights, bias]))",
        ]
    if form == "choice":
        test = rng.choice([f"isinstance({opt}, {lso})", f"hasattr({opt}, 'get_scaled_loss')"])
        return [
            f"with {root}.GradientTape() as tape:",
            "    loss = loss_of(x)",
            f"    loss = {opt}.get_scaled_loss(loss) if {test} else loss",
            "grads = tape.gradient(loss, [weights])",
            f"grads = {opt}.get_unscaled_gradients(grads) if {test} else grads",
            f"{opt}.apply_gradients(list(zip(grads, [weights])))",
        ]
    return [
        f"with {root}.GradientTape() as tape:",
        "    loss = loss_of(x)",
        f"    scaled_loss = {opt}.get_scaled_loss(loss)",
        "scaled_gradients = tape.gradient(scaled_loss, [weights])",
        f"grads = {opt}.get_unscaled_gradients(scaled_gradients)",
        *_after_unscale(rng, root),
        f"{opt}.apply_gradients(zip(grads, [weights]))",
    ]


def _read(rng: random.Random, opt: str, era: str) -> str:
    """The current scale, as a program of that TensorFlow reads it."""
    if era == "2.3":
        return f"float({opt}.loss_scale().numpy())"
    return rng.choice([f"float({opt}.loss_scale)", f"float({opt}.loss_scale.numpy())"])


def _training(rng: random.Random, root: str, scale: Scale, era: str, reads: bool) -> list[str]:
    """Builds the optimizer and trains, at module level, in functions or in a class."""
    lso = "{LossScaleOptimizer}"
    inner = _inner(rng, root)
    decorator = rng.choice([[], [], [f"@{root}.function"]])
    record = [
        'record["weights"].append(weights.numpy().tolist() + [float(bias.numpy())])',
    ]
    convert = f"{root}.constant(batch)"
    layout = rng.choice(["script", "script", "functions", "class", "make"])
    if layout == "class":
        held = rng.choice(["self.optimizer", "self.opt", "self._opt"])
        argument = scale.text
        own: list[str] = []
        if not scale.setup and rng.random() < 0.5:
            own, argument = [f"self.scale = {scale.text}"], "self.scale"
        first, *more = _constructed(rng, lso, inner, argument)
        state = []
        if reads:
            state = [f'record["scales"].append({_read(rng, held, era)})']
            state += [f'record["steps"].append(int({held}.iterations.numpy()))']
        unwrap = _unwrap(rng, held)
        return [
            "class Trainer:",
            *indented(["def __init__(self):"]),
            *indented([*own, f"{held} = {first}", *more], 2),
            "",
            *indented([*decorator, "def step(self, x):"]),
            *indented(_step(rng, root, lso, held), 2),
            "",
            *indented(["def log(self):"]),
            *indented([*(state or ["pass"]), *(unwrap if reads else [])], 2),
            "",
            "trainer = Trainer()",
            "for batch in BATCHES:",
            f"    trainer.step({convert})",
            "    trainer.log()",
            *indented(record),
            f'record["wrapped"] = isinstance(trainer.{held[5:]}, {lso})',
            *([f'record["config"] = trainer.{held[5:]}.get_config()'] if era != "2.3" else []),
        ]
    opt = rng.choice(["opt", "optimizer"])
    first, *more = _constructed(rng, lso, inner, scale.text)
    lines = [f"{opt} = {first}", *more]
    if layout == "make":
        first, *more = _constructed(rng, lso, "base", "scale")
        lines = [
            rng.choice(["def make(base, scale):", "def make(base, scale='dynamic'):"]),
            *indented([f"return {first}", *more]),
            "",
            f"{opt} = make({inner}, {scale.text})",
        ]
    elif layout == "functions":
        first, *more = _constructed(rng, lso, opt, scale.text)
        lines = [
            "def create():",
            *indented([f"{opt} = {inner}", "if USE_FP16:"]),
            *indented([f"{opt} = {first}", *more], 2),
            *indented([f"return {opt}"]),
            "",
            f"{opt} = create()",
        ]
    elif rng.random() < 0.3:  # rebinding the inner optimizer's name
        first, *more = _constructed(rng, lso, opt, scale.text)
        lines = [f"{opt} = {inner}", f"{opt} = {first}", *more]
    state = []
    if reads:
        # Where the optimizer came out of a function its type is not sure any more, and only the
        # spelling of TensorFlow 2.4 stays right without an edit.
        sure = layout == "script"
        read = _read(rng, opt, era) if sure or era != "2.3" else None
        state = [f'record["scales"].append({read})'] if read else []
        state += [f'record["steps"].append(int({opt}.iterations.numpy()))']
        state += _unwrap(rng, opt) if sure else []
    return [
        *lines,
        "",
        *decorator,
        "def step(x):",
        *indented(_step(rng, root, lso, opt)),
        "",
        "for batch in BATCHES:",
        f"    step({convert})",
        *indented(state),
        *indented(record),
        f'record["wrapped"] = isinstance({opt}, {lso})',
        *([f'record["config"] = {opt}.get_config()'] if era != "2.3" else []),
    ]


def _unwrap(rng: random.Random, opt: str) -> list[str]:
    if rng.random() < 0.6:
        return []
    return [f'record["rates"].append(float({opt}._optimizer.learning_rate))']


def _policy(rng: random.Random) -> tuple[list[str], list[str]]:
    """Statements around the training that set, read and reset the global policy."""
    before = rng.choice(
        [
            ["{set_policy}('mixed_float16')"],
            ["{set_policy}({Policy}('mixed_float16'))"],
            ["policy = {Policy}('mixed_float16', loss_scale='dynamic')", "{set_policy}(policy)"],
            ["policy = {Policy}('mixed_bfloat16')", "{set_policy}(policy)"],
            ["{set_policy}({Policy}('mixed_float16', 'dynamic'))"],
            ["{set_policy}({Policy}(name='mixed_float16'))"],
        ]
    )
    reads = [
        'record["policy"] = [{global_policy}().name, {global_policy}().compute_dtype]',
        'record["variable"] = {global_policy}().variable_dtype',
    ]
    return [*before, rng.choice(reads)], ["{set_policy}('float32')"]


def keras_program(seed: int, number: int) -> Program:
    """The program of one number: TensorFlow 2.4 mostly, some with the calls of 2.3."""
    rng = random.Random(f"keras {seed} {number}")
    era = "2.3" if number % 6 == 5 else "2.4"
    imported = rng.choice(ROOTS)
    with_policy = rng.random() < 0.2
    reads = era == "2.3" or rng.random() < 0.85
    scale = _scale(rng)
    body = [*scale.setup, "", *_training(rng, imported.name, scale, era, reads)]
    before, after = _policy(rng) if with_policy else ([], [])
    source = written(rng, imported, body, before, after)
    stages = ["shim", "final2", "final3"]
    if not reads and "float16)" not in source:
        # The installed Keras 3 class has no scale to read, and scales a float16 loss in float32,
        # where it does not overflow: a difference that the finding names.
        stages.append("unsafe3")
    expects = dict.fromkeys(stages, REWRITTEN)
    return Program(f"keras-{number:04}", "keras", source, era, expects, {})


def _guarded_loop(scaled: bool) -> list[str]:
    """Trains with whatever `opt` is."""
    test = "isinstance(opt, {LossScaleOptimizer})"
    reads = ['record["scales"].append(float(opt.loss_scale))'] if scaled else []
    return [
        "def step(x):",
        "    with {tf}.GradientTape() as tape:",
        "        loss = loss_of(x)",
        f"        scaled = opt.get_scaled_loss(loss) if {test} else loss",
        "    grads = tape.gradient(scaled, [weights])",
        f"    if {test}:",
        "        grads = opt.get_unscaled_gradients(grads)",
        "    grads, _ = {tf}.clip_by_global_norm(grads, 1.5)",
        "    opt.apply_gradients(zip(grads, [weights]))",
        "",
        "for batch in BATCHES:",
        "    step({tf}.constant(batch))",
        '    record["weights"].append(weights.numpy().tolist())',
        *indented(reads),
        '    record["steps"].append(int(opt.iterations.numpy()))',
        f'record["wrapped"] = {test}',
        *(['record["config"] = opt.get_config()'] if scaled else []),
    ]


def trap_program(seed: int, number: int) -> Program:
    """A program whose obvious rewrite is wrong; what must be left is left, and all of it runs."""
    rng = random.Random(f"traps {seed} {number}")
    imported = rng.choice(ROOTS)
    trap = list(TRAPS.values())[number % len(TRAPS)].drawn(rng)

    def filled(lines: Iterable[str]) -> list[str]:
        return [
            line.replace("{inner}", _inner(rng, imported.name)).replace("{tf}", imported.name)
            for line in lines
        ]

    body = filled([*trap.lines, "", *(trap.train or _guarded_loop(trap.scaled))])
    before, after = filled(trap.before), filled(trap.after)
    source = written(rng, imported, body, before, after)
    expects = dict.fromkeys(("final2", "final3"), trap.expected)
    expects["shim"] = ANY if trap.expected == ANY else trap.to_shim
    return Program(f"traps-{number:04}", "traps", source, "2.4", expects, {})


def written(
    rng: random.Random, imported: Root, body: list[str], before: list[str], after: list[str]
) -> str:
    """The whole program: imports, aliases, data, training, and the line that prints.

    `{Symbol}` in the lines stands for a legacy symbol, wherever its name comes from.
    """
    text = "\n".join([*before, *body, *after])
    packages = PACKAGES if imported.package == "tensorflow" else (imported.package,)
    names: list[Names] = []
    for path, symbols in ((KERAS, KERAS_SYMBOLS), (rng.choice(SCALE_PATHS), SCALE_SYMBOLS)):
        used = [symbol for symbol in symbols if f"{{{symbol}}}" in text]
        taken = {name for each in names for name in each.bound}
        if used:
            names.append(spell(rng, imported, path, used, packages, taken=taken))

    def named(lines: list[str]) -> list[str]:
        filled = "\n".join(lines)
        for each in names:
            for symbol, expression in each.written.items():
                filled = filled.replace(f"{{{symbol}}}", expression)
        return filled.split("\n")

    root = imported.name
    imports = [*imported.imports, *(line for each in names for line in each.imports)]
    whole = [
        *(line for each in names for line in each.assignments),
        "INF, NAN = float('inf'), float('nan')",
        "USE_FP16 = True",
        _batches(rng),
        "record = {key: [] for key in ('scales', 'steps', 'weights', 'rates')}",
        *named(before),
        f"weights = {root}.Variable([{rng.choice(['1.0, -2.0', '0.5, 0.25', '3.0, 1.5'])}])",
        f"bias = {root}.Variable({rng.choice(['0.0', '0.5'])})",
        "",
        *_losses(rng, root),
        *named(body),
        *named(after),
        "print(json.dumps(record, default=float))",
    ]
    if rng.random() < 0.2 and "class " not in text and "global " not in text:
        lines = ["import json", "", "", "def main():", *indented([*imports, *whole])]
        return "\n".join([*lines, "", "", "main()", ""])
    return "\n".join(["import json", "", *imports, "", *whole, ""])
