"""Keras's own `isinstance` checks recognize our classes, in graph mode, too.

From TensorFlow 2.11 on Keras has two loss-scale classes, and looks for either of them by name: in
graph-mode `compile` and `fit`, in `convert_to_legacy_optimizer` and in `model_to_estimator`.
"""

from typing import Any, Dict, List

import processes
import pytest
import recorded

PROGRAM = "keras/programs/graph_keras.py"

KINDS: List[str] = [kind.name for kind in recorded.kinds() if kind.name != "keras3"]
TWO_CLASSES = recorded.TF >= (2, 11) and bool(KINDS)

pytestmark = pytest.mark.skipif(not TWO_CLASSES, reason="Keras has one such class, or Keras 3")


@pytest.fixture(scope="module")
def results() -> Dict[str, Any]:
    # The originals first: once our class is used, Keras makes our class from files.
    subjects = [f"{who}-final-{kind}" for who in ("original", "ours") for kind in KINDS]
    found: Dict[str, Any] = processes.run_program(PROGRAM, *subjects, timeout=300)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_it_trains_as_the_original(kind: str, results: Dict[str, Any]):
    theirs, ours = results[f"original-final-{kind}"], results[f"ours-final-{kind}"]
    assert set(ours) == set(theirs)
    for what, their in theirs.items():
        own = ours[what]
        if kind == "new" and what == "fit":  # Keras wants a legacy optimizer there
            for error in (own, their):
                assert error.startswith('ValueError: "optimizer" must be an instance of'), error
            continue
        if isinstance(their, str):
            # On 2.11 the original over a new-style optimizer fails in both; ours is converted.
            assert (recorded.TF, kind) == ((2, 11), "new")
            assert own["weight"] == 0.75 if what == "estimator" else own["ours"], what
            continue
        assert not their.pop("ours", False), what
        if what != "estimator":
            assert own.pop("ours"), what
        assert own == their, what
        assert own.get("weight", 0.75) == 0.75  # 1 without scaling
    assert set(theirs) >= ({"convert"} if kind == "new" else {"fit"})
    if recorded.TF < (2, 16):
        assert "estimator" in theirs
