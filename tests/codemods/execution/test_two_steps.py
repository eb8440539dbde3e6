"""`migrate` after `migrate --to shim` ends where `migrate` alone does, on the random programs.

That the result of one step does what the original does is proved by `tests/shim/programs`.
"""

import os

import pytest
from tf_lossscale_codemods.model import Options
from two_steps import both_ways, left, meaning, names_to_migrate_on_shim

from .bundle import COUNT, programs

EACH = {"small": 17, "long": 1}[os.environ.get("TFLS_TEST_SIZE", "small")]
CASES = [one for one in list(programs(COUNT))[::EACH] if one.family != "cross_shard"]
"""The shim's cross-shard optimizer stays: TensorFlow's needs a TPU."""


@pytest.mark.parametrize("keras", [2, 3])
@pytest.mark.parametrize("program", CASES, ids=lambda program: program.name)
def test_two_steps_end_where_one_does(program, keras):
    ways = both_ways(program.source.encode(), Options(keras=keras))
    if b"tfls.keras.mixed_precision.LossScaleOptimizer" not in ways.shim.source:
        assert meaning(ways.second.source) == meaning(ways.direct.source)
    assert not left(ways.second) - left(ways.direct)
    if names_to_migrate_on_shim(ways.second.source):
        assert ways.second.findings, "left on the shim without a word"
