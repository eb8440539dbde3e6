"""SIGKILL at random moments of a `--write`: every file has its old or its new content."""

import os
import random
import signal
import subprocess
import sys
import time

from command_line import FINAL, LEGACY, PROGRAM

KILLS, RESTARTS = (50, 10) if os.environ.get("TFLS_TEST_SIZE") == "long" else (8, 2)
FILES = 60

# The workers share the group of their parent: the whole group dies at once, as in a power cut.
SAYS_WHEN = PROGRAM.replace(
    "sys.exit(main())",
    "import tf_lossscale_codemods.workers.pool\nprint('ready', flush=True)\nsys.exit(main())",
)


def padded(source: bytes, number: int) -> bytes:
    return source + b"".join(b"x%d = %d\n" % (n, number) for n in range(40))


def make(folder) -> None:
    folder.mkdir()
    for number in range(FILES):
        (folder / f"m{number}.py").write_bytes(padded(LEGACY, number))


def start(folder) -> subprocess.Popen:
    process = subprocess.Popen(
        [sys.executable, "-c", SAYS_WHEN, "migrate", "--write", "--jobs", "2", str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


def states(folder) -> list:
    """The number of new files; fails if a file is neither old nor new."""
    new = []
    for number in range(FILES):
        found = (folder / f"m{number}.py").read_bytes()
        assert found in (padded(LEGACY, number), padded(FINAL, number)), (number, found[:300])
        new.append(found == padded(FINAL, number))
    return new


def test_every_file_is_whole(tmp_path):
    make(tmp_path / "timed")
    process = start(tmp_path / "timed")
    begun = time.monotonic()
    process.communicate()
    seconds = time.monotonic() - begun
    assert all(states(tmp_path / "timed"))
    choices = random.Random(6)
    halfway = 0
    for kill in range(KILLS):
        folder = tmp_path / str(kill)
        make(folder)
        process = start(folder)
        time.sleep(choices.uniform(0, seconds))
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        new = states(folder)
        halfway += any(new) and not all(new)
    # Otherwise the moments were badly chosen, and nothing has been shown.
    assert halfway >= KILLS // 5
    # What a kill leaves is taken up by the next run.
    for kill in range(RESTARTS):
        process = start(tmp_path / str(kill))
        process.communicate()
        assert process.returncode == 0
        assert all(states(tmp_path / str(kill)))
        assert len(os.listdir(tmp_path / str(kill))) == FILES, "a temporary file is left"
