"""Names that a module of the shim lacks, against the modules themselves."""

import importlib

import pytest
from tf_lossscale_codemods.resolve.legacy_symbols import is_absent_from_shim

from tf_lossscale._paths import NAMESPACES


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_a_module_of_the_shim_has_its_names_and_no_other(namespace):
    module = importlib.import_module(f"tf_lossscale.{namespace}")
    for name in [*module.__all__, "__dict__"]:
        assert not is_absent_from_shim(f"{module.__name__}.{name}")
    is_final = namespace == "keras.mixed_precision"  # each Keras has other names there
    assert is_absent_from_shim(f"{module.__name__}.abc") is not is_final


@pytest.mark.parametrize(
    "path",
    [
        "tf_lossscale.abc",
        "tf_lossscale.contrib.mixed_precision",
        "tf_lossscale.contrib.mixed_precision.LossScaleManager.abc",
        "tensorflow.contrib.mixed_precision.abc",
        "contrib.mixed_precision.abc",
    ],
)
def test_what_is_no_name_in_such_a_module(path):
    assert not is_absent_from_shim(path)
