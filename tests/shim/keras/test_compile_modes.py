"""`compile` and `fit` of Keras 2 train with our class as with the original, in every mode.

In graph mode `compile` of TensorFlow 2.11 to 2.15 converts a newer optimizer to a legacy one, with
`convert_to_legacy_optimizer`.
"""

from typing import Any, Dict, List

import processes
import pytest
import recorded

PROGRAM = "keras/programs/compile_modes.py"
KINDS: List[str] = [kind.name for kind in recorded.kinds() if kind.name != "keras3"]
ORIGINALS = [subject for subject in recorded.originals() if subject.kind.name in KINDS]
MODES = ("eager", "run_eagerly", "graph", "v1")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not KINDS, reason="Keras 3 has one mode only"),
    pytest.mark.by_value("results"),
]


@pytest.fixture(scope="module", params=MODES)
def results(request: Any) -> Dict[str, Any]:
    # The originals first: once our class is used, Keras makes our class from files.
    subjects = [str(subject) for subject in ORIGINALS]
    subjects += [f"ours-{api}-{kind}" for api in ("final", "experimental") for kind in KINDS]
    found = processes.run_program(PROGRAM, request.param, *subjects, timeout=600, keras=True)
    return {"mode": request.param, **found}


def is_not_converted(result: Any) -> bool:
    """TensorFlow 2.11 looks for the learning rate of the loss-scale optimizer, which has none."""
    return recorded.TF < (2, 12) and "has no attribute '_learning_rate'" in str(result)


def as_before_2_2(case: str, result: Dict[str, Any]) -> Dict[str, Any]:
    """What a skipped step does not change on 1.15, where the original does not count it (K6)."""
    if recorded.TF >= (2, 2):
        return result
    left_out = {"weights"} if "schedule" in case else set()
    kept = {key: value for key, value in result.items() if key not in left_out}
    return {**kept, "scale, iterations": result["scale, iterations"][:1]}


@pytest.mark.parametrize("original", ORIGINALS, ids=str)
def test_it_trains_as_the_original(original: Any, results: Dict[str, Any]):
    theirs, ours = results[str(original)], results[str(original.counterpart())]
    assert set(ours) == set(theirs)
    for case, expected in theirs.items():
        if is_not_converted(expected):
            assert ours[case]["is of the class"], case
        elif isinstance(expected, str):
            assert original.kind.name == "new", expected
            assert ours[case] == expected, case
        else:
            assert expected["is of the class"], case
            assert as_before_2_2(case, ours[case]) == as_before_2_2(case, expected), case


@pytest.mark.parametrize("kind", KINDS)
def test_the_experimental_class_trains_as_the_final_one(kind: str, results: Dict[str, Any]):
    final, experimental = results[f"ours-final-{kind}"], results[f"ours-experimental-{kind}"]
    assert experimental == final
    trained = [outcome for outcome in final.values() if not isinstance(outcome, str)]
    # Without eager execution, but with the behavior of TensorFlow 2, Keras refuses newer ones.
    assert bool(trained) is not (kind == "new" and results["mode"] == "graph")
    converted = kind == "new" and results["mode"] == "v1"
    for variable in trained:
        assert variable["is of the class"]
        assert variable["is the one given"] is not converted
        # Eight steps: two that overflow, and three times two finite ones.
        assert variable["scale, iterations"] == [256.0, 8.0]
