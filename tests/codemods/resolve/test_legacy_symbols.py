"""Which dotted paths mean a legacy symbol."""

import pytest
from tf_lossscale_codemods.resolve.legacy_symbols import (
    Family,
    legacy_of,
    namespace_of,
    root_of,
)
from tf_lossscale_codemods.resolve.vocabulary import DISTINCTIVE

from tf_lossscale import _paths


class TestOthers:
    @pytest.mark.parametrize(
        "path",
        [
            "",
            "tensorflow",
            "tensorflow.contrib",
            "tensorflow.contrib.mixed_precision",
            "tensorflow.contrib.mixed_precision.python",
            "tensorflow.contrib.layers.LossScaleOptimizer",
            "tensorflow.LossScaleOptimizer",
            "tensorflow.keras.optimizers.LossScaleOptimizer",
            "tensorflow.keras.mixed_precision.from_loss_scale",
            "tensorflow_probability.contrib.mixed_precision.LossScaleOptimizer",
            "tf.contrib.mixed_precision.LossScaleOptimizer",
            "apex.contrib.mixed_precision.LossScaleOptimizer",
            "contrib.mixed_precision.LossScaleOptimizer",
            ".contrib.mixed_precision.LossScaleOptimizer",
            "tensorflow.compat.contrib.mixed_precision.LossScaleOptimizer",
            "tf_lossscale",
            "tf_lossscale.recording.start",
            "tf_lossscale.keras.mixed_precision.Policy",
            "tf_lossscale.keras.mixed_precision.from_loss_scale",
            "project.tf_lossscale.train.experimental.FixedLossScale",
        ],
    )
    def test_no_symbol(self, path):
        assert legacy_of(path) is None

    @pytest.mark.parametrize("path", ["numpy", "tensorflowx.a", "tf.keras", "apex", ".keras", ""])
    def test_no_root(self, path):
        assert root_of(path) is None
        assert namespace_of(path) is None

    @pytest.mark.parametrize("path", ["tensorflow", "tensorflow.keras", "tensorflow.estimator.tpu"])
    def test_no_namespace(self, path):
        assert namespace_of(path) is None

    def test_names_that_other_code_has_are_not_distinctive(self):
        assert not DISTINCTIVE & {"Policy", "set_policy", "global_policy", "LossScale"}


@pytest.mark.parametrize(
    ("path", "root"),
    [
        ("tensorflow", ("tf", "")),
        ("tensorflow.a.b", ("tf", "a.b")),
        ("tensorflow.compat.v1", ("v1", "")),
        ("tensorflow.compat.v2.a", ("v2", "a")),
        ("tensorflow.compat.v1.compat.v2.a", ("v2", "a")),
        ("tensorflow._api.v2.compat.v1.a", ("v1", "a")),
        ("tensorflow_core.a", ("tf", "a")),
        ("keras.a", ("keras", "a")),
        ("tf_keras", ("tf_keras", "")),
    ],
)
def test_root(path, root):
    assert root_of(path) == root


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("keras.mixed_precision.experimental.Policy", "LS602"),
        ("tf_keras.mixed_precision.experimental.set_policy", "LS601"),
        ("tensorflow.python.keras.mixed_precision.experimental.policy.set_policy", "LS601"),
        ("tensorflow.keras.mixed_precision.LossScaleOptimizerV1", "LS301"),
    ],
)
def test_symbol(path, rule):
    module, _, name = path.rpartition(".")
    legacy = legacy_of(path)
    assert legacy is not None
    assert (legacy.rule, legacy.name) == (rule, name.replace("V1", ""))
    assert not legacy.never_existed
    assert namespace_of(module) is not None


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("tensorflow.keras.mixed_precision.set_policy", "set_policy"),
        ("tensorflow.keras.mixed_precision.experimental.set_global_policy", "set_policy"),
        ("tensorflow.estimator.tpu.CrossShardOptimizer", "CrossShardOptimizer"),
    ],
)
def test_a_path_that_never_existed(path, name):
    legacy = legacy_of(path)
    assert legacy is not None
    assert legacy.never_existed
    assert legacy.name == name


def test_every_public_path_of_a_legacy_symbol_is_known():
    for symbol in _paths.SYMBOLS:
        for namespace in symbol.namespaces:
            if symbol.legacy:
                legacy = legacy_of(f"tensorflow.{namespace}.{symbol.name}")
                assert legacy is not None
                assert legacy.rule == symbol.rule


SYMBOLS = """
    contrib.mixed_precision.FixedLossScaleManager CONTRIB
    contrib.mixed_precision.LossScaleManager CONTRIB
    contrib.mixed_precision.LossScaleOptimizer CONTRIB is_graph_optimizer
    train.experimental.LossScale V1
    mixed_precision.experimental.FixedLossScale V1
    compat.v1.mixed_precision.DynamicLossScale V1 is_final_path
    train.experimental.MixedPrecisionLossScaleOptimizer V1 is_graph_optimizer
    train.experimental.enable_mixed_precision_graph_rewrite V1 is_graph_optimizer
    contrib.tpu.CrossShardOptimizer CROSS_SHARD
    compat.v1.tpu.cross_replica_sum CROSS_SHARD is_final_path
    keras.mixed_precision.experimental.LossScaleOptimizer EXPERIMENTAL \
        is_keras_optimizer is_experimental_optimizer
    keras.mixed_precision.LossScaleOptimizer FINAL is_keras_optimizer is_final_path
    keras.mixed_precision.experimental.Policy EXPERIMENTAL is_policy returns_policy
    keras.mixed_precision.experimental.set_policy EXPERIMENTAL is_policy
    keras.mixed_precision.set_policy EXPERIMENTAL is_policy is_final_path
    keras.mixed_precision.set_global_policy FINAL is_policy is_final_path
    keras.mixed_precision.global_policy FINAL is_policy returns_policy is_final_path
    tf_lossscale.keras.mixed_precision.experimental.Policy EXPERIMENTAL is_policy returns_policy
    tf_lossscale.train.experimental.FixedLossScale V1
    tf_lossscale.mixed_precision.experimental.LossScale V1
    tf_lossscale.compat.v1.mixed_precision.DynamicLossScale V1
    tf_lossscale.compat.v1.train.experimental.FixedLossScale V1
    tf_lossscale.contrib.mixed_precision.LossScaleOptimizer CONTRIB is_graph_optimizer is_final_path
    tf_lossscale.tpu.cross_replica_sum CROSS_SHARD is_final_path
    """
"""Symbols with their families and their kinds."""
KINDS = {kind for line in SYMBOLS.split("\n") for kind in line.split()[2:]}


@pytest.mark.parametrize("line", SYMBOLS.strip().split("\n"))
def test_kinds(line):
    path, family, *kinds = line.split()
    legacy = legacy_of(path if path.startswith("tf_lossscale.") else f"tensorflow.{path}")
    assert legacy.family is Family[family]
    assert {kind for kind in KINDS if getattr(legacy, kind)} == set(kinds)


def test_of_the_final_api_the_optimizer_and_the_setter_of_the_policy_have_a_rule():
    final = "tensorflow.keras.mixed_precision."
    assert legacy_of(final + "LossScaleOptimizer").rule == "LS401"
    assert legacy_of(final + "set_global_policy").rule == "LS601"
    for name in ("Policy", "global_policy"):
        assert legacy_of(final + name).rule == ""


@pytest.mark.parametrize(
    ("path", "public"),
    [
        (f"{module}.{name}", public)
        for module, names in _paths.PRIVATE.items()
        for name, public in names.items()
        if f"{module}.{name}" not in _paths.PRIVATE
    ],
)
def test_private_path(path, public):
    legacy = legacy_of(path)
    assert legacy is not None
    assert legacy.is_private
    assert not legacy.is_final_path
    assert not legacy.never_existed
    assert legacy.name == public.rpartition(".")[2]
    assert namespace_of(path.rpartition(".")[0]) is not None


@pytest.mark.parametrize(
    "path",
    [
        "keras.src.mixed_precision.loss_scale_optimizer._is_all_finite",
        "tensorflow.python.keras.mixed_precision.policy.policy_scope",
    ],
)
def test_other_names_of_private_modules(path):
    assert legacy_of(path) is None
