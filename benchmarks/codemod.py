"""Compares `tf-lossscale migrate` with `tf_upgrade_v2`, and with reading the files.

The trees contain modules of the standard library, each slightly modified, so that the code is real
and no two files are equal. Only modules in old Python syntax are used, because `tf_upgrade_v2`
crashes on newer syntax. Each measurement starts a new process. Needs `tf_upgrade_v2`, which is part
of TensorFlow, on the path or next to the interpreter.
"""

import ast
import importlib.metadata
import os
import random
import resource
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from typing import Callable, Dict, Iterator, List, Tuple

import harness

from tf_lossscale._paths import SYMBOLS

ROUNDS = 3
FEW = 400
HITS = 60
CLEAN = 10_000
CONNECTED = 8_000

LEGACY = """
import tensorflow as tf


def train_step_{number}(optimizer, loss, variables):
    manager = tf.contrib.mixed_precision.ExponentialUpdateLossScaleManager(2.0 ** {number}, 2000)
    optimizer = tf.contrib.mixed_precision.LossScaleOptimizer(optimizer, manager)
    optimizer = tf.contrib.tpu.CrossShardOptimizer(optimizer)
    return optimizer.minimize(loss, var_list=variables)


def keras_optimizer_{number}(optimizer):
    return tf.keras.mixed_precision.experimental.LossScaleOptimizer(optimizer, "dynamic")
"""

OURS = [
    sys.executable,
    "-c",
    "import sys; from tf_lossscale_codemods.cli.command import main; sys.exit(main())",
]


def installed_tensorflow() -> str:
    """The version of the installed TensorFlow, of either wheel, without importing it."""
    found = {wheel.metadata["Name"]: wheel.version for wheel in importlib.metadata.distributions()}
    return found.get("tensorflow") or found["tensorflow_cpu"]


def main() -> None:
    report = harness.Report("The command", installed_tensorflow())
    with tempfile.TemporaryDirectory() as folder:
        theirs = [upgrade_script()]
        few = os.path.join(folder, "few")
        make(few, FEW, hit=lambda number: number % 100 == 7)
        add_beside(report, f"{FEW} files, {FEW // 100} hits", few, theirs, bar=30)
        hits = os.path.join(folder, "hits")
        make(hits, HITS, hit=lambda number: True)
        add_beside(report, f"{HITS} files, all with legacy names", hits, theirs, bar=3)
        clean = os.path.join(folder, "clean")
        make(clean, CLEAN, hit=lambda number: False, most=8_000)
        add_scan(report, clean)
        add_jobs(report, hits)
        add_connected(report, os.path.join(folder, "connected"))
        add_memory(report, folder)
    report.finish()


def upgrade_script() -> str:
    beside = os.path.join(os.path.dirname(sys.executable), "tf_upgrade_v2")
    found = beside if os.path.exists(beside) else shutil.which("tf_upgrade_v2")
    if not found:
        sys.exit("tf_upgrade_v2 is not installed; it is part of TensorFlow 2")
    return found


_NEWER = (ast.JoinedStr, ast.NamedExpr, ast.AnnAssign, ast.AsyncFunctionDef, ast.Await)


def is_newer(source: bytes) -> bool:
    return any(
        isinstance(node, _NEWER) or getattr(node, "posonlyargs", None)
        for node in ast.walk(ast.parse(source))
    )


def modules(most: int) -> List[bytes]:
    """Modules of the standard library in old Python syntax."""
    top = sysconfig.get_path("stdlib")
    found = []
    for folder in ("", "asyncio", "email", "http", "json", "logging", "unittest", "xml/dom"):
        directory = os.path.join(top, folder)
        for name in sorted(os.listdir(directory)) if os.path.isdir(directory) else ():
            path = os.path.join(directory, name)
            if name.endswith(".py") and 2_000 < os.path.getsize(path) < most:
                with open(path, "rb") as file:
                    source = file.read()
                if not is_newer(source):
                    found.append(source)
    return found


def make(folder: str, count: int, hit: Callable[[int], bool], most: int = 60_000) -> None:
    sources = modules(most)
    for number in range(count):
        directory = os.path.join(folder, f"package_{number % 40}")
        os.makedirs(directory, exist_ok=True)
        source = sources[number % len(sources)] + b"\nNUMBER = %d\n" % number
        if hit(number):
            source += LEGACY.format(number=number).encode()
        with open(os.path.join(directory, f"module_{number}.py"), "wb") as file:
            file.write(source)


def seconds(command: List[str], statuses: Tuple[int, ...] = (0, 1)) -> float:
    start = time.perf_counter()
    ran = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    taken = time.perf_counter() - start
    if ran.returncode not in statuses:
        sys.exit(f"{command} failed: {ran.stderr.decode()[-2000:]}")
    return taken


def processor_seconds(command: List[str], statuses: Tuple[int, ...] = (0, 1)) -> float:
    """The processor time of a command and its processes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds(command, statuses)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def medians(ways: Dict[str, Callable[[], float]]) -> Dict[str, float]:
    taken: Dict[str, List[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            taken[name].append(way())
    return {name: sorted(samples)[len(samples) // 2] for name, samples in taken.items()}


def copies(folder: str) -> Iterator[str]:
    """Fresh copies of a tree, because a rewritten tree has nothing left to do."""
    number = 0
    while True:
        copy = f"{folder}-copy-{number}"
        shutil.copytree(folder, copy)
        yield copy
        shutil.rmtree(copy)
        number += 1


def add_beside(
    report: harness.Report, case: str, folder: str, theirs: List[str], bar: float
) -> None:
    fresh = copies(folder)

    def upgrade() -> float:
        command = [*theirs, "--intree", next(fresh), "--inplace", "--reportfile", os.devnull]
        return seconds(command, statuses=(0,))

    def migrate() -> float:
        return seconds([*OURS, "migrate", "--write", next(fresh)])

    times = medians({"theirs": upgrade, "ours": migrate})
    next(fresh)
    ratio = times["theirs"] / times["ours"]
    report.add(
        case, tf_upgrade_v2_s=times["theirs"], ours_s=times["ours"], ratio=ratio, at_least=bar
    )


def add_scan(report: harness.Report, folder: str) -> None:
    """Processor time for files without legacy names, beside a bare search for all names."""
    names = sorted({symbol.name.encode() for symbol in SYMBOLS} | {b"mixed_precision"})
    read = (
        f"import os, sys\nnames = {names!r}\n"
        "for directory, _, files in os.walk(sys.argv[1]):\n"
        "    for name in files:\n"
        "        with open(os.path.join(directory, name), 'rb') as file:\n"
        "            data = file.read()\n"
        "        any(name in data for name in names)\n"
    )
    times = medians(
        {
            "read": lambda: processor_seconds([sys.executable, "-c", read, folder]),
            "ours": lambda: processor_seconds([*OURS, "migrate", folder], (0,)),
        }
    )
    report.add(
        f"{CLEAN} files, no legacy names",
        read_and_search_s=times["read"],
        ours_s=times["ours"],
        ratio=times["ours"] / times["read"],
        at_most=3,
    )


def add_jobs(report: harness.Report, folder: str) -> None:
    times = medians(
        {
            jobs: lambda jobs=jobs: seconds([*OURS, "migrate", "--check", "--jobs", jobs, folder])
            for jobs in ("1", "2")
        }
    )
    report.add(
        f"{HITS} files, all with legacy names",
        one_job_s=times["1"],
        two_jobs_s=times["2"],
        ratio=times["1"] / times["2"],
        at_least=1.6,
    )


def add_connected(report: harness.Report, folder: str) -> None:
    """Processor time for files that import each other, so that nearly all are one program."""
    make(folder, CONNECTED, hit=lambda number: number % 50 == 0, most=8_000)
    drawn = random.Random(0)
    for number in range(CONNECTED):
        path = os.path.join(folder, f"package_{number % 40}", f"module_{number}.py")
        with open(path, "rb") as file:
            source = file.read()
        others = [drawn.randrange(CONNECTED) for _ in range(8)]
        imports = "".join(
            f"from package_{number % 40} import module_{number}\n" for number in others
        )
        with open(path, "wb") as file:
            file.write(imports.encode() + source)
    used = processor_seconds([*OURS, "migrate", "--check", folder])
    report.add(
        f"{CONNECTED} files that import each other, {CONNECTED // 50} hits",
        processor_s_per_1000_files=1000 * used / CONNECTED,
        at_most=3,
    )


def add_memory(report: harness.Report, folder: str) -> None:
    """The peak memory of a process, for a tree and for one with four times as many files.

    A process keeps trees of files between reading and editing, up to a limit: the smaller tree
    reaches it.
    """
    peaks = []
    for count in (320, 1280):
        tree = os.path.join(folder, f"memory-{count}")
        make(tree, count, hit=lambda number: True, most=8_000)
        peaks.append(peak_megabytes([*OURS, "migrate", "--jobs", "2", "--report", "json", tree]))
    report.add("4 times the files", peak_mb=peaks[0], then_mb=peaks[1], ratio=peaks[1] / peaks[0])


def peak_megabytes(command: List[str]) -> float:
    program = (
        "import resource, subprocess, sys\n"
        "subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, *command], stdout=subprocess.PIPE, check=True
    )
    kilobytes = int(ran.stdout) if sys.platform != "darwin" else int(ran.stdout) // 1024
    return kilobytes / 1024


if __name__ == "__main__":
    main()
