"""SIGKILL at any moment of a `--write`: every file has its old or its new content."""

import os
import signal
import subprocess
import sys

import pytest
from command_line import FINAL, LEGACY, PROGRAM

FILES = 12

# A moment is the start or the end of a call of a C function (open, write, fsync, rename) while a
# file is replaced. The workers share the group of their parent: the whole group dies at once, as in
# a power cut.
MOMENTS = """
import os, signal
from tf_lossscale_codemods.files import atomic_write

def replace(path, old, new, kill_at, replace=atomic_write.replace):
    def count(frame, event, argument):
        nonlocal moment
        moment += event in ("c_call", "c_return")
        if moment == kill_at:
            os.killpg(0, signal.SIGKILL)
    moment = 0
    sys.setprofile(count)
    try:
        replace(path, old, new)
    finally:
        sys.setprofile(None)
"""
# Kills the replacement of a file at each of its moments, and prints what was left in the directory.
EACH_MOMENT = """
folder, = sys.argv[1:]
path = os.path.join(folder, "file.py")
killed, moment = True, 0
while killed:
    moment += 1
    for name in os.listdir(folder):
        os.unlink(os.path.join(folder, name))
    with open(path, "wb") as file:
        file.write(b"old" * 9999)
    child = os.fork()
    if not child:
        os.setpgid(0, 0)
        replace(path, b"old" * 9999, b"new" * 9999, moment)
        os._exit(0)
    killed = os.waitpid(child, 0)[1] == signal.SIGKILL
    with open(path, "rb") as file:
        found = file.read()
    content = {b"old" * 9999: "old", b"new" * 9999: "new"}.get(found, repr(found[:100]))
    print(content, len(os.listdir(folder)))
"""
# Kills the command while it replaces the sixth file.
IN_A_RUN = """
files = 0

def replace_and_kill(path, old, new):
    global files
    files += 1
    replace(path, old, new, 90 if files == 6 else -1)

atomic_write.replace = replace_and_kill
sys.exit(main())
"""


def run(program: str, *arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM.replace("sys.exit(main())", program), *arguments],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        check=False,
    )


@pytest.mark.slow
def test_a_file_is_whole_at_every_moment(tmp_path):
    process = run(MOMENTS + EACH_MOMENT, str(tmp_path))
    assert process.returncode == 0
    moments = process.stdout.split("\n")[:-1]
    assert set(moments) == {"old 1", "old 2", "new 1"}  # 2: with the temporary file
    assert len(moments) > 50


def padded(source: bytes, number: int) -> bytes:
    return source + b"".join(b"x%d = %d\n" % (n, number) for n in range(40))


def test_the_next_run_takes_up_what_a_kill_leaves(tmp_path):
    for number in range(FILES):
        (tmp_path / f"m{number}.py").write_bytes(padded(LEGACY, number))
    command = ("migrate", "--write", "--jobs", "2", str(tmp_path))
    assert run(MOMENTS + IN_A_RUN, *command).returncode == -signal.SIGKILL
    found = [(tmp_path / f"m{number}.py").read_bytes() for number in range(FILES)]
    assert sum(found[number] == padded(FINAL, number) for number in range(FILES)) == 5
    assert sum(found[number] == padded(LEGACY, number) for number in range(FILES)) == FILES - 5
    assert len(os.listdir(tmp_path)) == FILES + 1, "the temporary file is missing"
    dry = [argument for argument in command if argument != "--write"]
    assert run("sys.exit(main())", *dry).returncode == 1
    assert len(os.listdir(tmp_path)) == FILES + 1, "a dry run removes nothing"
    assert run("sys.exit(main())", *command).returncode == 0
    for number in range(FILES):
        assert (tmp_path / f"m{number}.py").read_bytes() == padded(FINAL, number)
    assert len(os.listdir(tmp_path)) == FILES, "a temporary file is left"
