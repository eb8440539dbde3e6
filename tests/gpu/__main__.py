"""Runs the checks that need a GPU, and prints one table that can be pasted into a report.

python tests/gpu

The checks use the TensorFlow of the interpreter that runs them. Exit status: 0 all checks passed,
or there is no GPU and nothing was tested; 1 a check failed.
"""

import os
import sys
from typing import Any, List

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(os.path.dirname(HERE)), os.path.dirname(HERE)]
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf  # noqa: E402 - after the settings above

from gpu.checks import CHECKS  # noqa: E402 - after the settings above
from gpu.table import Setting, print_table, run_checks  # noqa: E402 - after the settings above

MEBIBYTES = (5120, 1024)
"""The memory of the two parts of a single GPU; the second only sums small gradients."""


def main() -> int:
    tf.compat.v1.logging.set_verbosity("ERROR")
    gpus = tf.config.experimental.list_physical_devices("GPU")
    if not gpus:
        print(
            f"Nothing was tested: TensorFlow {tf.__version__} sees no GPU on this machine "
            "(see GPUs in benchmarks/README.md)."
        )
        return 0
    rows = run_checks(CHECKS, _divided(gpus) if len(gpus) == 1 else _whole(gpus))
    print_table(rows)
    return 1 if any(row.result == "FAILED" for row in rows) else 0


def _whole(gpus: List[Any]) -> Setting:
    for gpu in gpus:
        tf.config.experimental.set_memory_growth(gpu, True)
    return Setting([f"/GPU:{index}" for index in range(len(gpus))], large=True)


def _divided(gpus: List[Any]) -> Setting:
    """Two logical devices, so that replicas are tested even if there is one GPU."""
    config = tf.config.experimental
    parts = [config.VirtualDeviceConfiguration(memory_limit=limit) for limit in MEBIBYTES]
    config.set_virtual_device_configuration(gpus[0], parts)
    return Setting(["/GPU:0", "/GPU:1"], large=True, is_divided=True)


if __name__ == "__main__":
    sys.exit(main())
