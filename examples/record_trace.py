"""Records an example step by step, on the TensorFlow that still has the original classes.

    python examples/record_trace.py digits_graph     # with TensorFlow 1.15.5, Python 3.7
    python examples/record_trace.py digits_keras     # with TensorFlow 2.3.4, Python 3.8

writes `examples/traces/NAME.jsonl`, as `tf-lossscale record` does. Everything that could make
a run differ is fixed (weights, order of batches), so a second recording differs in the last digits
of the loss at most.
"""

import os
import runpy
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
RECORDED_WITH = {"digits_graph": "1.15.5", "digits_keras": "2.3.4"}


def main(name):
    import tensorflow as tf

    import tf_lossscale as tfls

    if tf.__version__ != RECORDED_WITH[name]:
        sys.exit(
            f"{name} is recorded with the real classes of TensorFlow {RECORDED_WITH[name]}, "
            f"this is {tf.__version__}"
        )
    tfls.recording.start(os.path.join(HERE, "traces", name + ".jsonl"), overwrite=True)
    sys.argv = [name + ".py"]
    runpy.run_path(os.path.join(HERE, name + ".py"), run_name="__main__")
    tfls.recording.stop()


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in RECORDED_WITH:
        sys.exit("usage: record_trace.py " + "|".join(sorted(RECORDED_WITH)))
    main(sys.argv[1])
