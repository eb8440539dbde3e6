"""Compares the run times of several variants.

The variants take turns, one call each, so that other load on the machine affects all of them
equally. The result for a variant is the median of its calls. Only NumPy is imported, so that a
benchmark can decide when and how TensorFlow starts.
"""

import argparse
import json
import os
import platform
import random
import sys
import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional

__all__ = [
    "Report",
    "Times",
    "added",
    "median_times",
    "one_thread",
    "processor_times",
    "quiet",
]

REPETITIONS = 31
WARM_UP = 4
INSTANCES = 6
RESAMPLES = 1000


def quiet() -> None:
    """Disables GPUs, unless requested, and log messages; call it before importing TensorFlow."""
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def median_times(
    ways: Dict[str, Callable[[], Any]], repetitions: int = REPETITIONS
) -> Dict[str, float]:
    """Returns the median time of a call of each variant, in seconds.

    Args:
      ways: the variants by name; each function returns only when its work is done.
      repetitions: the number of timed calls of each, at least 30, after a warm-up.
    """
    for way in ways.values():
        for _ in range(WARM_UP):
            way()
    taken: Dict[str, List[float]] = {name: [] for name in ways}
    for _ in range(repetitions):
        for name, way in ways.items():
            start = time.perf_counter()
            way()
            taken[name].append(time.perf_counter() - start)
    return {name: sorted(samples)[len(samples) // 2] for name, samples in taken.items()}


def one_thread(tf: Any) -> None:
    """Makes TensorFlow use one thread outside Sessions, which have their own settings.

    This removes the effects of scheduling from the comparison.

    Args:
      tf: TensorFlow, not yet used.
    """
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)


class Times(NamedTuple):
    """The CPU time of a call of one variant: the median of each of its instances, in seconds."""

    medians: List[float]

    @property
    def mean(self) -> float:
        return sum(self.medians) / len(self.medians)


def added(times: Dict[str, Times]) -> Dict[str, Any]:
    """Returns what a report says of the variants `bare`, `original` and `ours`.

    Args:
      times: the result of `processor_times`.

    Returns:
      The whole step of each, in seconds; the ratio of what ours adds to the bare step to what the
      original adds; and the range that holds the ratio with a probability of 95 %, as far as the
      instances show it: the medians are drawn again from themselves (a bootstrap).
    """

    def ratio(means: Dict[str, float]) -> float:
        by_original = means["original"] - means["bare"]
        return (means["ours"] - means["bare"]) / by_original if by_original > 0 else float("inf")

    def drawn(medians: List[float]) -> float:
        return sum(chance.choices(medians, k=len(medians))) / len(medians)

    chance = random.Random(1)
    draws = sorted(
        ratio({name: drawn(measurement.medians) for name, measurement in times.items()})
        for _ in range(RESAMPLES)
    )
    whole = {f"{name}_s": measurement.mean for name, measurement in times.items()}
    low, high = draws[RESAMPLES // 40], draws[-RESAMPLES // 40]
    return dict(
        whole,
        added_by_ours_over_original=ratio(
            {name: measurement.mean for name, measurement in times.items()}
        ),
        between=f"{low:.2f} and {high:.2f}",
    )


def processor_times(
    makers: Dict[str, Callable[[], Callable[[], Any]]],
    repetitions: int = REPETITIONS,
    count: int = INSTANCES,
) -> Dict[str, Times]:
    """Returns the CPU time of a call of each variant, to measure small differences.

    The position of the variables in memory makes a variant up to 5 % faster or slower. So several
    instances of each variant are created, in random order, and take turns. Other programs on the
    machine hardly affect the CPU time.

    Args:
      makers: by name, functions that create an instance of a variant, which is called like the
        variants of `median_times`.
      repetitions: the number of timed calls of each instance.
      count: the number of instances of each variant.
    """
    names = [name for name in makers for _ in range(count)]
    shuffle = random.Random(1).shuffle
    shuffle(names)
    instances = []
    for name in names:
        way = makers[name]()
        # Before the next instance is made: as in a program, the optimizer's slots are then beside
        # the variables, and not behind those of all instances.
        for _ in range(WARM_UP):
            way()
        instances.append((name, way))
    taken: List[List[float]] = [[] for _ in instances]
    order = list(range(len(instances)))
    for _ in range(repetitions):
        shuffle(order)
        for index in order:
            start = time.process_time()
            instances[index][1]()
            taken[index].append(time.process_time() - start)
    times: Dict[str, Times] = {name: Times([]) for name in makers}
    for (name, _), samples in zip(instances, taken):
        times[name].medians.append(sorted(samples)[len(samples) // 2])
    return times


class Report:
    """The rows of a benchmark, printed as a table, and written as JSON for `--json FILE`."""

    def __init__(self, name: str, tensorflow: str) -> None:
        """Reads the command line.

        Args:
          name: the name of the benchmark.
          tensorflow: the version of TensorFlow.
        """
        parser = argparse.ArgumentParser(description=name)
        parser.add_argument("--json", metavar="FILE", help="also write the results to this file")
        parser.add_argument("--repetitions", type=int, default=REPETITIONS)
        arguments = parser.parse_args()
        self.repetitions: int = arguments.repetitions
        self._file: Optional[str] = arguments.json
        self._head = {
            "benchmark": name,
            "tensorflow": tensorflow,
            "python": platform.python_version(),
            "cpus": os.cpu_count(),
        }
        self._rows: List[Dict[str, Any]] = []

    def add(self, case: str, **figures: Any) -> None:
        """Adds a row. Floats whose name ends in `_s` are in seconds and shown in milliseconds."""
        self._rows.append(dict(case=case, **figures))
        shown = []
        for name, value in figures.items():
            if name.endswith("_s"):
                shown.append(f"{name[:-2]} {value * 1e3:9.3f} ms")
            else:
                shown.append(
                    f"{name} {value:.3f}" if isinstance(value, float) else f"{name} {value}"
                )
        print("{:28} {}".format(case, "  ".join(shown)), flush=True)

    def finish(self) -> None:
        """Writes the JSON file."""
        if self._file:
            with open(self._file, "w", encoding="utf-8") as file:
                json.dump(dict(self._head, rows=self._rows), file, indent=1)
                file.write("\n")
