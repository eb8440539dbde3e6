"""Runs checks and shows their results: a Markdown table with the versions and devices."""

import platform
import sys
import time
import traceback
from typing import Any, Callable, Dict, List, NamedTuple, Sequence

import tensorflow as tf

from tf_lossscale._about import VERSION


class NotRun(Exception):
    """Raised by a check that this machine cannot run; the message gives the reason."""


class Setting(NamedTuple):
    """The devices and sizes for a check.

    Attributes:
      devices: the names of the devices, such as `/GPU:0`.
      large: whether tensors are large enough to measure time and memory.
      is_divided: whether the devices are parts of one GPU, between which NCCL cannot sum.
    """

    devices: Sequence[str]
    large: bool
    is_divided: bool = False


class Row(NamedTuple):
    """A row of the table; `result` is `ok`, `FAILED` or `not run`."""

    check: str
    result: str
    detail: str


def run_checks(checks: Dict[str, Callable[[Setting], str]], setting: Setting) -> List[Row]:
    """Runs every check, one after the other; a failure does not stop the others."""
    rows = []
    for name, check in checks.items():
        try:
            rows.append(Row(name, "ok", check(setting)))
        except NotRun as reason:
            rows.append(Row(name, "not run", str(reason)))
        except Exception as error:
            traceback.print_exc()
            rows.append(Row(name, "FAILED", f"{type(error).__name__}: {error}".splitlines()[0]))
    return rows


def medians(ways: Dict[str, Callable[[], Any]], calls: int, first: int) -> Dict[str, float]:
    """The median time of each way in milliseconds, without its first calls, which compile."""
    taken: Dict[str, List[float]] = {name: [] for name in ways}
    for call in range(calls):
        for name, way in ways.items():
            start = time.perf_counter()
            way()
            if call >= first:
                taken[name].append(time.perf_counter() - start)
    return {name: 1e3 * sorted(samples)[len(samples) // 2] for name, samples in taken.items()}


def print_table(rows: Sequence[Row]):
    """Prints the versions, the devices and the rows."""
    print(
        f"tf-lossscale {VERSION}, TensorFlow {tf.__version__}, Keras {_keras_version()}, "
        f"Python {platform.python_version()}; {'; '.join(_device_names())}\n"
    )
    print("| check | result | detail |")
    print("|---|---|---|")
    for row in rows:
        print("| {} | {} | {} |".format(row.check, row.result, row.detail.replace("|", "\\|")))


def _keras_version() -> str:
    # In TensorFlow 2.6 to 2.15, `tf.keras` has no version.
    keras = tf.keras if hasattr(tf.keras, "__version__") else sys.modules.get("keras")
    return str(getattr(keras, "__version__", "unknown"))


def _device_names() -> List[str]:
    gpus = tf.config.experimental.list_physical_devices("GPU")
    details = getattr(tf.config.experimental, "get_device_details", lambda device: {})
    return [details(gpu).get("device_name", gpu.name) for gpu in gpus] or ["no GPU"]
