"""Unmodified programs of Keras 2 end with the same weights on every Keras.

`programs/keras_2_user.py` uses the final class. It runs on the original classes where the installed
Keras is Keras 2, which proves the numbers here; after `install()` on Keras 3, whose own class lacks
the methods; and after `install(replace=True)` on Keras 2. Every number is exact: see there.
`programs/experimental_user.py` uses the experimental policy, which TensorFlow had up to 2.8.
"""

import os
from typing import Any, Dict, List

import pytest
import tensorflow as tf
from processes import SHIM, run_alone, run_program
from support import TF_VERSION as TF

KERAS_3 = TF >= (2, 16) and hasattr(tf.keras, "Operation")

KEPT = {"name": "mixed_float16", "is the one that was set": True, "is kept": True}
EXPERIMENTAL_ENDS: Dict[str, Dict[str, Any]] = {
    "dynamic": {"weight": 0.19140625, "scale": 2.0**40, "policy's": "DynamicLossScale", **KEPT},
    "fixed": {"weight": 0.0068359375, "scale": 512.0, "policy's": "FixedLossScale", **KEPT},
    "number": {
        "weight": 0.0078125,
        "scale": 256.0,
        "policy's": "FixedLossScale",
        "name": "mixed_float16",
    },
    "none": {"weight": 1.0, "scale": None, "policy's": None, "name": "mixed_float16"},
    "default": {
        "weight": 0.0070037841796875,
        "scale": 2.0**15,
        "policy's": "DynamicLossScale",
        **KEPT,
    },
}
for _ends in EXPERIMENTAL_ENDS.values():
    _ends["is scaled"] = _ends["scale"] is not None

CASES = [
    ("keep", "late"),
    ("replace", "late"),
    pytest.param("keep", "early", marks=pytest.mark.slow),
]

final = pytest.mark.skipif(TF < (2, 4), reason="the final class came with TensorFlow 2.4")
experimental = pytest.mark.skipif(TF < (2, 2), reason="`train_step` came with TensorFlow 2.2")

WEIGHT = 0.03662109375  # 1.0 after four steps; it stays 1.0 where float16 gradients become 0
ENDS: Dict[str, List[Any]] = {
    "asks": [WEIGHT, 4],
    "scales": [0.5, True, 2.0**15],
    "minimizes": [WEIGHT, 2.0**17],
    "wraps_a_fixed_one": [WEIGHT, True, 512.0],
    "only_fits": [WEIGHT, [2.0**15] * 4],
}


def ends_of(program: str, *mode: str) -> Any:
    """Runs a program, after an installation if there is a mode; returns what it prints last."""
    path = os.path.join(SHIM, "install", "programs", program)
    return run_program("install/programs/installed.py", *mode, path) if mode else run_program(path)


@final
def test_the_original_or_the_shim_in_its_place_trains_as_recorded():
    mode = ["keep"] if KERAS_3 else []
    assert ends_of("keras_2_user.py", *mode)["results"] == ENDS


@final
@pytest.mark.skipif(KERAS_3, reason="ours stands there without `replace`, too")
def test_replaced_classes_train_as_the_originals():
    assert ends_of("keras_2_user.py", "replace")["results"] == ENDS


@final
@pytest.mark.parametrize(("mode", "when"), CASES)
def test_compile_wraps_in_the_class_at_the_public_path_and_uninstall_restores_it(
    mode: str, when: str
):
    run = run_alone if when == "early" else run_program
    found = run("install/programs/compile_wraps.py", mode, when)
    ours = KERAS_3 or mode == "replace"
    turns = {"before": False, "during": ours, "after": False, "again": ours}
    for turn, expected in turns.items():
        if turn in found:
            assert found[turn]["path"] is expected, turn
            assert set(found[turn]["made"]) == {expected}, turn
            assert set(found[turn]["instances"]) == {True}, turn
            assert len(found[turn]["made"]) == (1 if KERAS_3 else 2), turn  # eager mode, graphs
    if when == "late":
        assert found["restored"]
        assert found["finders"] == []


@experimental
def test_experimental_policies_scale_as_recorded():
    mode = ["keep"] if TF >= (2, 9) else []
    assert ends_of("experimental_user.py", *mode) == EXPERIMENTAL_ENDS


@experimental
@pytest.mark.skipif(TF >= (2, 9), reason="there is nothing to replace")
def test_replaced_experimental_policies_scale_as_recorded():
    assert ends_of("experimental_user.py", "replace") == EXPERIMENTAL_ENDS
