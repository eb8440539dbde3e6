"""Inspects damaged variants of a file of Keras; `test_keras_files.py` runs it.

A process without TensorFlow loads h5py once and is forked for each variant, in place of a new
Python for each; the code that reads is that of the command. Prints what was found as JSON.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter

from damage import damages

from tf_lossscale._checkpoint import command, isolated, keras_files


def forked(command_, **options):
    """Takes the place of `subprocess.run`: the same child, without the start of a Python."""
    read, write = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(read)
        os.dup2(write, 1)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        isolated.child(*command_[-3:])
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as file:
        answer = file.read()
    _, status = os.waitpid(process, 0)
    code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
    return subprocess.CompletedProcess(command_, code, answer)


def inspect(path):
    """The status, stdout and stderr of `inspect`."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        sys.stdout, sys.stderr = out, err
        try:
            status = command.main(["inspect", path, "--json"], "tool")
        finally:
            sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
        out.seek(0)
        err.seek(0)
        return status, out.read(), err.read()


def main(source, size):
    keras_files.import_hdf5()
    isolated.subprocess.run = forked
    with open(source, "rb") as file:
        contents = file.read()
    found, wrong, crashes = Counter(), [], 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model" + os.path.splitext(source)[1])
        with open(path, "wb") as file:
            file.write(contents)
        right = inspect(path)
        variants = damages(contents, size, os.path.basename(source))
        for what, damaged in variants:
            with open(path, "wb") as file:
                file.write(damaged)
            status, out, err = got = inspect(path)
            crashes += "crashes" in err
            if status == 2:
                kind = "refused"
                one_line = err.count("\n") == 1 and err.endswith("\n")
                good = not out and one_line and path in err and "cannot be read: " not in err
            elif got == right:
                kind, good = "right", True
            else:
                kind, good = "other", not err and out.startswith("{")
            found[f"{kind} {what.split()[0]}"] += 1
            if not good:
                wrong.append([what, status, out[-300:], err[-300:]])
    print(json.dumps({"found": found, "wrong": wrong, "status": right[0], "crashes": crashes}))


if __name__ == "__main__":
    main(*sys.argv[1:])
