"""Keras programs whose obvious rewrite is wrong: as in real repositories, and of rewriting."""

from .traps import traps

TRAPS = traps("""
    # rebound_argument: inlining the object would read `initial` too late
    $value: 8.0 | 2 ** 6
      initial = $value
      scaling = {DynamicLossScale}(initial, 3)
      initial = 4096.0
      opt = {LossScaleOptimizer}({inner}, scaling)
      record["initial"] = initial

    # rebound_name
    $condition: USE_FP16 | not USE_FP16
    $scale: 64.0 | {DynamicLossScale}(16, 2) | 128
      loss_scale = 'dynamic'
      if $condition:
          loss_scale = $scale
      opt = {LossScaleOptimizer}({inner}, loss_scale)

    # augmented
    $keyword: | loss_scale=
      scale = 8.0
      scale *= 4
      opt = {LossScaleOptimizer}({inner}, ${keyword}scale)

    # in_a_loop
    $second: 16.0 | 'dynamic'; $keyword: | loss_scale=
      for scale in (8, $second):
          opt = {LossScaleOptimizer}({inner}, ${keyword}scale)

    # starred
    > expected: any
    $form: arguments = {'loss_scale': 'dynamic'}\\nopt = {LossScaleOptimizer}({inner}, **arguments)
      | arguments = [{inner}, 64.0]\\nopt = {LossScaleOptimizer}(*arguments)
      | opt = {LossScaleOptimizer}(*[{inner}], loss_scale={DynamicLossScale}(32, 2))
      $form

    # passed_class: the final class does not take what the callee passes
    > expected: any
    $argument: 'dynamic' | 64.0 | loss_scale=128
      def build(cls, base):
          return cls(base, $argument)

      opt = build({LossScaleOptimizer}, {inner})

    # partial
    > expected: any
      import functools
      wrap = functools.partial({LossScaleOptimizer}, loss_scale=64.0)
      opt = wrap({inner})

    # table_of_classes
    > expected: any
      CLASSES = {'amp': {LossScaleOptimizer}}
      opt = CLASSES['amp']({inner}, 'dynamic')

    # default_argument
    > expected: any
    $scale: 32.0 | 'dynamic'
      def wrap(base, cls={LossScaleOptimizer}):
          return cls(base, $scale)

      opt = wrap({inner})

    # subclass
    > expected: any
    $keyword: | loss_scale=; $scale: 64.0 | 'dynamic'
      class Logged({LossScaleOptimizer}):
          updates = 0

          def apply_gradients(self, *args, **kwargs):
              Logged.updates += 1
              return super(Logged, self).apply_gradients(*args, **kwargs)

      opt = Logged({inner}, ${keyword}$scale)

    # used_again: On TensorFlow 2.4 the object keeps its own, unused state
    > expected: any
      scaling = {DynamicLossScale}(64, 2)
      opt = {LossScaleOptimizer}({inner}, scaling)
      record["own"] = float(scaling())

    # shared
    > expected: any
    $keyword: | loss_scale=
      scaling = {DynamicLossScale}(128, 2)
      other = {LossScaleOptimizer}({inner}, scaling)
      opt = {LossScaleOptimizer}({inner}, ${keyword}scaling)

    # multiplier: the Keras class doubles and halves only; TF 2.4 refuses another factor
    > expected: any
    > unscaled_if: always
    $factor: 4. | 1.5 | multiplier=3
      try:
          opt = {LossScaleOptimizer}({inner}, {DynamicLossScale}(8, 3, $factor))
      except ValueError:
          opt = {inner}

    # policy_scale
    > expected: manual
    > to_shim: manual
    $scale: None | 128.0 | {DynamicLossScale}(8, 2)
    > before:
      policy = {Policy}('mixed_float16', loss_scale=$scale)
      {set_policy}(policy)
      record["policy"] = {global_policy}().name
    > lines:
      opt = {LossScaleOptimizer}({inner}, 'dynamic')
    > after:
      {set_policy}('float32')

    # policy_read
    > expected: manual
    > before:
      {set_policy}({Policy}('mixed_float16'))
    > lines:
      opt = {LossScaleOptimizer}({inner}, {global_policy}().loss_scale)
    > after:
      {set_policy}('float32')

    # two
    $which: generator | discriminator
      generator = {LossScaleOptimizer}({inner}, 'dynamic')
      discriminator = {LossScaleOptimizer}({inner}, loss_scale=64.0)
      opt = $which

    # sometimes
    > unscaled_if: not USE_FP16
    $condition: USE_FP16 | not USE_FP16; $keyword: | loss_scale=
      opt = {inner}
      opt = {LossScaleOptimizer}(opt, ${keyword}'dynamic') if $condition else opt

    # comprehension
    $which: 0 | 1
      pair = [{LossScaleOptimizer}(base, 'dynamic') for base in [{inner}, {inner}]]
      opt = pair[$which]

    # lambda
    $scale: 64 | 'dynamic'
      wrap = lambda base: {LossScaleOptimizer}(base, $scale)
      opt = wrap({inner})

    # annotated
      def wrap(base, scale=16.0) -> {LossScaleOptimizer}:
          wrapped: {LossScaleOptimizer} = {LossScaleOptimizer}(base, scale)
          return wrapped

      opt = wrap({inner})

    # from_config
    > expected: any
    $period: 2 | 3
      first = {LossScaleOptimizer}({inner}, {DynamicLossScale}(64, $period))
      opt = {LossScaleOptimizer}.from_config(first.get_config())

    # name_in_scope: the inner name is another one than the module's
    $keyword: | loss_scale=; $scale: 32.0 | {DynamicLossScale}(16, 2)
      scale = 'dynamic'

      def build(scale):
          return {LossScaleOptimizer}({inner}, ${keyword}scale)

      opt = build($scale)
      record["outer"] = scale

    # global
    $scale: 32.0 | {DynamicLossScale}(16, 2)
      SCALE = 'dynamic'

      def configure():
          global SCALE
          SCALE = $scale

      configure()
      opt = {LossScaleOptimizer}({inner}, SCALE)

    # late_binding: the value is bound after the function that reads it, and again
    $keyword: | loss_scale=
      def build():
          return {LossScaleOptimizer}({inner}, ${keyword}SCALE)

      SCALE = 256.0
      opt = build()
      SCALE = 'dynamic'

    # evaluation_order
      calls = []

      def noted(value):
          calls.append(str(type(value).__name__))
          return value

      opt = {LossScaleOptimizer}(loss_scale=noted(64.0), optimizer=noted({inner}))
      record["calls"] = calls

    # growth_named
    $factor: | , multiplier=2
      PERIOD = 2
      FACTOR = 2
      scaling = {DynamicLossScale}(32, increment_period=PERIOD$factor)
      opt = {LossScaleOptimizer}({inner}, scaling)

    # true: True is the number 1 here, and `dynamic=True` there
    $keyword: | loss_scale=
      opt = {LossScaleOptimizer}({inner}, ${keyword}True)

    # constant_expression
    $value: 1 << 9 | -(-64) | 2.0 ** (3 + 4) | 1024 // 2 | float('256') | +8
    $keyword: | loss_scale=
      opt = {LossScaleOptimizer}({inner}, ${keyword}$value)

    # implicit_string
    $keyword: | loss_scale=
      opt = {LossScaleOptimizer}({inner}, ${keyword}('dyn' 'amic'))

    # version_guard: the legacy arm is what an old TensorFlow still needs
    > expected: any
    $test: hasattr({tf}.keras.mixed_precision, 'LossScaleOptimizer')
      | tuple(int(n) for n in {tf}.__version__.split('.')[:2]) >= (2, 4)
      if $test:
          opt = {tf}.keras.mixed_precision.LossScaleOptimizer({inner})
      else:
          opt = {LossScaleOptimizer}({inner}, 'dynamic')
    > train:
      record['config'] = opt.get_config()

    # try_import
    > expected: any
    $keyword: | loss_scale=; $scale: 64.0 | 'dynamic'
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

    # half_migrated
    $policy: mixed_float16 | mixed_bfloat16
    > before:
      policy = {Policy}('$policy')
      {tf}.keras.mixed_precision.set_global_policy(policy)
      record["policy"] = {global_policy}().name
    > lines:
      opt = {tf}.keras.mixed_precision.LossScaleOptimizer({inner}, dynamic=True)
    > after:
      {tf}.keras.mixed_precision.set_global_policy('float32')
    > train:
      record['config'] = opt.get_config()

    # compiled
    $scale: 'dynamic' | 64.0 | {DynamicLossScale}(256, 2)
    $keyword: | loss_scale=
      opt = {LossScaleOptimizer}({inner}, ${keyword}$scale)
    > train:
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

    # wrapped_by_compile: `compile` wraps by the global policy, with its own default scale
    $policy: 'mixed_float16' | {Policy}('mixed_float16', loss_scale='dynamic')
    > before:
      {set_policy}($policy)
    > lines:
      opt = {inner}
    > after:
      {set_policy}('float32')
    > train:
      inputs = [{tf}.constant([batch]) for batch in BATCHES]
      layer = {tf}.keras.layers.Dense(2, kernel_initializer='ones', input_shape=(2,))
      model = {tf}.keras.Sequential([layer])
      model.compile(opt, 'mse')
      for x in inputs:
          model.train_on_batch(x, {tf}.constant([[1.0, 0.5]]))
      record["steps"].append([float(n) for n in layer.get_weights()[0].ravel()][0] != 1.0)
      record["policy"] = [{global_policy}().name, layer.dtype]
    """)
"""Every trap comes up once in so many programs."""
