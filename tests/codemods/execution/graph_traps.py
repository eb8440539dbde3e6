"""Graph-mode programs that a rewrite by spelling breaks."""

from .traps import traps

GRAPH_TRAPS = traps("""
    # fetched_by_name: the name stays on the shim; on TensorFlow 2 it is that of the handle
    > expected: manual
    > scale: $name
    $period: 1 | 2 | 3; $bad: 1 | 2; $ratio: .5 | .8; $name: 'loss_scale:0'
      manager = {ExponentialUpdateLossScaleManager}(1024., $period, $bad, 2, $ratio)
      optimizer = {LossScaleOptimizer}({inner}, manager)

    # gradients_beside_it: `tf.gradients` bypasses the scaling, before and after
    > expected: any
    > scale: manager.get_loss_scale()
    $period: 1 | 2 | 3; $bad: 1 | 2; $ratio: .5 | .8
      manager = {ExponentialUpdateLossScaleManager}(1024., $period, $bad, 2, $ratio)
      optimizer = {LossScaleOptimizer}({inner}, manager)
    > train:
      grads = {v1}.gradients(loss, [weights])
      train_op = optimizer.apply_gradients(list(zip(grads, [weights])), step)

    # nested
    > scale: manager.get_loss_scale()
    $period: 1 | 2 | 3; $bad: 1 | 2; $ratio: .5 | .8
      manager = {ExponentialUpdateLossScaleManager}(1024., $period, $bad, 2, $ratio)
      inner = {LossScaleOptimizer}({inner}, {FixedLossScaleManager}(8))
      optimizer = {LossScaleOptimizer}(inner, manager)

    # private
    > expected: any
    > scale: $attribute
    $period: 1 | 2 | 3; $bad: 1 | 2; $ratio: .5 | .8
    $attribute: manager._loss_scale | optimizer._loss_scale_manager.get_loss_scale()
      manager = {ExponentialUpdateLossScaleManager}(1024., $period, $bad, 2, $ratio)
      optimizer = {LossScaleOptimizer}({inner}, manager)
      record["rate"] = type(optimizer._opt).__name__

    # by_table
    > scale: manager.get_loss_scale()
    $manager: MANAGERS['fixed'](128.) | MANAGERS['exponential'](128., 2)
      MANAGERS = {
          'fixed': {FixedLossScaleManager},
          'exponential': {ExponentialUpdateLossScaleManager},
      }
      manager = $manager
      optimizer = {LossScaleOptimizer}({inner}, manager)

    # isinstance
    > scale: manager.get_loss_scale()
    $period: 1 | 2 | 3; $bad: 1 | 2; $ratio: .5 | .8
    $manager: {ExponentialUpdateLossScaleManager}(1024., $period, $bad, 2, $ratio)
      | {FixedLossScaleManager}(16)
      manager = $manager
      assert isinstance(manager, {LossScaleManager})
      record["fixed"] = isinstance(manager, {FixedLossScaleManager})
      optimizer = {LossScaleOptimizer}({inner}, manager)
      record["wrapped"] = isinstance(optimizer, {LossScaleOptimizer})
      record["base"] = isinstance(optimizer, {v1}.train.Optimizer)

    # in_a_class
    > scale: model._manager.get_loss_scale()
    $period: 1 | 2 | 3; $bad: 1 | 2; $ratio: .5 | .8
      class Model(object):
          '''Trains with tf.contrib.mixed_precision.LossScaleOptimizer.'''

          def __init__(self, optimizer):
              self._manager = {ExponentialUpdateLossScaleManager}(1024., $period, $bad, 2, $ratio)
              self._optimizer = {LossScaleOptimizer}(optimizer, self._manager)

      model = Model({inner})
      optimizer = model._optimizer

    # passed_on
      import functools
      manager = {FixedLossScaleManager}(64)
      wrap = functools.partial({LossScaleOptimizer}, loss_scale_manager=manager)
      optimizer = wrap({inner})

    # subclass_of_both
    > expected: any
    > scale: optimizer.get_scale()
    $period: 1 | 2
      class Patient({ExponentialUpdateLossScaleManager}):
          def __init__(self, *args, **kwargs):
              super(Patient, self).__init__(*args, decr_every_n_nan_or_inf=3, **kwargs)

      class Named({LossScaleOptimizer}):
          def get_scale(self):
              return self._loss_scale_manager.get_loss_scale()

      optimizer = Named({inner}, Patient(256., $period, decr_ratio=0.5))

    # try_import
    > expected: any
    $scale: 8 | 64.0
      try:
          from tensorflow.contrib.mixed_precision import LossScaleOptimizer as Wrapper
          from tensorflow.contrib.mixed_precision import FixedLossScaleManager as Manager
      except ImportError:
          Wrapper = Manager = None
      optimizer = {inner}
      if Wrapper is not None:
          optimizer = Wrapper(optimizer, Manager($scale))
      record["wrapped"] = Wrapper is not None

    # own_class: a class of the same name that is the program's own
    > scale: manager.get_loss_scale()
      class FixedLossScale(object):
          def __init__(self, value):
              self.value = value

      own = FixedLossScale(3)
      manager = {FixedLossScaleManager}(own.value * 8)
      optimizer = {LossScaleOptimizer}({inner}, manager)
      record["own"] = own.value

    # protocol: a loss scale used by hand, without an optimizer of ours
    > scale: loss_scale()
    $period: 1 | 2 | 3
      loss_scale = {DynamicLossScale}(1024., $period)
      optimizer = {inner}
    > train:
      pairs = optimizer.compute_gradients(loss * loss_scale(), [weights])
      grads = [g / loss_scale() for g, v in pairs]
      update, finite = loss_scale.update(grads)
      def apply():
          return optimizer.apply_gradients([(grads[0], weights)], step)
      with {v1}.control_dependencies([update]):
          train_op = {v1}.cond({v1}.convert_to_tensor(finite), apply, {v1}.no_op)

    # shared_object: both optimizers move one scale
    > scale: loss_scale()
    $period: 1 | 2
      loss_scale = {DynamicLossScale}(256., $period)
      second = {MixedPrecisionLossScaleOptimizer}({inner}, loss_scale)
      optimizer = {MixedPrecisionLossScaleOptimizer}({inner}, loss_scale)
    > train:
      first_op = optimizer.minimize(loss, step, var_list=[weights])
      with {v1}.control_dependencies([first_op]):
          train_op = second.minimize(loss * 0.5, var_list=[weights])

    # handed_on
    $scale: 64 | 'dynamic'
      def build(cls, base, **kwargs):
          return cls(base, **kwargs)

      optimizer = build(
          {MixedPrecisionLossScaleOptimizer}, {inner}, loss_scale=$scale
      )

    # config
    > scale: loss_scale()
    $scale: {FixedLossScale}(32) | {DynamicLossScale}(32, 2, 2.0)
      original = $scale
      record["config"] = original.get_config()
      loss_scale = type(original).from_config(original.get_config())
      optimizer = {MixedPrecisionLossScaleOptimizer}({inner}, loss_scale)

    # choice
    > expected: any
    $fp16: True | False
      fp16 = $fp16
      wrap = {enable_mixed_precision_graph_rewrite} if fp16 else (lambda opt: opt)
      optimizer = wrap({inner})
    """)
"""Every trap comes up once in so many programs."""
