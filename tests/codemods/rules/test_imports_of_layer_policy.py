"""Imports of `get_layer_policy`, which nothing replaces: safe only if the import is removed."""

import pytest
from tf_lossscale_codemods.engine.transform import transform
from tf_lossscale_codemods.model import Options, Safety

IMPORT = "from tensorflow.keras.mixed_precision.experimental import get_layer_policy"
CALL = "print(get_layer_policy(layer))\n"
STAYS = {
    "unread": IMPORT + "\n",
    "in a function": f"def f():\n    {IMPORT}\n",
    "__all__": IMPORT + "\n__all__ = ['get_layer_policy']\n",
    "__all__ beside a call": IMPORT + "\n__all__ = ['get_layer_policy']\n" + CALL,
    "the same name": IMPORT + " as get_layer_policy\n" + CALL,
}
TARGETS = [Options(), Options(keras=3), Options(keras=None)]


@pytest.mark.parametrize("options", TARGETS, ids=["2", "3", "both"])
@pytest.mark.parametrize("form", STAYS)
def test_import_that_stays_is_manual(form, options):
    result = transform(STAYS[form].encode(), options)
    assert IMPORT in result.source.decode()
    assert Safety.MANUAL in {one.outcome for one in result.findings}


@pytest.mark.parametrize("options", TARGETS, ids=["2", "3", "both"])
def test_import_that_only_calls_read_is_removed(options):
    result = transform(f"{IMPORT}\n{CALL}".encode(), options)
    assert result.source.decode().strip() == "print(layer.dtype_policy)"
    assert {one.outcome for one in result.findings} == {Safety.SAFE}
