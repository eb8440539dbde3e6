"""The public API is what version 1.0.0 promised: a name may be added here, none may be removed."""

import importlib
import re
from typing import Dict, Set

import pytest

import tf_lossscale
from tf_lossscale import _paths
from tf_lossscale._cli import main

SYMBOLS = """
contrib.mixed_precision: LossScaleManager FixedLossScaleManager
  ExponentialUpdateLossScaleManager LossScaleOptimizer
contrib.tpu tpu compat.v1.tpu: CrossShardOptimizer cross_replica_sum
train.experimental mixed_precision.experimental compat.v1.train.experimental
  compat.v1.mixed_precision.experimental compat.v1.mixed_precision:
  LossScale FixedLossScale DynamicLossScale
train.experimental compat.v1.train.experimental compat.v1.mixed_precision:
  MixedPrecisionLossScaleOptimizer enable_mixed_precision_graph_rewrite
  disable_mixed_precision_graph_rewrite
keras.mixed_precision.experimental: LossScaleOptimizer Policy set_policy global_policy
  get_layer_policy
keras.mixed_precision: LossScaleOptimizer Policy set_global_policy global_policy from_loss_scale
"""
"""The namespaces below `tf` and `tf_lossscale`, and the names that they hold."""

OWN: Dict[str, Set[str]] = {
    "": {"__version__", "accumulate", "install", "uninstall"},
    "recording": {"RecordingError", "start", "stop"},
    "checkpoints": {"Entry", "Report", "RestoreError", "restore"},
    "monitoring": {
        *("Monitor", "NonfiniteLayer", "StepCounts", "find_nonfinite", "find_nonfinite_layer"),
    },
}
"""The names that TensorFlow never had, by module."""

TOP = {
    *("checkpoints", "compat", "contrib", "keras", "mixed_precision", "monitoring", "recording"),
    *("tpu", "train"),
}
COMMANDS = {
    *("migrate", "rules", "explain"),
    *("run", "record", "show", "compare", "checkpoint", "doctor"),
}
MIGRATE = """
  --to --keras --write --check --unsafe --select --ignore --exclude --jobs --report --mark
  --allow-dirty --stdin-filename --statistics --color --no-settings --follow-links-outside
  --time-limit --size-limit -v
"""


def promised() -> Dict[str, Set[str]]:
    """The names in each namespace."""
    table: Dict[str, Set[str]] = {}
    for line in SYMBOLS.replace("\n  ", " ").strip().split("\n"):
        namespaces, _, names = line.partition(":")
        for namespace in namespaces.split():
            table.setdefault(namespace, set()).update(names.split())
    return table


def test_the_table_of_paths_is_what_was_promised():
    assert {namespace: set(names) for namespace, names in _paths.NAMESPACES.items()} == promised()


@pytest.mark.parametrize("module", OWN)
def test_modules_of_this_package_have_their_own_names(module: str):
    found = importlib.import_module(f"tf_lossscale.{module}".rstrip("."))
    assert set(found.__all__) == (OWN[module] | (TOP if not module else set()))


def test_every_promised_namespace_is_a_module():
    for namespace in promised():
        assert importlib.import_module("tf_lossscale." + namespace).__all__
    assert {namespace.partition(".")[0] for namespace in promised()} <= TOP
    assert tf_lossscale.__version__


def test_the_commands_are_what_was_promised():
    assert {*main.CODEMODS, *main.OTHERS} == COMMANDS


def test_the_options_of_migrate_are_still_there(capsys: pytest.CaptureFixture):
    assert main.main(["migrate", "--help"]) == 0
    shown = re.findall(r"(?<![\w-])--?[a-z][a-z-]*", capsys.readouterr().out)
    assert set(MIGRATE.split()) <= set(shown)
