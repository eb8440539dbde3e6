"""Output that is read slowly, through a pipe that does not block: whole, from every command."""

import os
import subprocess
import sys
import threading
import time

import pytest
from command_line import LEGACY, PROGRAM

pytestmark = pytest.mark.skipif(os.name != "posix", reason="pipes of POSIX")

LARGE = LEGACY + b"o = tf.keras.mixed_precision.experimental.LossScaleOptimizer(o)\n" * 400
"""Its reports fill a pipe."""
WHOLE = PROGRAM.replace(
    "from tf_lossscale_codemods.cli.command import main", "from tf_lossscale._cli.main import main"
)
"""All commands, not only those of the codemods."""


def slowly(argv: list, stream: int, **environment) -> tuple:
    """The status, and what the stream gives to a reader that starts late."""
    end, pipe = os.pipe()
    os.set_blocking(pipe, False)
    other = subprocess.DEVNULL
    process = subprocess.Popen(
        [sys.executable, "-c", WHOLE, *argv],
        stdout=pipe if stream == 1 else other,
        stderr=pipe if stream == 2 else other,
        stdin=open("large.py", "rb"),  # noqa: SIM115 - until the end
        env={**os.environ, **environment},
    )
    assert not os.get_blocking(pipe)
    os.close(pipe)
    time.sleep(1.5)
    with open(end, "rb") as file:
        found = file.read()
    return process.wait(60), found


@pytest.mark.sampled(3)
@pytest.mark.sampled(2, each="argv")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    ("argv", "stream"),
    [
        ("migrate", 1),
        ("migrate --check --report json", 1),
        ("migrate --check --report html:/dev/stdout", 1),
        ("migrate --check --report json:/dev/fd/1", 1),
        ("migrate - --to shim", 1),
        ("migrate - --to shim", 2),
        ("explain LS", 1),
    ],
)
def test_whole(command_line, argv, stream, unbuffered):
    command_line.path("large.py").write_bytes(LARGE)
    with open("large.py", "rb") as source:
        command = [sys.executable, "-c", WHOLE, *argv.split()]
        expected = subprocess.run(command, stdin=source, capture_output=True, check=False)
    output = expected.stdout if stream == 1 else expected.stderr
    assert len(output) > 70_000 or argv == "migrate - --to shim"
    status, found = slowly(argv.split(), stream, PYTHONUNBUFFERED=unbuffered)
    assert (status, found) == (expected.returncode, output)


def test_a_fifo(command_line):
    command_line.path("large.py").write_bytes(LARGE)
    os.mkfifo("fifo")
    found = []

    def read():
        with open("fifo", "rb") as file:
            time.sleep(1.5)
            found.append(file.read())

    reader = threading.Thread(target=read)
    reader.start()
    time.sleep(0.3)
    ran = command_line.run("migrate", "--check", "--report", "json:fifo", "--report", "json")
    reader.join()
    assert ran.status == 1
    assert found == [ran.out]
