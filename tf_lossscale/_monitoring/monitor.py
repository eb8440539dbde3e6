"""The class `Monitor`, which reads the counters on the host."""

import operator
from typing import NamedTuple, Optional

from tf_lossscale._core.watching import watch, watcher_of
from tf_lossscale._monitoring.reporting import MonitorHook, Warner, advice_on, make_callback
from tf_lossscale._monitoring.watcher import Reading, StepCounter, check, update_of
from tf_lossscale._types import KerasCallback, Optimizer, Session, SessionHook
from tf_lossscale._versions.base import tf, tf1
from tf_lossscale._versions.keras import keras_session


class StepCounts(NamedTuple):
    """The counts of a `Monitor`.

    Attributes:
      steps: number of steps since the monitor was created, skipped ones included.
      skipped: number of skipped steps.
      in_a_row: number of skipped steps in a row up to the last step; 0 if that was applied.

    Examples:
      >>> from tf_lossscale.monitoring import StepCounts
      >>> StepCounts(steps=100, skipped=3, in_a_row=1).skipped
      3
    """

    steps: int
    skipped: int
    in_a_row: int


class Monitor:
    """Counts the steps that a loss-scale optimizer skips, and names the variable to blame.

    A finite step only increments a counter on the device. A skipped step also writes, in a branch
    that finite steps do not run, which variable had the first gradient that was not finite. Nothing
    is copied to the host until the counts are read: by `counts`, the properties, `after_step`, the
    Keras callback or the hook.

    Create it before the first step is built: before `minimize` in a graph, before the first call of
    a `tf.function`. Steps that were built earlier are not counted. A second monitor of the same
    optimizer shows the same counts. Weights, random numbers, names and checkpoints do not change;
    the counts are not saved, and begin at 0 in a new process.

    Examples:
      >>> import tensorflow as tf
      >>> import tf_lossscale as tfls
      >>> weight = tf.Variable(1.0, name="weight")
      >>> optimizer = tfls.compat.v1.mixed_precision.MixedPrecisionLossScaleOptimizer(
      ...     tf.compat.v1.train.GradientDescentOptimizer(0.5), "dynamic")
      >>> monitor = tfls.monitoring.Monitor(optimizer)
      >>> for gradient in (1.0, float("inf")):
      ...     step = optimizer.apply_gradients([(tf.constant(gradient), weight)])
      >>> monitor.counts()
      StepCounts(steps=2, skipped=1, in_a_row=1)
      >>> monitor.first_bad, monitor.loss_scale
      ('weight', 16384.0)

    Args:
      optimizer: a loss-scale optimizer of this package whose loss scale can skip steps.
      every: number of steps after which `after_step`, the callback and the hook read the counts.
      warn_after_skips: number of skipped steps in a row from which a reading warns; None for never.
      warn_at_minimum: whether a reading warns when the loss scale is at its minimum, 1 by
        default, after skipped steps.

    Raises:
      TypeError: `optimizer` is of TensorFlow's or Keras's own class, or does not scale the loss.
      ValueError: its loss scale is fixed and skips no step; or a number is not positive.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        every: int = 100,
        warn_after_skips: Optional[int] = 10,
        warn_at_minimum: bool = True,
    ) -> None:
        check(optimizer)
        every = operator.index(every)
        if every < 1:
            raise ValueError(f"every must be at least 1, but got: {every}")
        if warn_after_skips is not None and warn_after_skips < 1:
            raise ValueError(
                f"warn_after_skips must be at least 1, or None, but got: {warn_after_skips}"
            )
        counter = watcher_of(optimizer)
        if not isinstance(counter, StepCounter):
            counter = StepCounter(optimizer)
            watch(optimizer, counter)
        self._optimizer = optimizer
        self._counter = counter
        self._update = update_of(optimizer)
        minimum = None if self._update is None else self._update.minimum_scale
        self._warner = Warner(warn_after_skips, minimum if warn_at_minimum else None)
        self._every = every
        self._calls = 0
        self._last: Optional[Reading] = None

    @property
    def optimizer(self) -> Optimizer:
        """The optimizer."""
        return self._optimizer

    def counts(self, session: Optional[Session] = None) -> StepCounts:
        """Reads the counts, and warns if there is a reason to.

        Args:
          session: the Session of the graph in which the steps run; the default one if None. Not
            used in eager mode.

        Returns:
          A tuple of the number of steps, of skipped steps, and of skipped steps in a row.

        Raises:
          RuntimeError: the steps run in a graph, and there is no Session to read from; or no step
            was built since the monitor was created.
        """
        return StepCounts(*self._read(session)[:3])

    @property
    def first_bad(self) -> Optional[str]:
        """The name of the first variable with a non-finite gradient in the last skipped step.

        "First" in the order in which the variables were passed to the optimizer. None if no step
        was skipped, or if all gradients were finite before the inner optimizer transformed them.
        """
        return self._read().bad

    @property
    def loss_scale(self) -> float:
        """The loss scale of the next step."""
        return self._read().scale

    @property
    def last_step_skipped(self) -> bool:
        """Whether the last step was skipped."""
        return self._read().in_a_row > 0

    @property
    def advice(self) -> str:
        """One line on what to look at next: the forward pass, or the backward pass of one variable.

        It says so if the last step was skipped, if the loss scale is at its minimum, or if more
        steps were skipped than a dynamic loss scale explains; and if the loss scale has no effect:
        no loss was scaled through the optimizer, or the scale has grown past 2^100. Otherwise, it
        is empty.
        """
        reading = self._read()
        return advice_on(reading, self._update, self._counter.scales_loss)

    def after_step(self, session: Optional[Session] = None) -> Optional[StepCounts]:
        """Reads the counts in every `every`-th call, for training loops of your own.

        Args:
          session: as in `counts`.

        Returns:
          The counts, or None if it did not read them.
        """
        self._calls += 1
        return self.counts(session) if self._calls % self._every == 0 else None

    def keras_callback(
        self, log_dir: Optional[str] = None, explain: bool = False, explain_after: int = 3
    ) -> KerasCallback:
        """Returns a callback for `fit` of the Keras that the optimizer belongs to.

        It reads the counts every `every` batches and after each epoch, and adds `loss_scale` and
        `skipped_steps` to the logs of the epoch, which `History` and other callbacks see.

        With `explain`, a reading that finds `explain_after` or more skipped steps in a row runs the
        next batch eagerly, and looks at the output of each layer. It warns which layer was the
        first whose output was not finite, or that all were finite: once for each series of skipped
        steps. Other batches run as without it.

        Args:
          log_dir: a folder for TensorBoard scalars with the same names, after the optimizer's name
            (`Adam/loss_scale`); or None.
          explain: whether to look for the layer.
          explain_after: number of skipped steps in a row.

        Raises:
          TypeError: the optimizer is not a Keras optimizer.
          ValueError: the folder cannot be written to, or the number is not positive.
          NotImplementedError: `explain` in graph mode, or before TensorFlow 2.4.
        """
        if explain_after < 1:
            raise ValueError(f"explain_after must be at least 1, but got: {explain_after}")
        after = explain_after if explain else None
        return make_callback(self._optimizer, self._read_or_none, self._every, log_dir, after)

    def session_hook(self, log_dir: Optional[str] = None) -> SessionHook:
        """Returns a `SessionRunHook` for `MonitoredTrainingSession` and Estimators.

        It reads the counts every `every` calls of `run`, and at the end.

        Args:
          log_dir: a folder for the TensorBoard scalars `loss_scale` and `skipped_steps`, after the
            optimizer's name (`Adam/loss_scale`); or None.

        Raises:
          ValueError: the folder cannot be written to.
        """
        return MonitorHook(self._optimizer, self._read_or_none, self._every, log_dir)

    def _read(self, session: Optional[Session] = None) -> Reading:
        reading = self._read_or_none(session)
        if reading is None:
            raise RuntimeError(
                "The Monitor has counted no step: no step was built since it was created. Create "
                "it before minimize() or apply_gradients() builds the step."
            )
        return reading

    def _read_or_none(self, session: Optional[Session] = None) -> Optional[Reading]:
        """Reads the counts and warns if there is a reason; None before a step is built.

        Eagerly, or in a Session: the one that is given, the default one, or that of graph-mode
        Keras. Without a Session it returns what was read last. It does not run in functions.
        """
        if not tf.executing_eagerly() and tf1.get_default_graph().building_function:
            raise RuntimeError(
                "The counts of a Monitor cannot be read within a tf.function: that would happen "
                "only once, when it is traced. Read them after the call."
            )
        session = session or tf1.get_default_session()
        graphs = self._counter.counters
        if session is None and not tf.executing_eagerly() and None not in graphs:
            session = keras_session(self._optimizer)
        if session is not None and session.graph not in graphs:
            session = None
        if session is not None or None in graphs:
            self._last = self._counter.read(session)
            self._warner.see(self._last)
        elif graphs and self._last is None:
            raise RuntimeError(
                "The steps of this optimizer run in a graph. Read the counts within "
                "`with session.as_default():`, or pass the Session: monitor.counts(session)."
            )
        return self._last
