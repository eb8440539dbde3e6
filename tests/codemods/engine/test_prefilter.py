"""`-v`: why a file that holds a legacy name is left unchanged."""

import pytest
from tf_lossscale_codemods.engine.transform import transform
from tf_lossscale_codemods.model import Options


@pytest.mark.parametrize(
    "source",
    [
        "from apex.amp import LossScaleOptimizer",
        "def step(opt, loss):\n    return opt.get_scaled_loss(loss)",
    ],
)
def test_note_where_there_is_nothing_to_migrate(source):
    note = transform(source.encode() + b"\n", Options()).note
    assert note.startswith("no symbol to migrate in it: ")


def test_note_of_rules_that_are_not_selected():
    source = b"from tensorflow.contrib.mixed_precision import LossScaleOptimizer\n"
    assert "selected rules" in transform(source, Options(select=("LS5",))).note


def test_note_of_silenced_findings():
    source = b"""\
from tensorflow.contrib.mixed_precision import LossScaleOptimizer  # lossscale: ignore[LS1] later
"""
    result = transform(source, Options())
    assert not result.findings
    assert result.note == "comments silence all findings in it"


def test_one_finding_at_one_place():
    source = b"""\
import tensorflow as tf

if type(opt).__name__ in ["LossScaleOptimizer", "LossScaleOptimizerV1"]:
    opt = opt.inner_optimizer
"""
    (finding,) = transform(source, Options()).findings
    assert finding.code == "LS906"
