"""The public API is what version 1.0.0 promised: a name may be added here, none may be removed."""

import importlib
import re
from typing import Dict, List, Set, Tuple

import pytest

import tf_lossscale
from tf_lossscale import _paths
from tf_lossscale._cli import main

LOSS_SCALES = (
    "train.experimental",
    "mixed_precision.experimental",
    "compat.v1.train.experimental",
    "compat.v1.mixed_precision.experimental",
    "compat.v1.mixed_precision",
)
V1 = ("train.experimental", "compat.v1.train.experimental", "compat.v1.mixed_precision")

SYMBOLS: List[Tuple[Tuple[str, ...], Tuple[str, ...]]] = [
    (
        (
            "LossScaleManager",
            "FixedLossScaleManager",
            "ExponentialUpdateLossScaleManager",
            "LossScaleOptimizer",
        ),
        ("contrib.mixed_precision",),
    ),
    (
        ("CrossShardOptimizer", "cross_replica_sum"),
        ("contrib.tpu", "tpu", "compat.v1.tpu"),
    ),
    (("LossScale", "FixedLossScale", "DynamicLossScale"), LOSS_SCALES),
    (
        (
            "MixedPrecisionLossScaleOptimizer",
            "enable_mixed_precision_graph_rewrite",
            "disable_mixed_precision_graph_rewrite",
        ),
        V1,
    ),
    (
        ("LossScaleOptimizer", "Policy", "set_policy", "global_policy", "get_layer_policy"),
        ("keras.mixed_precision.experimental",),
    ),
    (
        (
            "LossScaleOptimizer",
            "Policy",
            "set_global_policy",
            "global_policy",
            "from_loss_scale",
        ),
        ("keras.mixed_precision",),
    ),
]
"""Legacy names, and the namespaces below `tf` and `tf_lossscale` that hold each of them."""

OWN: Dict[str, Set[str]] = {
    "": {"__version__", "install", "uninstall"},
    "recording": {"RecordingError", "start", "stop"},
    "monitoring": {"Monitor", "StepCounts", "find_nonfinite"},
}
"""The names that TensorFlow never had, by module."""

TOP = {"compat", "contrib", "keras", "mixed_precision", "monitoring", "recording", "tpu", "train"}
COMMANDS = {"migrate", "rules", "explain", "run", "compare", "checkpoint", "doctor"}
MIGRATE = """
  --to --keras --write --check --unsafe --select --ignore --exclude --jobs --report --mark
  --allow-dirty --stdin-filename --statistics --color --no-settings --follow-links-outside
  --time-limit --size-limit -v
"""


def promised() -> Dict[str, Set[str]]:
    """The names in each namespace."""
    table: Dict[str, Set[str]] = {}
    for names, namespaces in SYMBOLS:
        for namespace in namespaces:
            table.setdefault(namespace, set()).update(names)
    return table


def test_the_table_of_paths_is_what_was_promised() -> None:
    assert {namespace: set(names) for namespace, names in _paths.NAMESPACES.items()} == promised()


@pytest.mark.parametrize("module", OWN)
def test_modules_of_this_package_have_their_own_names(module: str) -> None:
    found = importlib.import_module(f"tf_lossscale.{module}".rstrip("."))
    assert set(found.__all__) == (OWN[module] | (TOP if not module else set()))


def test_every_promised_namespace_is_a_module() -> None:
    for namespace in promised():
        assert importlib.import_module("tf_lossscale." + namespace).__all__
    assert {namespace.partition(".")[0] for namespace in promised()} <= TOP
    assert tf_lossscale.__version__


def test_the_commands_are_what_was_promised() -> None:
    assert {*main.CODEMODS, *main.OTHERS} == COMMANDS


def test_the_options_of_migrate_are_still_there(capsys: pytest.CaptureFixture) -> None:
    assert main.main(["migrate", "--help"]) == 0
    shown = re.findall(r"(?<![\w-])--?[a-z][a-z-]*", capsys.readouterr().out)
    assert set(MIGRATE.split()) <= set(shown)
