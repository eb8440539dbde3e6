"""Starts Python processes in three ways; each uses a legacy name. Prints their output."""

import json
import multiprocessing
import os
import subprocess
import sys


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
    said["subprocess"] = (
        subprocess.check_output(
            [
                sys.executable,
                "-c",
                "import tensorflow as tf\n"
                "print(tf.contrib.mixed_precision.LossScaleManager.__name__)",
            ],
            universal_newlines=True,
        )
        .strip()
        .splitlines()[-1]
    )
    read_end, write_end = os.pipe()
    if os.fork() == 0:
        from tensorflow.contrib.mixed_precision import LossScaleManager

        os.write(write_end, LossScaleManager.__name__.encode())
        os._exit(0)
    os.wait()
    said["fork"] = os.read(read_end, 100).decode()
    print(json.dumps(said))


if __name__ == "__main__":
    main()
