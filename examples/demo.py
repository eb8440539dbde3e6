"""The whole process: migrates legacy training code, trains it, and compares it with the original.

Copies the examples, rewrites the copies with `tf-lossscale migrate`, trains and records them on the
installed TensorFlow, and compares each run with the record of the original classes on TensorFlow
1.15 and 2.3, with `tf-lossscale compare`. The exit status is 1 if they are not the same. Run it
with `make demo`.

The records of the originals are in `traces`, each with five disturbed runs, which show how far
rounding carries it. They were made by

    tf-lossscale record --disturb 5 examples/traces/NAME.jsonl examples/NAME.py

on TensorFlow 1.15.5 (`digits_graph`) and 2.3.4 (`digits_keras`).
"""

import glob
import os
import shutil
import subprocess
import sys
import tempfile
import time
from typing import List

from loss_scale_chart import chart, read_record, run_of

HERE = os.path.dirname(os.path.abspath(__file__))
TOOL = os.path.join(os.path.dirname(sys.executable), "tf-lossscale")
EXAMPLES = ("digits_graph", "digits_keras")


def main() -> int:
    folder = os.path.join(tempfile.mkdtemp(prefix="tf-lossscale-demo-"), "training")
    os.makedirs(folder)
    for name in (*EXAMPLES, "digits_data"):
        shutil.copy(os.path.join(HERE, name + ".py"), folder)
    shutil.copytree(os.path.join(HERE, "data"), os.path.join(folder, "data"))

    keras = str(installed_keras())
    heading(f"1. What `tf-lossscale migrate --keras {keras}` would change")
    command("migrate", "--keras", keras, ".", folder=folder, allowed=(0, 1))
    heading("2. Change it")
    command("migrate", "--keras", keras, "--write", ".", folder=folder, allowed=(0,))
    heading("3. A second run finds nothing left")
    command("migrate", "--keras", keras, "--check", ".", folder=folder, allowed=(0,))

    diverged = False
    charts: List[str] = []
    for number, name in enumerate(EXAMPLES, 4):
        then, now = f"{name}-then.jsonl", f"{name}-now.jsonl"
        for record in glob.glob(os.path.join(HERE, "traces", name + ".*")):
            copied = os.path.basename(record).replace(name, name + "-then", 1)
            shutil.copy(record, os.path.join(folder, copied))
        version, steps = read_record(os.path.join(folder, then))
        heading(f"{number}. Train {name}, record it, and compare with TensorFlow {version}")
        train(folder, name, len(steps), now)
        _, steps_now = read_record(os.path.join(folder, now))
        runs = [run_of(f"then, TensorFlow {version}", steps), run_of("now", steps_now)]
        charts.append(chart(f"The loss scale of {name}", runs))
        page = f"{name}.html"
        status = command("compare", then, now, "--html", page, folder=folder, allowed=(0, 1))
        print(f"Both runs as charts: {os.path.join(folder, page)}")
        diverged |= status != 0
    print(f"\nThe migrated files, the records and the charts are in {folder}")
    failed = "FAILED: the runs are not shown to be the same."
    print(failed if diverged else "OK: the migrated code does what the old did.")
    print("The loss scale and the skipped steps, then and now: " + write_picture(folder, charts))
    return int(diverged)


def write_picture(folder: str, charts: List[str]) -> str:
    """Writes the charts as one page, and returns its path."""
    path = os.path.join(folder, "loss-scale.html")
    style = (
        ":root{color-scheme:light dark}body{max-width:800px;margin:2em auto;font-family:sans-serif}"
    )
    with open(path, "w") as page:
        page.write(f'<!doctype html><meta charset="utf-8"><style>{style}</style>\n')
        page.write("<title>The loss scale, then and now</title>\n" + "\n".join(charts))
    return path


def heading(text: str) -> None:
    print(f"\n== {text} ".ljust(100, "="), flush=True)


def command(*args: str, folder: str, allowed: "tuple[int, ...]") -> int:
    print("$ tf-lossscale " + " ".join(args), flush=True)
    status = subprocess.call([TOOL, *args], cwd=folder)
    print(f"(exit status {status})", flush=True)
    if status not in allowed:
        sys.exit(f"tf-lossscale {args[0]} exited with {status}")
    return status


def installed_keras() -> int:
    """The version of `tf.keras` in this environment, determined in a separate process."""
    return int(
        subprocess.check_output(
            [
                sys.executable,
                "-c",
                "import tensorflow as tf; v = getattr(tf.keras, '__version__', '2');"
                "print(v[:v.index('.')] if '.' in v else v)",
            ],
            env=dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3"),
            stderr=subprocess.DEVNULL,
        )
    )


def train(folder: str, name: str, steps: int, record: str) -> None:
    """Runs the migrated script and records it, with a progress line while it trains."""
    started = time.time()
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            [TOOL, "record", record, name + ".py", "--steps", str(steps)],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=errors,
            universal_newlines=True,
            env=dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3", PYTHONPATH=folder),
        )
        assert process.stdout is not None
        for done, _ in enumerate(process.stdout, 1):
            progress(done, steps, time.time() - started)
        if process.wait():
            errors.seek(0)
            sys.exit(f"\n{name}.py failed:\n{errors.read()[-4000:]}")
    print()


def progress(done: int, steps: int, seconds: float) -> None:
    # On a terminal, one line that is updated; in a log, a new line from time to time.
    if sys.stdout.isatty():
        bar = "#" * (40 * done // steps)
        print(f"\rstep {done:4d}/{steps} [{bar:<40}] {seconds:5.1f} s", end="")
        sys.stdout.flush()
    elif done % 40 == 0 or done == steps:
        print(f"step {done:4d}/{steps} {seconds:5.1f} s", flush=True)


if __name__ == "__main__":
    sys.exit(main())
