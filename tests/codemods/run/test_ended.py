"""SIGTERM, SIGHUP and a second Ctrl-C at any moment: files are whole, and nothing else is left."""

import os
import signal
import subprocess
import sys
import time

import pytest
from command_line import FINAL, LEGACY, PROGRAM
from test_kill import MOMENTS

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")

SENDS = MOMENTS.replace("os.killpg(0, signal.SIGKILL)", "os.kill(os.getpid(), number)")
# Sends a signal at each moment of the replacement of a file, and prints how the process ended, what
# the file holds, and what is in the directory.
EACH_MOMENT = """
from tf_lossscale._process import guarded

folder, number = sys.argv[1], int(sys.argv[2])
path = os.path.join(folder, "file.py")
ended, moment = True, 0
while ended:
    moment += 1
    with open(path, "wb") as file:
        file.write(b"old" * 9999)
    child = os.fork()
    if not child:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        status = guarded("prog", lambda: replace(path, b"old" * 9999, b"new" * 9999, moment) or 0)
        os._exit(status)
    status = os.waitpid(child, 0)[1]
    ended = status != 0
    with open(path, "rb") as file:
        found = file.read()
    content = {b"old" * 9999: "old", b"new" * 9999: "new"}.get(found, repr(found[:100]))
    print(status, content, *os.listdir(folder), flush=True)  # or a child would print it, too
"""
# Waits for signals in the middle of a replacement.
WAITS = """
import os, signal, time

def wait(real):
    def waiting(*arguments):
        os.write(1, b"here")
        time.sleep({seconds})
        return real(*arguments)
    return waiting

os.fsync = wait(os.fsync)
sys.exit(main())
"""


def program(last: str) -> list:
    heed = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
    return [sys.executable, "-c", heed + PROGRAM.replace("sys.exit(main())", last)]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("number", "status"),
    [
        (signal.SIGTERM, signal.SIGTERM),
        (signal.SIGHUP, signal.SIGHUP),
        (signal.SIGINT, 130 << 8),
    ],
)
@pytest.mark.slow
def test_nothing_is_left_at_any_moment(tmp_path, number, status):
    command = [*program(SENDS + EACH_MOMENT), str(tmp_path), str(int(number))]
    ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    moments = ran.stdout.splitlines()
    assert set(moments) == {f"{status} old file.py", f"{status} new file.py", "0 new file.py"}
    assert len(moments) > 50


@pytest.mark.sampled(3)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_page_of_records_leaves_nothing_either(tmp_path, number):
    """As `compare --html` and `show --html` write it."""
    slow = """
import os, sys, time
from tf_lossscale._process import guarded
from tf_lossscale._records import output
os.replace = lambda *_: (os.write(1, b"here"), time.sleep(60))
sys.exit(guarded("prog", lambda: output.write("page.html", "text", [])))
"""
    process = subprocess.Popen(
        program(slow), cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout.read(4) == b"here"
    assert len(os.listdir(tmp_path)) == 1
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == (130 if number == signal.SIGINT else -number)
    assert err == b"prog: interrupted\n"
    assert os.listdir(tmp_path) == []


@pytest.mark.slow
@pytest.mark.sampled(2, each="first")
@pytest.mark.parametrize("first", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_does_not_cut_the_end_short(command_line, first, second):
    command_line.write(a=LEGACY, b=LEGACY)
    process = subprocess.Popen(
        [*program(WAITS.format(seconds=1)), "migrate", "--write", "--jobs", "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout.read(4) == b"here"
    for number in (first, second):
        process.send_signal(number)
        time.sleep(0.2)
    _, err = process.communicate(timeout=60)
    assert process.returncode == (130 if first == signal.SIGINT else -first)
    assert err == b"tf-lossscale: interrupted; no file was left half-written\n"
    assert command_line.bytes_on_disk() == {"a.py": FINAL, "b.py": LEGACY}


def test_no_part_of_a_report_is_left(legacy):
    """Of a report that is written piece by piece."""
    slow = """
import json, time
from tf_lossscale_codemods.reports import json_
def write_list(entries, stream):
    os.write(1, b"here")
    time.sleep(60)
import os
json_.write_list = write_list
sys.exit(main())
"""
    process = subprocess.Popen(
        [*program(slow), "migrate", "--quiet", "--report", "json:report.json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout.read(4) == b"here"
    assert len(os.listdir()) == 2
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGTERM
    assert os.listdir() == ["a.py"]


def test_a_signal_that_was_ignored_remains_ignored(legacy):
    """As `nohup` and background jobs of shells leave it."""
    process = subprocess.Popen(
        [*program(WAITS.format(seconds=0.5)), "migrate", "--write"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )
    assert process.stdout.read(4) == b"here"
    process.send_signal(signal.SIGHUP)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, b"")
    assert legacy.bytes_on_disk() == {"a.py": FINAL}
