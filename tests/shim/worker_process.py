"""Runs a program as one worker of a cluster: `worker_process.py PROGRAM ARGUMENT...`.

The process ends without the interpreter's own clean-up, and only when the other workers are done,
too. A worker that leaves early cannot answer the others any more; and TensorFlow 2.8 at times
aborts ("terminate called without an active exception") while a process with a gRPC server is
cleaned up.

`TFLS_TEST_BARRIER` has the two ends of a pipe that all workers inherit. Each closes its end for
writing when it is done; reading then ends when all have, a worker that was killed included.
"""

import os
import runpy
import sys
import traceback


def run(path: str) -> int:
    """Runs the program at `path` and returns its exit status."""
    sys.argv = sys.argv[1:]
    sys.path[0] = os.path.dirname(os.path.abspath(path))
    try:
        runpy.run_path(path, run_name="__main__")
    except SystemExit as error:
        if error.code is None or isinstance(error.code, int):
            return error.code or 0
        print(error.code, file=sys.stderr)
        return 1
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    reading, writing = map(int, os.environ["TFLS_TEST_BARRIER"].split(","))
    status = run(sys.argv[1])
    sys.stdout.flush()
    sys.stderr.flush()
    os.close(writing)
    if status == 0:
        os.read(reading, 1)
    os._exit(status)
