"""Starts Python processes in three ways; prints whether each has the legacy names.

The first one uses a name, the others only find what would install it: importing takes seconds.
"""

import importlib.util
import json
import multiprocessing
import os
import subprocess
import sys


def loader():
    return type(importlib.util.find_spec("tensorflow").loader).__name__


def child(queue):
    from tensorflow.contrib.mixed_precision import LossScaleManager

    queue.put(LossScaleManager.__name__)


def main():
    said = {}
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=child, args=(queue,))
    process.start()
    said["spawn"] = queue.get(timeout=100)
    process.join()
    code = "import parent; print(parent.loader())"
    folder = os.path.dirname(os.path.abspath(__file__))
    said["subprocess"] = subprocess.check_output(
        [sys.executable, "-c", code], cwd=folder, universal_newlines=True
    ).strip()
    read_end, write_end = os.pipe()
    if os.fork() == 0:
        os.write(write_end, loader().encode())
        os._exit(0)
    os.wait()
    said["fork"] = os.read(read_end, 100).decode()
    print(json.dumps(said))


if __name__ == "__main__":
    main()
