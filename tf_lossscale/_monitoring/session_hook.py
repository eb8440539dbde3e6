"""The hook that reads the counts in monitored Sessions and Estimators."""

from typing import Any, Optional

from tf_lossscale._monitoring.reader import Reader
from tf_lossscale._monitoring.scalars import ScalarWriter
from tf_lossscale._versions.base import tf1

__all__ = ["MonitorHook"]


class MonitorHook(tf1.train.SessionRunHook):
    """Reads the counts every few calls of `run`, in a call of its own."""

    def __init__(self, reader: Reader, log_dir: Optional[str]) -> None:
        self._reader = reader
        self._writer = ScalarWriter(log_dir)
        self._runs = 0
        self._global_step: Any = None

    def begin(self) -> None:
        """Looks up the global step, before the graph is finalized."""
        self._global_step = tf1.train.get_global_step()

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Reads the counts, if it is time."""
        self._runs += 1
        if self._runs % self._reader.every == 0:
            self._read(run_context.session)

    def end(self, session: Any) -> None:
        """Reads the counts for the last time."""
        self._read(session)
        self._writer.close()

    def _read(self, session: Any) -> None:
        # None in the replicas of an Estimator whose optimizers do not make the step.
        reading = self._reader.read_or_none(session)
        if reading is None:
            return
        step = reading.values.steps
        if self._global_step is not None:
            step = int(session.run(self._global_step))
        scalars = {"loss_scale": reading.scale, "skipped_steps": float(reading.values.skipped)}
        self._writer.write(step, scalars)
        self._writer.flush()
