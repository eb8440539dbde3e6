"""The child process that reads the files: whatever it does is status 2 and one line."""

import os
import signal
import subprocess
import sys
import time

import pytest
import recorded_files
from processes import REPOSITORY

from tf_lossscale._checkpoint_command import isolated

pytestmark = pytest.mark.usefixtures("real_child")

PATTERNS = {
    "h5py": "2.15.1/keras_final.*/model_dyn_h5",
    "tensorflow": "2.15.1/keras_final.LossScaleOptimizer/dynamic_adam",
}
READY = "print('ready', flush=True); "
ENDS = {
    "crash": (READY + "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "crashed"),
    "abort": (READY + "import os; os.abort()", "crashed"),
    "exit": (READY + "import os; os._exit(1)", "crashed"),
    "silence": (READY, "crashed"),
    "noise": (READY + "print('hello')", "crashed"),
    "deep": (READY + "print('[' * 100000)", "crashed"),
    "end": (READY + "import time; time.sleep(600)", "more than"),
    "crash at the start": ("import os; os.abort()", "`import h5py` failed"),
}


def path_of(library):
    return recorded_files.file_of(PATTERNS[library])


@pytest.mark.parametrize("what", sorted(ENDS))
def test_however_the_child_ends(what, monkeypatch, refused):
    program, words = ENDS[what]
    monkeypatch.setattr(isolated, "_PROGRAM", program)
    if what == "end":
        monkeypatch.setattr(isolated, "SECONDS", 1)
        monkeypatch.setattr(isolated, "_START_SECONDS", 1)
    refused(("inspect", path_of("h5py")), words)


WRITES_FOR_LONG = """
import json, os, sys, time

sys.path[:] = json.loads(sys.argv[1])
from tf_lossscale._checkpoint_command import isolated

class Library:
    OTHER_ERRORS = ()

    def convert(self, place, to, control_flow, renames, written):
        os.makedirs(os.path.dirname(written))
        with open(os.path.join(os.path.dirname(written), "pid"), "w") as file:
            file.write(str(os.getpid()))
        print("writes", file=sys.stderr, flush=True)
        time.sleep(600)

isolated._library = lambda place: Library()
isolated.main(sys.argv[2], int(sys.argv[3]))
"""
CONVERTS = """
import sys

from tf_lossscale._checkpoint_command import isolated
from tf_lossscale._cli.main import main

isolated._PROGRAM = sys.argv[1]
sys.exit(main(["checkpoint", "convert", *sys.argv[2:], "--to", "v1"]))
"""


def wait_until(condition):
    ends = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.02)


@pytest.mark.sampled(4)
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux ends the child")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT", "SIGKILL"])
def test_a_conversion_that_is_ended_leaves_no_process(name, tmp_path, checkpoint):
    number = getattr(signal, name)
    folder = recorded_files.folders("1.15.5/contrib.LossScaleOptimizer/exponential_adam_refvars")[0]
    source, new = os.path.join(folder, "saver", "model"), str(tmp_path / "new")
    process = subprocess.Popen(
        [sys.executable, "-c", CONVERTS, WRITES_FOR_LONG, source, new],
        stderr=subprocess.DEVNULL,
        env=dict(os.environ, PYTHONPATH=REPOSITORY),
    )
    pid = tmp_path / ".new.tf-lossscale-copy" / "copy" / "pid"
    wait_until(lambda: pid.exists() and pid.read_text())
    child = pid.read_text()
    process.send_signal(number)
    process.wait(60)
    assert process.returncode == (130 if name == "SIGINT" else -number)
    wait_until(lambda: not os.path.exists(f"/proc/{child}"))
    if name != "SIGKILL":
        assert os.listdir(str(tmp_path)) == []
        return
    assert os.listdir(str(tmp_path)) == [".new.tf-lossscale-copy"]
    assert checkpoint("convert", source, new, "--to", "v1")[0] == 0
    assert not pid.parent.parent.exists()


LIMITS = {
    "memory": ("data = bytes(2**34); data[0]", "bytes of memory"),
    "processor": ("\n    while True: pass", "seconds"),
    "time": ("import time; time.sleep(600)", "seconds"),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("library", "limit"),
    [*(("h5py", kind_of_limit) for kind_of_limit in sorted(LIMITS)), ("tensorflow", "memory")],
)
def test_the_child_has_limits(library, limit, monkeypatch, refused):
    """The real child, made to read in a way that does not end.

    Only the limit of the memory depends on the library, as it comes on top of what that needs.
    """
    body, words = LIMITS[limit]
    folder, module = {
        "h5py": ("_checkpoint", "keras_files"),
        "tensorflow": ("_checkpoint_command", "tensorflow_requests"),
    }[library]
    program = (
        "import json, sys; sys.path[:] = json.loads(sys.argv[1])\n"
        "from tf_lossscale._checkpoint_command import isolated\n"
        f"from tf_lossscale.{folder} import {module}\n"
        f"def read(place): {body}\n"
        f"{module}.read = read\n"
        "request = json.loads(sys.argv[2])\n"
        "request['seconds'] = 1\n"
        "isolated.child(json.dumps(request))\n"
    )
    monkeypatch.setattr(isolated, "_PROGRAM", program)
    refused(("inspect", path_of(library)), words)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("raise ModuleNotFoundError('no', name='tensorflow')", "pip install"),
        ("import os; os._exit(1)", "`import tensorflow` failed"),
    ],
)
def test_without_tensorflow(content, words, tmp_path, monkeypatch, checkpoint, refused):
    """Files of Keras need none."""
    (tmp_path / "tensorflow.py").write_text(content)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    status, out, err = checkpoint("inspect", path_of("tensorflow"))
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert words in err
    assert checkpoint("inspect", path_of("h5py"))[0] == 1
    for form in ("keras", "weights_h5"):
        path = recorded_files.file_of(f"2.21.0/keras3.*/model_{form}")
        assert checkpoint("inspect", path)[0] == 0
    new = tmp_path / "new" / "model"
    refused(("convert", path_of("tensorflow"), new, "--to", "keras"), words)
    assert not new.parent.exists()
