"""The description of this process in a record."""

import platform
import sys
from typing import Optional

from tf_lossscale._recording.record import RunHeader
from tf_lossscale._versions.base import tf

__all__ = ["run_header"]


def run_header(replicas: int, xla: Optional[bool]) -> RunHeader:
    """Returns the first line of a record.

    Args:
      replicas: the number of replicas of the first step.
      xla: whether XLA compiles it; None if unknown.
    """
    devices = {each.device_type for each in tf.config.experimental.list_physical_devices()}
    keras = next(
        (sys.modules[name] for name in ("tf_keras", "keras") if name in sys.modules), None
    ) or getattr(tf, "keras", None)
    version = getattr(keras, "__version__", None)
    return RunHeader(
        tensorflow=tf.__version__,
        keras=None if version is None else str(version),
        python=platform.python_version(),
        devices=sorted(each for each in devices if not each.startswith("XLA_")),
        replicas=replicas,
        xla=xla,
    )
