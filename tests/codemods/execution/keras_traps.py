"""Keras programs whose obvious rewrite is wrong: as in real repositories, and of rewriting."""

from __future__ import annotations

from .program import ANY, MANUAL
from .traps import Trap

_KEYWORD = ("", "loss_scale=")

TRAPS: dict[str, Trap] = {
    # Inlining the object would read `initial` too late.
    "rebound_argument": Trap(
        """
        initial = $value
        scaling = {DynamicLossScale}(initial, 3)
        initial = 4096.0
        opt = {LossScaleOptimizer}({inner}, scaling)
        record["initial"] = initial
        """,
        draws={"value": ("8.0", "2 ** 6")},
    ),
    "rebound_name": Trap(
        """
        loss_scale = 'dynamic'
        if $condition:
            loss_scale = $scale
        opt = {LossScaleOptimizer}({inner}, loss_scale)
        """,
        draws={
            "condition": ("USE_FP16", "not USE_FP16"),
            "scale": ("64.0", "{DynamicLossScale}(16, 2)", "128"),
        },
    ),
    "augmented": Trap(
        """
        scale = 8.0
        scale *= 4
        opt = {LossScaleOptimizer}({inner}, ${keyword}scale)
        """,
        draws={"keyword": _KEYWORD},
    ),
    "in_a_loop": Trap(
        """
        for scale in (8, $second):
            opt = {LossScaleOptimizer}({inner}, ${keyword}scale)
        """,
        draws={"second": ("16.0", "'dynamic'"), "keyword": _KEYWORD},
    ),
    "starred": Trap(
        """
        $form
        """,
        ANY,
        draws={
            "form": (
                "arguments = {'loss_scale': 'dynamic'}\n"
                "opt = {LossScaleOptimizer}({inner}, **arguments)",
                "arguments = [{inner}, 64.0]\nopt = {LossScaleOptimizer}(*arguments)",
                "opt = {LossScaleOptimizer}(*[{inner}], loss_scale={DynamicLossScale}(32, 2))",
            )
        },
    ),
    # The final class does not take what the callee passes.
    "passed_class": Trap(
        """
        def build(cls, base):
            return cls(base, $argument)

        opt = build({LossScaleOptimizer}, {inner})
        """,
        ANY,
        draws={"argument": ("'dynamic'", "64.0", "loss_scale=128")},
    ),
    "partial": Trap(
        """
        import functools
        wrap = functools.partial({LossScaleOptimizer}, loss_scale=64.0)
        opt = wrap({inner})
        """,
        ANY,
    ),
    "table_of_classes": Trap(
        """
        CLASSES = {'amp': {LossScaleOptimizer}}
        opt = CLASSES['amp']({inner}, 'dynamic')
        """,
        ANY,
    ),
    "default_argument": Trap(
        """
        def wrap(base, cls={LossScaleOptimizer}):
            return cls(base, $scale)

        opt = wrap({inner})
        """,
        ANY,
        draws={"scale": ("32.0", "'dynamic'")},
    ),
    "subclass": Trap(
        """
        class Logged({LossScaleOptimizer}):
            updates = 0

            def apply_gradients(self, *args, **kwargs):
                Logged.updates += 1
                return super(Logged, self).apply_gradients(*args, **kwargs)

        opt = Logged({inner}, ${keyword}$scale)
        """,
        ANY,
        draws={"keyword": _KEYWORD, "scale": ("64.0", "'dynamic'")},
    ),
    # On TensorFlow 2.4 the object keeps its own, unused state.
    "used_again": Trap(
        """
        scaling = {DynamicLossScale}(64, 2)
        opt = {LossScaleOptimizer}({inner}, scaling)
        record["own"] = float(scaling())
        """,
        ANY,
    ),
    "shared": Trap(
        """
        scaling = {DynamicLossScale}(128, 2)
        other = {LossScaleOptimizer}({inner}, scaling)
        opt = {LossScaleOptimizer}({inner}, ${keyword}scaling)
        """,
        ANY,
        draws={"keyword": _KEYWORD},
    ),
    # The Keras class doubles and halves only; TF 2.4 refuses another factor.
    "multiplier": Trap(
        """
        try:
            opt = {LossScaleOptimizer}({inner}, {DynamicLossScale}(8, 3, $factor))
        except ValueError:
            opt = {inner}
        """,
        ANY,
        draws={"factor": ("4.", "1.5", "multiplier=3")},
        scaled=False,
    ),
    "policy_scale": Trap(
        """
        opt = {LossScaleOptimizer}({inner}, 'dynamic')
        """,
        MANUAL,
        draws={"scale": ("None", "128.0", "{DynamicLossScale}(8, 2)")},
        before="""
        policy = {Policy}('mixed_float16', loss_scale=$scale)
        {set_policy}(policy)
        record["policy"] = {global_policy}().name
        """,
        after="{set_policy}('float32')",
        to_shim=MANUAL,
    ),
    "policy_read": Trap(
        """
        opt = {LossScaleOptimizer}({inner}, {global_policy}().loss_scale)
        """,
        MANUAL,
        before="{set_policy}({Policy}('mixed_float16'))",
        after="{set_policy}('float32')",
    ),
    "two": Trap(
        """
        generator = {LossScaleOptimizer}({inner}, 'dynamic')
        discriminator = {LossScaleOptimizer}({inner}, loss_scale=64.0)
        opt = $which
        """,
        draws={"which": ("generator", "discriminator")},
    ),
    "sometimes": Trap(
        """
        opt = {inner}
        opt = {LossScaleOptimizer}(opt, ${keyword}'dynamic') if $condition else opt
        """,
        draws={"condition": ("USE_FP16", "not USE_FP16"), "keyword": _KEYWORD},
        unscaled_if="not USE_FP16",
    ),
    "comprehension": Trap(
        """
        pair = [{LossScaleOptimizer}(base, 'dynamic') for base in [{inner}, {inner}]]
        opt = pair[$which]
        """,
        draws={"which": ("0", "1")},
    ),
    "lambda": Trap(
        """
        wrap = lambda base: {LossScaleOptimizer}(base, $scale)
        opt = wrap({inner})
        """,
        draws={"scale": ("64", "'dynamic'")},
    ),
    "annotated": Trap(
        """
        def wrap(base, scale=16.0) -> {LossScaleOptimizer}:
            wrapped: {LossScaleOptimizer} = {LossScaleOptimizer}(base, scale)
            return wrapped

        opt = wrap({inner})
        """,
    ),
    "from_config": Trap(
        """
        first = {LossScaleOptimizer}({inner}, {DynamicLossScale}(64, $period))
        opt = {LossScaleOptimizer}.from_config(first.get_config())
        """,
        ANY,
        draws={"period": ("2", "3")},
    ),
    # The inner name is another one than the module's.
    "name_in_scope": Trap(
        """
        scale = 'dynamic'

        def build(scale):
            return {LossScaleOptimizer}({inner}, ${keyword}scale)

        opt = build($scale)
        record["outer"] = scale
        """,
        draws={"keyword": _KEYWORD, "scale": ("32.0", "{DynamicLossScale}(16, 2)")},
    ),
    "global": Trap(
        """
        SCALE = 'dynamic'

        def configure():
            global SCALE
            SCALE = $scale

        configure()
        opt = {LossScaleOptimizer}({inner}, SCALE)
        """,
        draws={"scale": ("32.0", "{DynamicLossScale}(16, 2)")},
    ),
    # The value is bound after the function that reads it, and again.
    "late_binding": Trap(
        """
        def build():
            return {LossScaleOptimizer}({inner}, ${keyword}SCALE)

        SCALE = 256.0
        opt = build()
        SCALE = 'dynamic'
        """,
        draws={"keyword": _KEYWORD},
    ),
    "evaluation_order": Trap(
        """
        calls = []

        def noted(value):
            calls.append(str(type(value).__name__))
            return value

        opt = {LossScaleOptimizer}(loss_scale=noted(64.0), optimizer=noted({inner}))
        record["calls"] = calls
        """,
    ),
    "growth_named": Trap(
        """
        PERIOD = 2
        FACTOR = 2
        scaling = {DynamicLossScale}(32, increment_period=PERIOD$factor)
        opt = {LossScaleOptimizer}({inner}, scaling)
        """,
        draws={"factor": ("", ", multiplier=2")},
    ),
    # True is the number 1 here, and `dynamic=True` there.
    "true": Trap(
        """
        opt = {LossScaleOptimizer}({inner}, ${keyword}True)
        """,
        draws={"keyword": _KEYWORD},
    ),
    "constant_expression": Trap(
        """
        opt = {LossScaleOptimizer}({inner}, ${keyword}$value)
        """,
        draws={
            "value": ("1 << 9", "-(-64)", "2.0 ** (3 + 4)", "1024 // 2", "float('256')", "+8"),
            "keyword": _KEYWORD,
        },
    ),
    "implicit_string": Trap(
        """
        opt = {LossScaleOptimizer}({inner}, ${keyword}('dyn' 'amic'))
        """,
        draws={"keyword": _KEYWORD},
    ),
    # The legacy arm is what an old TensorFlow still needs.
    "version_guard": Trap(
        """
        if $test:
            opt = {tf}.keras.mixed_precision.LossScaleOptimizer({inner})
        else:
            opt = {LossScaleOptimizer}({inner}, 'dynamic')
        """,
        ANY,
        draws={
            "test": (
                "hasattr({tf}.keras.mixed_precision, 'LossScaleOptimizer')",
                "tuple(int(n) for n in {tf}.__version__.split('.')[:2]) >= (2, 4)",
            )
        },
        train="record['config'] = opt.get_config()",
    ),
    "try_import": Trap(
        """
        try:
            from tensorflow.keras.mixed_precision.experimental import (
                LossScaleOptimizer as Wrap,
            )
        except ImportError:
            Wrap = None
        opt = {inner}
        if Wrap is not None:
            opt = Wrap(opt, ${keyword}$scale)
        record["imported"] = Wrap is not None
        """,
        ANY,
        draws={"keyword": _KEYWORD, "scale": ("64.0", "'dynamic'")},
    ),
    "half_migrated": Trap(
        """
        opt = {tf}.keras.mixed_precision.LossScaleOptimizer({inner}, dynamic=True)
        """,
        draws={"policy": ("mixed_float16", "mixed_bfloat16")},
        before="""
        policy = {Policy}('$policy')
        {tf}.keras.mixed_precision.set_global_policy(policy)
        record["policy"] = {global_policy}().name
        """,
        after="{tf}.keras.mixed_precision.set_global_policy('float32')",
        train="record['config'] = opt.get_config()",
    ),
    "compiled": Trap(
        """
        opt = {LossScaleOptimizer}({inner}, ${keyword}$scale)
        """,
        draws={"scale": ("'dynamic'", "64.0", "{DynamicLossScale}(256, 2)"), "keyword": _KEYWORD},
        train="""
        inputs = [{tf}.constant([batch]) for batch in BATCHES]
        layer = {tf}.keras.layers.Dense(2, kernel_initializer='ones', input_shape=(2,))
        model = {tf}.keras.Sequential([layer])
        model.compile(opt, 'mse')
        for x in inputs:
            model.train_on_batch(x, {tf}.constant([[1.0, 0.5]]))
            record["weights"].append([float(n) for n in layer.get_weights()[0].ravel()])
            record["scales"].append(float(model.optimizer.loss_scale))
            record["steps"].append(int(model.optimizer.iterations.numpy()))
        record["wrapped"] = isinstance(model.optimizer, {LossScaleOptimizer})
        """,
    ),
    # `compile` wraps by the global policy, with its own default scale.
    "wrapped_by_compile": Trap(
        """
        opt = {inner}
        """,
        draws={"policy": ("'mixed_float16'", "{Policy}('mixed_float16', loss_scale='dynamic')")},
        before="{set_policy}($policy)",
        after="{set_policy}('float32')",
        train="""
        inputs = [{tf}.constant([batch]) for batch in BATCHES]
        layer = {tf}.keras.layers.Dense(2, kernel_initializer='ones', input_shape=(2,))
        model = {tf}.keras.Sequential([layer])
        model.compile(opt, 'mse')
        for x in inputs:
            model.train_on_batch(x, {tf}.constant([[1.0, 0.5]]))
        record["steps"].append([float(n) for n in layer.get_weights()[0].ravel()][0] != 1.0)
        record["policy"] = [{global_policy}().name, layer.dtype]
        """,
    ),
}
"""Every trap comes up once in so many programs."""
