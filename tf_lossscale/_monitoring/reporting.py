"""Warns of what the counters show, and writes TensorBoard scalars.

A Keras callback and a hook for monitored Sessions and Estimators read the counters in training.
"""

import math
import warnings
import weakref
from typing import Any, Callable, Dict, Optional

from tf_lossscale._core.watching import watcher_of
from tf_lossscale._monitoring.explanation import Explanation
from tf_lossscale._monitoring.watcher import Reading, StepCounter, name_of, scales_losses
from tf_lossscale._records import advice, skips
from tf_lossscale._records.format import ScaleParameters
from tf_lossscale._types import Class, KerasCallback, Model, Optimizer, Session, Variable
from tf_lossscale._versions.base import tf, tf1
from tf_lossscale._versions.keras import computes_in_mixed_float16, keras_family

_Read = Callable[..., Optional[Reading]]  # of a Session, if one is passed; None without a step


class Warner:
    """Warns once for each series of skipped steps, and once each time the scale is at an end."""

    def __init__(self, after_skips: Optional[int], minimum: Optional[float]) -> None:
        self._after_skips = after_skips
        self._minimum = minimum
        self._last = Reading(0, 0, 0, 0, None, None, 0, 0, advice.MINIMUM)

    def see(self, reading: Reading) -> None:
        """Warns if there is a reason to that the last reading did not show."""
        messages = [self._of_skips(reading), self._of_minimum(reading), self._of_no_effect(reading)]
        self._last = reading._replace(longest=max(self._last.longest, reading.longest))
        for message in filter(None, messages):
            warnings.warn(message, RuntimeWarning, stacklevel=2)

    def _of_skips(self, reading: Reading) -> str:
        """Returns the warning about steps that were skipped in a row; empty if there is none."""
        if self._after_skips is None or self._last.in_a_row >= self._after_skips:
            return ""
        end = (
            f"({reading.skipped} of {reading.steps} in all), because gradients were not finite. "
            f"{_cause(reading)} The loss scale is {reading.scale:g}."
        )
        if reading.in_a_row >= self._after_skips:
            return f"The last {reading.in_a_row} steps were skipped {end}"
        if reading.longest > self._last.longest and reading.longest >= self._after_skips:
            return f"{reading.longest} steps in a row were skipped since the last reading {end}"
        return ""

    def _of_minimum(self, reading: Reading) -> str:
        if self._is_at_minimum(self._last) or not self._is_at_minimum(reading):
            return ""
        return (
            f"The loss scale is at its minimum, {reading.scale:g}, after {reading.skipped} of "
            f"{reading.steps} steps were skipped. It cannot shrink any further, so the gradients "
            f"themselves are not finite, or too large for float16. {_cause(reading)}"
        )

    def _is_at_minimum(self, reading: Reading) -> bool:
        return _is_at(self._minimum, reading)

    def _of_no_effect(self, reading: Reading) -> str:
        has_grown = self._last.scale <= advice.WITHOUT_EFFECT < reading.scale
        # A skipped step shows that the scale does reach the gradients.
        if not has_grown or reading.skipped > self._last.skipped:
            return ""
        return _as_sentence(advice.without_effect(reading.scale))


def _cause(reading: Reading) -> str:
    """Returns sentences about the last skipped step, and what to look at next."""
    if reading.bad is None:
        return (
            "All gradients were finite before the inner optimizer transformed them, in the last "
            "skipped step."
        )
    return (
        f"First variable with a non-finite gradient in the last skipped step: {reading.bad}. "
        + _as_sentence(_of_gradients(reading))
    )


def _of_gradients(reading: Reading) -> str:
    first, count, variables = str(reading.bad), reading.bad_count, reading.variables
    return advice.of_gradients(first, count, variables, reading.last_bad)


def _as_sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}."


def _is_at(minimum: Optional[float], reading: Reading) -> bool:
    return minimum is not None and reading.scale <= minimum and reading.skipped > 0


def advice_on(reading: Reading, update: Optional[ScaleParameters], scales_loss: bool) -> str:
    """Returns one line on what to look at next; nothing if there is no reason to."""
    start = ""
    is_at_minimum = update is not None and _is_at(update.minimum_scale, reading)
    are_too_many = update is not None and _are_too_many(reading, update)
    if is_at_minimum:
        start = f"the loss scale is stuck at its minimum, {reading.scale:g}: "
    elif are_too_many:
        start = f"{reading.skipped} of {reading.steps} steps were skipped: "
    if reading.in_a_row or start:
        if reading.bad is None:
            return f"{start}the inner optimizer made finite gradients infinite or NaN"
        return start + _of_gradients(reading)
    if advice.WITHOUT_EFFECT < reading.scale < math.inf:
        return advice.without_effect(reading.scale)
    return "" if scales_loss else advice.SCALES_NO_LOSS


def _are_too_many(reading: Reading, update: ScaleParameters) -> bool:
    """Returns whether more steps were skipped than a dynamic loss scale explains.

    The longest series may have brought the scale down from its initial value.
    """
    others = reading.skipped - reading.longest
    return skips.is_dynamic(update) and skips.are_too_many(others, reading.steps, update)


class _ScalarWriter:
    """Writes an event file, in eager mode and in graphs alike; needs no TensorBoard.

    The tags of the scalars begin with the name of the optimizer, and with a number where another
    optimizer of that name writes to the same folder.
    """

    def __init__(self, optimizer: Optimizer, log_dir: Optional[str]) -> None:
        self._writer: Any = None
        self._last: Any = None
        if log_dir is None:
            return
        self._optimizer = optimizer
        self._folder = str(log_dir)
        others = [writer for writer in _writers if writer._folder == self._folder]
        taken = {writer.name for writer in others if writer._optimizer is not optimizer}
        name = name_of(optimizer)
        numbered = [name, *(f"{name}_{number}" for number in range(1, len(taken) + 1))]
        self.name: str = next(candidate for candidate in numbered if candidate not in taken)
        try:
            tf.io.gfile.makedirs(self._folder)
            # In a graph, because this class refuses eager mode, although it needs no graph.
            with tf.Graph().as_default():
                self._writer = tf1.summary.FileWriter(self._folder)
        except (OSError, tf.errors.OpError) as error:
            raise ValueError(
                f"No TensorBoard scalars can be written to log_dir={self._folder!r}: {error}. Pass "
                "a folder that this process may write to, or log_dir=None."
            ) from error
        _writers.add(self)

    def write(self, step: int, reading: Reading) -> None:
        """Writes what was read, if it was not written for this step already."""
        values = {"loss_scale": reading.scale, "skipped_steps": float(reading.skipped)}
        # The values are compared, too: a global step remains the same while steps are skipped.
        if self._writer is None or self._last == (step, values):
            return
        self._last = (step, values)
        scalars = [
            tf1.Summary.Value(tag=f"{self.name}/{tag}", simple_value=value)
            for tag, value in values.items()
        ]
        self._writer.add_summary(tf1.Summary(value=scalars), step)
        self._writer.flush()  # so that TensorBoard shows it now

    def close(self) -> None:
        """Closes the file; `write` does nothing afterwards."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
            _writers.discard(self)


_writers: "weakref.WeakSet[_ScalarWriter]" = weakref.WeakSet()


def make_callback(
    optimizer: Optimizer,
    read: _Read,
    every: int,
    log_dir: Optional[str],
    explain_after: Optional[int],
) -> KerasCallback:
    """Returns a callback of the optimizer's Keras, which explains if `explain_after` is given."""
    family = keras_family(optimizer)
    if family is None:
        raise TypeError(
            f"{type(optimizer).__name__} is not a Keras optimizer, so fit() cannot use it. "
            "Use monitor.session_hook() in a monitored Session or an Estimator, or call "
            "monitor.after_step() in your loop."
        )
    base = family.keras.callbacks.Callback
    cls: Class = type("MonitorCallback", (_Callback, base), {"__module__": __name__})
    callback = cls(optimizer, read, every, log_dir)
    if explain_after is not None:
        callback.explanation = Explanation(explain_after)
    return callback


class _Regular:
    """Reads the counts every few batches or calls of `run`, and writes what it has read."""

    def __init__(
        self, optimizer: Optimizer, read: _Read, every: int, log_dir: Optional[str]
    ) -> None:
        super().__init__()
        self._optimizer = optimizer
        self._read = read
        self._every = every
        self._writer = _ScalarWriter(optimizer, log_dir)
        self._count = 0

    def _is_due(self) -> bool:
        self._count += 1
        return self._count % self._every == 0


class _Callback(_Regular):
    """The methods of the callback; its class also derives from the `Callback` of one Keras."""

    # Keras 2 converts the logs of each batch for callbacks without this, and waits for the device.
    _supports_tf_logs = True

    model: Model  # which Keras sets
    explanation: Optional[Explanation] = None

    def on_train_begin(self, logs: Optional[Dict[str, float]] = None) -> None:
        """Warns if the model computes in float16 and its optimizer does not scale the loss."""
        optimizer = getattr(self.model, "optimizer", None)
        if computes_in_mixed_float16(self.model) and not scales_losses(optimizer):
            warnings.warn(f"{advice.MIXED_FLOAT16}.", RuntimeWarning, stacklevel=2)

    def on_train_batch_end(self, batch: int, logs: Optional[Dict[str, float]] = None) -> None:
        is_explained = self.explanation is not None and self.explanation.has_looked
        if is_explained or self._is_due():
            self._report()

    def on_epoch_end(self, epoch: int, logs: Optional[Dict[str, float]] = None) -> None:
        """Reads the counts, and adds them to the logs."""
        reading = self._report()
        if reading is not None and logs is not None:
            logs["loss_scale"] = reading.scale
            logs["skipped_steps"] = reading.skipped

    def on_train_end(self, logs: Optional[Dict[str, float]] = None) -> None:
        """Reads the counts for the last time; warns if no step was counted, or no loss scaled."""
        if not self._count:
            return
        message = ""
        reading = self._report()
        if self.explanation is not None:
            self.explanation.stop()
        if reading is None:
            message = (
                "The Monitor has counted no step of this fit(). Create it before the first fit(), "
                "with the optimizer that the model trains with: model.optimizer."
            )
        elif computes_in_mixed_float16(self.model) and not self._scales_loss():
            message = _as_sentence(f"the model computes in float16, but {advice.SCALES_NO_LOSS}")
        if message:
            warnings.warn(message, RuntimeWarning, stacklevel=2)

    def _scales_loss(self) -> bool:
        counter = watcher_of(self._optimizer)
        return not isinstance(counter, StepCounter) or counter.scales_loss

    def _report(self) -> Optional[Reading]:
        reading = self._read()
        if reading is not None:
            step = reading.steps
            if tf.executing_eagerly():
                # Early versions of Keras 3 have no `int` of a variable.
                step = int(tf.convert_to_tensor(self._optimizer.iterations))
            self._writer.write(step, reading)
            if self.explanation is not None:
                self.explanation.see(reading, self.model)
        return reading


class MonitorHook(_Regular, tf1.train.SessionRunHook):
    """Reads the counts in a call of `run` of its own."""

    _global_step: Optional[Variable] = None

    def begin(self) -> None:
        """Looks up the global step, before the graph is finalized."""
        self._global_step = tf1.train.get_global_step()

    def after_run(self, run_context: Any, run_values: Any) -> None:
        if self._is_due():
            self._report(run_context.session)

    def end(self, session: Session) -> None:
        self._report(session)
        self._writer.close()

    def _report(self, session: Session) -> None:
        # None in the replicas of an Estimator whose optimizers do not make the step.
        reading = self._read(session)
        if reading is not None:
            step = self._global_step
            step = reading.steps if step is None else int(session.run(step))
            self._writer.write(step, reading)
