"""A program of Keras 2 means the same on every Keras, however its names get to our classes.

`programs/one_meaning.py` holds the small programs. They run with TensorFlow's own classes where it
has all of them, which proves the numbers here; and with ours, by each way to them, everywhere.
"""

import json
import os
from typing import Any, Dict, List

import pytest
import tensorflow as tf
from processes import LONG, SHIM, run_program, run_python
from support import TF_VERSION as TF

pytestmark = pytest.mark.skipif(TF < (2, 2), reason="`train_step` came with TensorFlow 2.2")

KERAS_3 = hasattr(tf.keras, "Operation")
PROGRAM = os.path.join("install", "programs", "one_meaning.py")
INSTALLED = os.path.join("install", "programs", "installed.py")
WAYS = ["import", "install", "replace", "run"]

EXPERIMENTAL: Dict[str, Any] = {
    # The weight, whether an infinity is skipped, the loss scale, whether the optimizer is of the
    # experimental class, the loss scale of the policy, and whether the policy that was set is the
    # global one, and that of a layer.
    "default": [0.3712158203125, True, 2.0**14, True, "DynamicLossScale", True, True],
    "dynamic": [0.3712158203125, True, 2.0**14, True, "DynamicLossScale", True, True],
    "number": [0.40625, False, 128.0, True, "FixedLossScale", True, True],
    "none": [1.0, False, None, False, None, True, True],
    "fixed": [0.359375, False, 256.0, True, "FixedLossScale", True, True],
    "grows": [0.3671875, True, 512.0, True, "DynamicLossScale", True, True],
    "float32": [0.371307373046875, False, None, False, None, True, True],
    "float32 scaled": [0.371307373046875, False, 8.0, True, "FixedLossScale", True, True],
    "float32 dynamic": [0.371307373046875, True, 2.0**14, True, "DynamicLossScale", True, True],
    "DoesNotScale": [0.371337890625, 3],
    "Scales": [0.625, 3],
    "ScalesByHand": [0.40625, 3],
    "loop": ["not finite", 128.0, 3],
    "twice": [True, 0.40625, 0.40625, 128.0],
    "loaded": [0.4375, 128.0, 0.19140625],
    "its own": [0.375, True, 512.0],
    "built before": [128.0, None],
}
FINAL: Dict[str, Any] = {
    "fit, name": [0.3712158203125, 2.0**15, True, True],
    "fit, policy": [0.3712158203125, 2.0**15, True, True],
    "DoesNotScale": [0.371337890625, 3],
    "Scales": [0.625, 3],
    "ScalesByHand": [0.3712158203125, 3],
    "loop": [0.5166015625, 2.0**14, 3],
    "twice": [True, 0.3712158203125, 0.3712158203125, 2.0**15],
    "loaded": [0.4375, 2.0**15, 0.19140625],
    "asks": 0.3712158203125,
    "its own": [0.375, True, 512.0],
    "built before": [2.0**15, None],
}
EXPECTED = {"experimental": EXPERIMENTAL, "final": FINAL}
POLICIES = list(EXPERIMENTAL)[: list(EXPERIMENTAL).index("DoesNotScale")]
SOME_POLICIES = ["default", "number", "float32 dynamic"]
"""Enough to see whose classes a way leads to; `original` and `import` run all of them."""


def run_some(way: str, programs: str) -> bool:
    return programs == "experimental" and way not in ("original", "import") and not LONG


def run(way: str, programs: str, folder: Any) -> Any:
    if way == "original":
        return run_program(PROGRAM, programs)
    if way == "import":
        return run_program(imported(folder), programs)
    path = os.path.join(SHIM, PROGRAM)
    names = SOME_POLICIES if run_some(way, programs) else []
    if way == "run":
        done = run_python("-m", "tf_lossscale", path, programs, *names)
        assert done.returncode == 0, done.stderr[-4000:]
        return json.loads(done.stdout.strip().splitlines()[-1])
    return run_program(INSTALLED, "keep" if way == "install" else way, path, programs, *names)


def imported(folder: Any) -> str:
    """The program as `migrate --to shim` writes it: each legacy name has `tfls` for `tf`."""
    with open(os.path.join(SHIM, PROGRAM)) as file:
        text = file.read()
    head = "import tensorflow as tf\n"
    assert text.count(head) == 1
    assert text.count("tf.keras.mixed_precision") == 3
    text = text.replace("tf.keras.mixed_precision", "tfls.keras.mixed_precision")
    path = folder / "one_meaning_imported.py"
    path.write_text(text.replace(head, head + "import tf_lossscale as tfls\n"))
    return str(path)


def expected(way: str, programs: str) -> Dict[str, Any]:
    ends = dict(EXPECTED[programs])
    if run_some(way, programs):
        for name in set(POLICIES) - set(SOME_POLICIES):
            del ends[name]
    keeps_original = not KERAS_3 and way in ("original", "install", "run")
    if programs == "final" and (2, 11) <= TF < (2, 12) and keeps_original:
        ends["loaded"] = "cannot be saved"
    return ends


def originals() -> List[str]:
    """The programs whose names TensorFlow has, with the methods of Keras 2."""
    final = ["final"] if TF >= (2, 4) and not KERAS_3 else []
    return [*final, *(["experimental"] if TF < (2, 9) else [])]


@pytest.mark.parametrize("programs", ["experimental", "final"])
def test_originals_end_as_recorded(programs: str, tmp_path: Any):
    if programs not in originals():
        pytest.skip("this TensorFlow lacks one of the names")
    assert run("original", programs, tmp_path) == expected("original", programs)


@pytest.mark.sampled(2, each="way")
@pytest.mark.parametrize(
    "way", [pytest.param(way, marks=pytest.mark.slow) if way == "run" else way for way in WAYS]
)
@pytest.mark.parametrize("programs", ["experimental", "final"])
def test_every_way_to_our_classes_ends_like_the_originals(programs: str, way: str, tmp_path: Any):
    if programs == "final" and TF < (2, 4) and way != "import":
        pytest.skip("install() adds no names that came later")
    if way == "install" and programs in originals() and not LONG:
        pytest.skip("install() adds none of the names, and `run` does the same")
    assert run(way, programs, tmp_path) == expected(way, programs)
