"""Runs the command on many trees, each in a process of its own, and measures them.

`python attacked.py < cases.json` prints, for each case, the exit status, the seconds of processor
time, the megabytes of the largest process, and the end of stderr. It is a program of its own, so
that the memory of the tests does not count: a fork begins with that of its parent.
"""

import json
import os
import resource
import sys
import time

import from_source  # noqa: F401 - makes the package importable
from tf_lossscale_codemods.cli.command import main
from tf_lossscale_codemods.project import evidence
from tf_lossscale_codemods.run.process_file import load

SECONDS = 60
"""Processor time after which the system ends a process."""


def run(folder: str, arguments: list) -> int:
    """The exit status of the command in a folder; in a process that ends with it."""
    os.chdir(folder)
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    for name, stream in (("out", sys.stdout), ("err", sys.stderr)):
        with open(f"{folder}.{name}", "wb") as file:
            os.dup2(file.fileno(), stream.fileno())
    evidence.version_of = {"tensorflow": "2.15.1"}.get
    status = main(["migrate", "--jobs", "1", "--no-settings", *arguments])
    sys.stdout.flush()
    sys.stderr.flush()
    return status


def measured(folder: str, arguments: list) -> dict:
    began = time.monotonic()
    process = os.fork()
    if not process:
        status = 99  # a traceback is in stderr
        try:
            status = run(folder, arguments)
        finally:
            os._exit(status)
    _, ended, used = os.wait4(process, 0)
    with open(f"{folder}.err", "rb") as file:
        err = file.read()[-2000:].decode("utf-8", "replace")
    return {
        "status": os.waitstatus_to_exitcode(ended),
        "seconds": used.ru_utime + used.ru_stime,
        "wall": time.monotonic() - began,
        "megabytes": used.ru_maxrss / 1024,
        "err": err,
    }


if __name__ == "__main__":
    load()
    cases = json.load(sys.stdin)
    results = {name: measured(*case) for name, case in cases.items()}
    json.dump(results, sys.stdout)
