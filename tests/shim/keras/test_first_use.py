"""Each Keras makes our class from a file once our class is used, in either order of imports."""

import importlib.util
from typing import Any, Dict, List

import processes
import pytest
import recorded

PROGRAM = "keras/programs/first_use.py"


def names() -> List[str]:
    """The Kerases of this environment, `tf.keras` as it is called where there is no other name."""
    if recorded.TF < (2, 16):
        return ["tf.keras"]
    return [name for name in ("keras", "tf_keras") if importlib.util.find_spec(name)]


@pytest.mark.skipif(recorded.TF < (2, 4), reason="no original has this form of configuration")
@pytest.mark.parametrize("how", ["plain", "installed"])
def test_every_keras_reads_ours(how: str):
    result: Dict[str, Any] = processes.run_program(PROGRAM, how, *names())
    assert set(result) == set(names())
    for name, found in result.items():
        assert found["ours"], (name, found)
        assert found["scale"] == 64.0
        if how == "installed":
            assert not found["uninstalled"]
            assert found["again"]
        # The package has the loader that it has without us.
        assert found["loader"] in ("NoneType", "SourceFileLoader"), (name, found)
    if len(result) > 1:
        assert not all(outcome["loaded"] for outcome in result.values()), "one comes after ours"
