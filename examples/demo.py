"""The main job, from end to end: migrate legacy training code, train it, compare with the original.

Copies the examples, rewrites the copies with `tf-lossscale migrate`, trains them on the TensorFlow
that is installed here, and holds every step against the trace that the original classes left on
TensorFlow 1.15 and 2.3. Exit status 1 when they part. Run it with `make demo`.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from typing import Dict, List

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = ("digits_graph", "digits_keras")
LOSS_TOLERANCE = 0.01
"""Relative. Float16 kernels sum in another order from version to version, so the loss moves in its
third digit; the loss scale and the skipped steps must agree exactly."""


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

    parted = False
    for number, name in enumerate(EXAMPLES, 4):
        with open(os.path.join(HERE, "traces", name + ".json")) as recorded:
            trace = json.load(recorded)
        heading(
            "{}. Train {} and compare with the trace of TensorFlow {}".format(
                number, name, trace["tensorflow"]
            )
        )
        parted |= not agrees(trace["steps"], train(folder, name, len(trace["steps"])))
    print(f"\nThe migrated files are in {folder}")
    print("FAILED: the runs part." if parted else "OK: the migrated code does what the old did.")
    return int(parted)


def heading(text: str) -> None:
    print(f"\n== {text} ".ljust(100, "="), flush=True)


def command(*args: str, folder: str, allowed: "tuple[int, ...]") -> None:
    tool = os.path.join(os.path.dirname(sys.executable), "tf-lossscale")
    print("$ tf-lossscale " + " ".join(args), flush=True)
    status = subprocess.call([tool, *args], cwd=folder)
    print(f"(exit status {status})", flush=True)
    if status not in allowed:
        sys.exit(f"tf-lossscale {args[0]} exited with {status}")


def installed_keras() -> int:
    """Which Keras `tf.keras` is in this environment, asked in a process of its own."""
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


def train(folder: str, name: str, steps: int) -> List[Dict[str, object]]:
    """Runs the migrated script and returns its steps, with a progress line while it trains."""
    started = time.time()
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            [sys.executable, name + ".py", "--steps", str(steps)],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=errors,
            universal_newlines=True,
            env=dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3"),
        )
        rows: List[Dict[str, object]] = []
        assert process.stdout is not None
        for line in process.stdout:
            rows.append(json.loads(line))
            progress(len(rows), steps, time.time() - started)
        if process.wait():
            errors.seek(0)
            sys.exit(f"\n{name}.py failed:\n{errors.read()[-4000:]}")
    print()
    return rows


def progress(done: int, steps: int, seconds: float) -> None:
    # On a terminal one line that moves; in a log a line every now and then.
    if sys.stdout.isatty():
        bar = "#" * (40 * done // steps)
        print(f"\rstep {done:4d}/{steps} [{bar:<40}] {seconds:5.1f} s", end="")
        sys.stdout.flush()
    elif done % 40 == 0 or done == steps:
        print(f"step {done:4d}/{steps} {seconds:5.1f} s", flush=True)


def agrees(recorded: List[Dict[str, object]], now: List[Dict[str, object]]) -> bool:
    """Prints the two runs side by side and says whether they agree at every step."""
    print("step   loss then    loss now   loss scale then    loss scale now   skipped then / now")
    parted = len(recorded) != len(now)
    worst = 0.0
    for then, row in zip(recorded, now):
        error = abs(float(str(row["loss"])) / float(str(then["loss"])) - 1)
        worst = max(worst, error)
        wrong = (
            not error <= LOSS_TOLERANCE
            or then["loss_scale"] != row["loss_scale"]
            or then["skipped"] != row["skipped"]
        )
        parted |= wrong
        if wrong or then["skipped"] or int(str(then["step"])) % 10 == 0:
            print(
                "{:4d} {:11.6f} {:11.6f} {:17,.0f} {:17,.0f}   {:>12} / {}{}".format(
                    then["step"],
                    then["loss"],
                    row["loss"],
                    then["loss_scale"],
                    row["loss_scale"],
                    "yes" if then["skipped"] else "no",
                    "yes" if row["skipped"] else "no",
                    "   <-- parts" if wrong else "",
                )
            )
    print(
        "{} steps, {} skipped; largest difference of the loss {:.2%} (allowed {:.0%})".format(
            len(now), sum(bool(row["skipped"]) for row in now), worst, LOSS_TOLERANCE
        )
    )
    return not parted


if __name__ == "__main__":
    sys.exit(main())
