"""Records an example step by step, on the TensorFlow that still has the original classes.

    python examples/record_trace.py digits_graph     # with TensorFlow 1.15.5, Python 3.7
    python examples/record_trace.py digits_keras     # with TensorFlow 2.3.4, Python 3.8

writes `examples/traces/NAME.json`. Everything that could make a run differ is fixed (weights, order
of batches), so a second recording differs in the last digits of the loss at most.
"""

import json
import os
import platform
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
RECORDED_WITH = {"digits_graph": "1.15.5", "digits_keras": "2.3.4"}


def main(name):
    import tensorflow as tf

    if tf.__version__ != RECORDED_WITH[name]:
        sys.exit(
            f"{name} is recorded with the real classes of TensorFlow {RECORDED_WITH[name]}, "
            f"this is {tf.__version__}"
        )
    lines = subprocess.check_output(
        [sys.executable, os.path.join(HERE, name + ".py")], universal_newlines=True
    )
    trace = {
        "example": name,
        "tensorflow": tf.__version__,
        "python": platform.python_version(),
        "steps": [json.loads(line) for line in lines.splitlines()],
    }
    path = os.path.join(HERE, "traces", name + ".json")
    with open(path, "w") as out:
        json.dump(trace, out, indent=1, sort_keys=True)
        out.write("\n")
    print(
        "{}: {} steps, {} skipped".format(
            path, len(trace["steps"]), sum(step["skipped"] for step in trace["steps"])
        )
    )


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in RECORDED_WITH:
        sys.exit("usage: record_trace.py " + "|".join(sorted(RECORDED_WITH)))
    main(sys.argv[1])
