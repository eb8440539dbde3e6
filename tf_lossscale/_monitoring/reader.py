"""Reads the counters on the host, from eager mode or a Session."""

from typing import Any, NamedTuple, Optional

from tf_lossscale._monitoring.counters import Counters, Values
from tf_lossscale._monitoring.optimizers import current_scale
from tf_lossscale._monitoring.warner import Warner
from tf_lossscale._monitoring.watcher import Watcher
from tf_lossscale._versions.base import tf, tf1
from tf_lossscale._versions.graphs import in_eager_mode
from tf_lossscale._versions.keras import keras_session

__all__ = ["Reader", "Reading"]


class Reading(NamedTuple):
    """What was read.

    Attributes:
      values: the counters.
      bad: name of the first variable with a non-finite gradient in the last skipped step, or None.
      scale: the loss scale.
    """

    values: Values
    bad: Optional[str]
    scale: float


class Reader:
    """Reads the counters of one optimizer.

    Attributes:
      optimizer: the optimizer.
      every: number of steps after which to read.

    Args:
      optimizer: the optimizer.
      watcher: its watcher.
      warner: sees each reading.
      every: number of steps after which to read.
    """

    def __init__(self, optimizer: Any, watcher: Watcher, warner: Warner, every: int) -> None:
        self.optimizer = optimizer
        self.every = every
        self._watcher = watcher
        self._warner = warner
        self._last: Optional[Reading] = None

    def read(self, session: Optional[Any] = None) -> Reading:
        """Reads the counters, and warns if there is a reason to.

        Args:
          session: the Session of the graph in which the steps run; the default one if None.

        Raises:
          RuntimeError: there is no Session to read from, no step was built, or this is called
            within a `tf.function`.
        """
        reading = self.read_or_none(session)
        if reading is None:
            raise RuntimeError(
                "The Monitor has counted no step: no step was built since it was created. Create "
                "it before minimize() or apply_gradients() builds the step."
            )
        return reading

    def read_or_none(self, session: Optional[Any] = None) -> Optional[Reading]:
        """The same, but returns None if no step was built."""
        if not tf.executing_eagerly() and tf1.get_default_graph().building_function:
            raise RuntimeError(
                "The counts of a Monitor cannot be read within a tf.function: that would happen "
                "only once, when it is traced. Read them after the call."
            )
        session = session or tf1.get_default_session()
        graphs = self._watcher.graphs()
        if session is None and not tf.executing_eagerly() and None not in graphs:
            session = keras_session(self.optimizer)
        if session is not None and session.graph in graphs:
            return self._see(self._watcher.counters(session.graph), session)
        if None in graphs:
            return self._see(self._watcher.counters(None), None)
        if not graphs:
            return None
        if self._last is not None:
            return self._last
        raise RuntimeError(
            "The steps of this optimizer run in a graph. Read the counts within "
            "`with session.as_default():`, or pass the Session: monitor.counts(session)."
        )

    def _see(self, counters: Optional[Counters], session: Any) -> Optional[Reading]:
        if counters is None:
            return None
        values = counters.values(session)
        if counters.eager:
            with in_eager_mode():
                scale = float(current_scale(self.optimizer))
        else:
            scale = float(session.run(counters.scale))
        bad = None if values.bad is None else self._watcher.name(values.bad)
        self._last = Reading(values, bad, scale)
        self._warner.see(values, bad, scale)
        return self._last
