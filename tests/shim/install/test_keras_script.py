"""An unmodified Keras script of TensorFlow 2.3 trains as it did there, run by `tf-lossscale run`.

The script is `examples/digits_keras.py`, whose run on TensorFlow 2.3 with the real classes is
recorded. On TensorFlow 2.3 to 2.8, where `run` leaves the originals in place, this test proves the
script and the trace. There, from 2.4 on, `optimizer.loss_scale()` raises a TypeError, so the script
reads the scale from the loss.
"""

import json
import os
from typing import Any, Dict, List

import pytest
from processes import REPOSITORY, run_python
from support import TF_VERSION as TF

EXAMPLES = os.path.join(REPOSITORY, "examples")
STEPS = 45  # the scale halves at the first five, doubles once and halves again
LOSS_TOLERANCE = 0.01  # relative: float16 kernels add up in another order on other versions

pytestmark = pytest.mark.skipif(TF < (2, 0), reason="the script is one for TensorFlow 2")


def legacy_script(folder: Any) -> str:
    """Writes the script, with a `Policy` object and, where it fails, without `loss_scale()`."""
    with open(os.path.join(EXAMPLES, "digits_keras.py")) as file:
        text = file.read()
    edits = [
        ('set_policy("mixed_float16")', 'set_policy(mixed_precision.Policy("mixed_float16"))', 1),
    ]
    if (2, 4) <= TF < (2, 9):
        edits.append(("optimizer.loss_scale()", "optimizer.get_scaled_loss(tf.constant(1.0))", 2))
    for old, new, times in edits:
        assert text.count(old) == times
        text = text.replace(old, new)
    script = folder / "script.py"
    script.write_text(text)
    return str(script)


def run(script: str, *arguments: str) -> Any:
    return run_python("-m", "tf_lossscale", script, *arguments, path=[EXAMPLES])


def recorded_steps() -> List[Dict[str, Any]]:
    """The steps of the record, with what the script prints: the scale after each step."""
    with open(os.path.join(EXAMPLES, "traces", "digits_keras.jsonl")) as file:
        header, _, *lines = map(json.loads, file)
    assert header["tensorflow"] == "2.3.4"
    return [
        {
            "step": line["step"],
            "loss": line["loss"],
            "loss_scale": after["scale"],
            "skipped": not line["applied"],
        }
        for line, after in zip(lines[:STEPS], lines[1:])
    ]


def test_the_script_gives_the_recorded_trace(tmp_path: Any):
    done = run(legacy_script(tmp_path), "--steps", str(STEPS))
    assert done.returncode == 0, done.stderr[-4000:]
    steps = [json.loads(line) for line in done.stdout.splitlines()]
    expected = recorded_steps()
    assert len({step["loss_scale"] for step in expected}) > 3
    assert len(steps) == len(expected) == STEPS
    for step, then in zip(steps, expected):
        for key in ("step", "loss_scale", "skipped"):
            assert step[key] == then[key], (step, then)
        assert step["loss"] == pytest.approx(then["loss"], rel=LOSS_TOLERANCE), (step, then)
