"""Keras programs whose obvious rewrite is wrong (TRAPS of real repositories and of rewriting)."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import NamedTuple

from .program import ANY, MANUAL, REWRITTEN

__all__ = ["TRAPS", "Trap"]


class Trap(NamedTuple):
    """Statements that leave an optimizer in `opt`.

    Attributes:
      lines: with `{inner}` for a new inner optimizer and `{Symbol}` for legacy symbols.
      expected: what the `final` stages must make of it.
      scaled: whether `opt` is a loss-scale optimizer in the end.
      before: statements at the start of the program.
      after: statements at its end.
      train: what follows instead of the usual training loop.
    """

    lines: list[str]
    expected: str = REWRITTEN
    scaled: bool = True
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    train: tuple[str, ...] = ()


def _rebound_argument(rng: random.Random) -> Trap:
    """Inlining the object would read `initial` too late."""
    return Trap(
        [
            f"initial = {rng.choice(['8.0', '2 ** 6'])}",
            "scaling = {DynamicLossScale}(initial, 3)",
            "initial = 4096.0",
            "opt = {LossScaleOptimizer}({inner}, scaling)",
            'record["initial"] = initial',
        ]
    )


def _rebound_name(rng: random.Random) -> Trap:
    return Trap(
        [
            "loss_scale = 'dynamic'",
            f"if {rng.choice(['USE_FP16', 'not USE_FP16'])}:",
            f"    loss_scale = {rng.choice(['64.0', '{DynamicLossScale}(16, 2)', '128'])}",
            "opt = {LossScaleOptimizer}({inner}, loss_scale)",
        ]
    )


def _augmented(rng: random.Random) -> Trap:
    return Trap(
        [
            "scale = 8.0",
            "scale *= 4",
            f"opt = {{LossScaleOptimizer}}({{inner}}, {_maybe(rng)}scale)",
        ]
    )


def _maybe(rng: random.Random) -> str:
    return rng.choice(["", "loss_scale="])


def _in_a_loop(rng: random.Random) -> Trap:
    return Trap(
        [
            f"for scale in (8, {rng.choice(['16.0', chr(39) + 'dynamic' + chr(39)])}):",
            f"    opt = {{LossScaleOptimizer}}({{inner}}, {_maybe(rng)}scale)",
        ]
    )


def _starred(rng: random.Random) -> Trap:
    form = rng.choice(
        [
            [
                "arguments = {'loss_scale': 'dynamic'}",
                "opt = {LossScaleOptimizer}({inner}, **arguments)",
            ],
            ["arguments = [{inner}, 64.0]", "opt = {LossScaleOptimizer}(*arguments)"],
            ["opt = {LossScaleOptimizer}(*[{inner}], loss_scale={DynamicLossScale}(32, 2))"],
        ]
    )
    return Trap(form, ANY)


def _passed_class(rng: random.Random) -> Trap:
    """The final class does not take what the callee passes."""
    call = rng.choice(["'dynamic'", "64.0", "loss_scale=128"])
    return Trap(
        [
            "def build(cls, base):",
            f"    return cls(base, {call})",
            "",
            "opt = build({LossScaleOptimizer}, {inner})",
        ],
        ANY,
    )


def _partial(rng: random.Random) -> Trap:
    return Trap(
        [
            "import functools",
            "wrap = functools.partial({LossScaleOptimizer}, loss_scale=64.0)",
            "opt = wrap({inner})",
        ],
        ANY,
    )


def _table_of_classes(rng: random.Random) -> Trap:
    return Trap(
        ["CLASSES = {'amp': {LossScaleOptimizer}}", "opt = CLASSES['amp']({inner}, 'dynamic')"], ANY
    )


def _default_argument(rng: random.Random) -> Trap:
    return Trap(
        [
            "def wrap(base, cls={LossScaleOptimizer}):",
            f"    return cls(base, {rng.choice(['32.0', repr('dynamic')])})",
            "",
            "opt = wrap({inner})",
        ],
        ANY,
    )


def _subclass(rng: random.Random) -> Trap:
    return Trap(
        [
            "class Logged({LossScaleOptimizer}):",
            "    updates = 0",
            "",
            "    def apply_gradients(self, *args, **kwargs):",
            "        Logged.updates += 1",
            "        return super(Logged, self).apply_gradients(*args, **kwargs)",
            "",
            f"opt = Logged({{inner}}, {_maybe(rng)}{rng.choice(['64.0', repr('dynamic')])})",
        ],
        MANUAL,
    )


def _used_again(rng: random.Random) -> Trap:
    """On TensorFlow 2.4 the object keeps its own, unused state."""
    return Trap(
        [
            "scaling = {DynamicLossScale}(64, 2)",
            "opt = {LossScaleOptimizer}({inner}, scaling)",
            'record["own"] = float(scaling())',
        ],
        MANUAL,
    )


def _shared(rng: random.Random) -> Trap:
    return Trap(
        [
            "scaling = {DynamicLossScale}(128, 2)",
            "other = {LossScaleOptimizer}({inner}, scaling)",
            f"opt = {{LossScaleOptimizer}}({{inner}}, {_maybe(rng)}scaling)",
        ],
        MANUAL,
    )


def _multiplier(rng: random.Random) -> Trap:
    """The Keras class doubles and halves only; TF 2.4 refuses another factor."""
    factor = rng.choice(["4.", "1.5", "multiplier=3"])
    return Trap(
        [
            "try:",
            f"    opt = {{LossScaleOptimizer}}({{inner}}, {{DynamicLossScale}}(8, 3, {factor}))",
            "except ValueError:",
            "    opt = {inner}",
        ],
        ANY,  # on the shim it is refused as on 2.4; reported, since 2.3 accepted it
        scaled=False,
    )


def _policy_scale(rng: random.Random) -> Trap:
    scale = rng.choice(["None", "128.0", "{DynamicLossScale}(8, 2)"])
    return Trap(
        ["opt = {LossScaleOptimizer}({inner}, 'dynamic')"],
        MANUAL,
        before=(
            f"policy = {{Policy}}('mixed_float16', loss_scale={scale})",
            "{set_policy}(policy)",
            'record["policy"] = {global_policy}().name',
        ),
        after=("{set_policy}('float32')",),
    )


def _policy_read(rng: random.Random) -> Trap:
    return Trap(
        ["opt = {LossScaleOptimizer}({inner}, {global_policy}().loss_scale)"],
        MANUAL,
        before=("{set_policy}({Policy}('mixed_float16'))",),
        after=("{set_policy}('float32')",),
    )


def _two(rng: random.Random) -> Trap:
    return Trap(
        [
            "generator = {LossScaleOptimizer}({inner}, 'dynamic')",
            "discriminator = {LossScaleOptimizer}({inner}, loss_scale=64.0)",
            f"opt = {rng.choice(['generator', 'discriminator'])}",
        ]
    )


def _sometimes(rng: random.Random) -> Trap:
    use = rng.choice(["USE_FP16", "not USE_FP16"])
    return Trap(
        [
            "opt = {inner}",
            f"opt = {{LossScaleOptimizer}}(opt, {_maybe(rng)}'dynamic') if {use} else opt",
        ],
        scaled=use == "USE_FP16",
    )


def _comprehension(rng: random.Random) -> Trap:
    return Trap(
        [
            "pair = [{LossScaleOptimizer}(base, 'dynamic') for base in [{inner}, {inner}]]",
            f"opt = pair[{rng.choice('01')}]",
        ]
    )


def _lambda(rng: random.Random) -> Trap:
    scale = rng.choice(["64", "'dynamic'"])
    return Trap(
        [
            f"wrap = lambda base: {{LossScaleOptimizer}}(base, {scale})",
            "opt = wrap({inner})",
        ]
    )


def _annotated(rng: random.Random) -> Trap:
    return Trap(
        [
            "def wrap(base, scale=16.0) -> {LossScaleOptimizer}:",
            "    wrapped: {LossScaleOptimizer} = {LossScaleOptimizer}(base, scale)",
            "    return wrapped",
            "",
            "opt = wrap({inner})",
        ]
    )


def _from_config(rng: random.Random) -> Trap:
    scale = f"{{DynamicLossScale}}(64, {rng.choice('23')})"
    return Trap(
        [
            f"first = {{LossScaleOptimizer}}({{inner}}, {scale})",
            "opt = {LossScaleOptimizer}.from_config(first.get_config())",
        ],
        ANY,
    )


def _name_in_scope(rng: random.Random) -> Trap:
    """The inner name is another one than the module's."""
    return Trap(
        [
            "scale = 'dynamic'",
            "",
            "def build(scale):",
            f"    return {{LossScaleOptimizer}}({{inner}}, {_maybe(rng)}scale)",
            "",
            f"opt = build({rng.choice(['32.0', '{DynamicLossScale}(16, 2)'])})",
            'record["outer"] = scale',
        ]
    )


def _global(rng: random.Random) -> Trap:
    return Trap(
        [
            "SCALE = 'dynamic'",
            "",
            "def configure():",
            "    global SCALE",
            f"    SCALE = {rng.choice(['32.0', '{DynamicLossScale}(16, 2)'])}",
            "",
            "configure()",
            "opt = {LossScaleOptimizer}({inner}, SCALE)",
        ]
    )


def _late_binding(rng: random.Random) -> Trap:
    """The value is bound after the function that reads it, and again."""
    return Trap(
        [
            "def build():",
            f"    return {{LossScaleOptimizer}}({{inner}}, {_maybe(rng)}SCALE)",
            "",
            "SCALE = 256.0",
            "opt = build()",
            "SCALE = 'dynamic'",
        ]
    )


def _evaluation_order(rng: random.Random) -> Trap:
    return Trap(
        [
            "calls = []",
            "",
            "def noted(value):",
            "    calls.append(str(type(value).__name__))",
            "    return value",
            "",
            "opt = {LossScaleOptimizer}(loss_scale=noted(64.0), optimizer=noted({inner}))",
            'record["calls"] = calls',
        ]
    )


def _growth_named(rng: random.Random) -> Trap:
    factor = rng.choice(["", ", multiplier=2"])
    return Trap(
        [
            "PERIOD = 2",
            "FACTOR = 2",
            f"scaling = {{DynamicLossScale}}(32, increment_period=PERIOD{factor})",
            "opt = {LossScaleOptimizer}({inner}, scaling)",
        ]
    )


def _true(rng: random.Random) -> Trap:
    """True is the number 1 here, and `dynamic=True` there."""
    return Trap([f"opt = {{LossScaleOptimizer}}({{inner}}, {_maybe(rng)}True)"])


def _constant_expression(rng: random.Random) -> Trap:
    value = rng.choice(["1 << 9", "-(-64)", "2.0 ** (3 + 4)", "1024 // 2", "float('256')", "+8"])
    return Trap([f"opt = {{LossScaleOptimizer}}({{inner}}, {_maybe(rng)}{value})"])


def _implicit_string(rng: random.Random) -> Trap:
    return Trap([f"opt = {{LossScaleOptimizer}}({{inner}}, {_maybe(rng)}('dyn' 'amic'))"])


def _version_guard(rng: random.Random) -> Trap:
    """The legacy arm is what an old TensorFlow still needs."""
    test = rng.choice(
        [
            "hasattr({tf}.keras.mixed_precision, 'LossScaleOptimizer')",
            "tuple(int(n) for n in {tf}.__version__.split('.')[:2]) >= (2, 4)",
        ]
    )
    return Trap(
        [
            f"if {test}:",
            "    opt = {tf}.keras.mixed_precision.LossScaleOptimizer({inner})",
            "else:",
            "    opt = {LossScaleOptimizer}({inner}, 'dynamic')",
        ],
        ANY,
        train=("record['config'] = opt.get_config()",),
    )


def _try_import(rng: random.Random) -> Trap:
    return Trap(
        [
            "try:",
            "    from tensorflow.keras.mixed_precision.experimental import (",
            "        LossScaleOptimizer as Wrap,",
            "    )",
            "except ImportError:",
            "    Wrap = None",
            "opt = {inner}",
            "if Wrap is not None:",
            f"    opt = Wrap(opt, {_maybe(rng)}{rng.choice(['64.0', repr('dynamic')])})",
            'record["imported"] = Wrap is not None',
        ],
        ANY,
    )


def _half_migrated(rng: random.Random) -> Trap:
    return Trap(
        ["opt = {tf}.keras.mixed_precision.LossScaleOptimizer({inner}, dynamic=True)"],
        before=(
            f"policy = {{Policy}}('{rng.choice(['mixed_float16', 'mixed_bfloat16'])}')",
            "{tf}.keras.mixed_precision.set_global_policy(policy)",
            'record["policy"] = {global_policy}().name',
        ),
        after=("{tf}.keras.mixed_precision.set_global_policy('float32')",),
        train=("record['config'] = opt.get_config()",),
    )


_MODEL = (
    "inputs = [{tf}.constant([batch]) for batch in BATCHES]",
    "layer = {tf}.keras.layers.Dense(2, kernel_initializer='ones', input_shape=(2,))",
    "model = {tf}.keras.Sequential([layer])",
)


def _compiled(rng: random.Random) -> Trap:
    scale = rng.choice(["'dynamic'", "64.0", "{DynamicLossScale}(256, 2)"])
    return Trap(
        [f"opt = {{LossScaleOptimizer}}({{inner}}, {_maybe(rng)}{scale})"],
        train=(
            *_MODEL,
            "model.compile(opt, 'mse')",
            "for x in inputs:",
            "    model.train_on_batch(x, {tf}.constant([[1.0, 0.5]]))",
            '    record["weights"].append([float(n) for n in layer.get_weights()[0].ravel()])',
            '    record["scales"].append(float(model.optimizer.loss_scale))',
            '    record["steps"].append(int(model.optimizer.iterations.numpy()))',
            'record["wrapped"] = isinstance(model.optimizer, {LossScaleOptimizer})',
        ),
    )


def _wrapped_by_compile(rng: random.Random) -> Trap:
    """`compile` wraps by the global policy, with its own default scale."""
    policy = rng.choice(["'mixed_float16'", "{Policy}('mixed_float16', loss_scale='dynamic')"])
    return Trap(
        ["opt = {inner}"],
        before=(f"{{set_policy}}({policy})",),
        after=("{set_policy}('float32')",),
        train=(
            *_MODEL,
            "model.compile(opt, 'mse')",
            "for x in inputs:",
            "    model.train_on_batch(x, {tf}.constant([[1.0, 0.5]]))",
            'record["steps"].append([float(n) for n in layer.get_weights()[0].ravel()][0] != 1.0)',
            'record["policy"] = [{global_policy}().name, layer.dtype]',
        ),
    )


TRAPS: tuple[Callable[[random.Random], Trap], ...] = (
    _rebound_argument,
    _rebound_name,
    _augmented,
    _in_a_loop,
    _starred,
    _passed_class,
    _partial,
    _table_of_classes,
    _default_argument,
    _subclass,
    _used_again,
    _shared,
    _multiplier,
    _policy_scale,
    _policy_read,
    _two,
    _sometimes,
    _comprehension,
    _lambda,
    _annotated,
    _from_config,
    _name_in_scope,
    _global,
    _late_binding,
    _evaluation_order,
    _growth_named,
    _true,
    _constant_expression,
    _implicit_string,
    _version_guard,
    _try_import,
    _half_migrated,
    _compiled,
    _wrapped_by_compile,
)
"""Every trap comes up once in so many programs."""
