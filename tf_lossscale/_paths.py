"""The one table of public paths: which symbol stands under which of TensorFlow's names.

Everything that must know a path reads this table: the namespaces (`tfls.contrib...`), the drop-in
(`tf_lossscale.install()`), `tf-lossscale doctor`, and the tests that compare signatures. It imports
nothing, so that the command can print it without TensorFlow.
"""

from typing import Dict, NamedTuple, Tuple

__all__ = ["NAMESPACES", "PRIVATE", "SYMBOLS", "VIEWS", "Symbol"]


class Symbol(NamedTuple):
    """One legacy symbol.

    Attributes:
      name: its name in every namespace.
      implementation: `module:attribute` of ours, relative to `tf_lossscale`.
      rule: the codemod rule that moves code off it (codes never change their meaning).
      namespaces: TensorFlow's public namespaces that hold it, without the leading `tf.`.
      legacy: False where TensorFlow keeps the symbol, or never had it.
    """

    name: str
    implementation: str
    rule: str
    namespaces: Tuple[str, ...]
    legacy: bool = True


_CONTRIB = ("contrib.mixed_precision",)
_TPU = ("contrib.tpu", "tpu", "compat.v1.tpu")
_LOSS_SCALES = (
    "train.experimental",
    "mixed_precision.experimental",
    "compat.v1.train.experimental",
    "compat.v1.mixed_precision.experimental",
    "compat.v1.mixed_precision",
)
_V1_OPTIMIZER = ("train.experimental", "compat.v1.train.experimental", "compat.v1.mixed_precision")
_EXPERIMENTAL = ("keras.mixed_precision.experimental",)
_FINAL = ("keras.mixed_precision",)

SYMBOLS: Tuple[Symbol, ...] = (
    Symbol("FixedLossScaleManager", "_v1.managers:FixedLossScaleManager", "LS101", _CONTRIB),
    Symbol(
        "ExponentialUpdateLossScaleManager",
        "_v1.managers:ExponentialUpdateLossScaleManager",
        "LS102",
        _CONTRIB,
    ),
    Symbol("LossScaleOptimizer", "_v1.contrib:LossScaleOptimizer", "LS103", _CONTRIB),
    Symbol("LossScaleManager", "_v1.managers:LossScaleManager", "LS104", _CONTRIB),
    Symbol("LossScale", "_core.loss_scales:LossScale", "LS201", _LOSS_SCALES),
    Symbol("FixedLossScale", "_core.loss_scales:FixedLossScale", "LS202", _LOSS_SCALES),
    Symbol("DynamicLossScale", "_core.loss_scales:DynamicLossScale", "LS203", _LOSS_SCALES),
    Symbol(
        "MixedPrecisionLossScaleOptimizer",
        "_v1.optimizer:MixedPrecisionLossScaleOptimizer",
        "LS204",
        _V1_OPTIMIZER,
    ),
    Symbol(
        "enable_mixed_precision_graph_rewrite",
        "_v1.optimizer:enable_mixed_precision_graph_rewrite",
        "LS205",
        _V1_OPTIMIZER,
    ),
    Symbol(
        "disable_mixed_precision_graph_rewrite",
        "_v1.optimizer:disable_mixed_precision_graph_rewrite",
        "LS205",
        _V1_OPTIMIZER,
    ),
    Symbol("LossScaleOptimizer", "_keras.experimental:LossScaleOptimizer", "LS301", _EXPERIMENTAL),
    Symbol("Policy", "_keras.policy:ExperimentalPolicy", "LS602", _EXPERIMENTAL),
    Symbol("set_policy", "_keras.policy:set_policy", "LS601", _EXPERIMENTAL),
    Symbol("global_policy", "_keras.policy:experimental_global_policy", "LS603", _EXPERIMENTAL),
    Symbol("get_layer_policy", "_keras.policy:get_layer_policy", "LS604", _EXPERIMENTAL),
    Symbol("LossScaleOptimizer", "_keras.final:LossScaleOptimizer", "LS401", _FINAL, False),
    Symbol("from_loss_scale", "_keras.experimental:from_loss_scale", "LS301", _FINAL, legacy=False),
    Symbol("Policy", "_keras.policy:Policy", "LS602", _FINAL, False),
    Symbol("set_global_policy", "_keras.policy:set_global_policy", "LS601", _FINAL, False),
    Symbol("global_policy", "_keras.policy:global_policy", "LS603", _FINAL, False),
    Symbol("CrossShardOptimizer", "_v1.cross_shard:CrossShardOptimizer", "LS501", _TPU),
    Symbol("cross_replica_sum", "_v1.sums:cross_replica_sum", "LS502", _TPU),
)


def _by_namespace() -> Dict[str, Dict[str, Symbol]]:
    table: Dict[str, Dict[str, Symbol]] = {}
    for symbol in SYMBOLS:
        for namespace in symbol.namespaces:
            names = table.setdefault(namespace, {})
            assert symbol.name not in names, (namespace, symbol.name)
            names[symbol.name] = symbol
    return table


NAMESPACES: Dict[str, Dict[str, Symbol]] = _by_namespace()
"""`{"contrib.mixed_precision": {"LossScaleManager": Symbol(...), ...}, ...}`."""

VIEWS: Dict[str, str] = {
    "compat.v1.contrib.mixed_precision": "contrib.mixed_precision",
    "compat.v1.contrib.tpu": "contrib.tpu",
    "compat.v1.keras.mixed_precision": "keras.mixed_precision",
    "compat.v1.keras.mixed_precision.experimental": "keras.mixed_precision.experimental",
    "compat.v2.keras.mixed_precision": "keras.mixed_precision",
    "compat.v2.keras.mixed_precision.experimental": "keras.mixed_precision.experimental",
    "compat.v2.mixed_precision.experimental": "mixed_precision.experimental",
    "compat.v2.train.experimental": "train.experimental",
}
"""Second names that TensorFlow has for a namespace, and the one that they show."""

_PRIVATE_EXPERIMENTAL = "python.keras.mixed_precision.experimental"

PRIVATE: Dict[str, str] = {
    "contrib.mixed_precision.python.loss_scale_manager": "contrib.mixed_precision",
    "contrib.mixed_precision.python.loss_scale_optimizer": "contrib.mixed_precision",
    "contrib.tpu.python.ops.tpu_ops": "contrib.tpu",
    "contrib.tpu.python.tpu.tpu_optimizer": "contrib.tpu",
    _PRIVATE_EXPERIMENTAL: "keras.mixed_precision.experimental",
    _PRIVATE_EXPERIMENTAL + ".get_layer_policy": "keras.mixed_precision.experimental",
    _PRIVATE_EXPERIMENTAL + ".loss_scale_optimizer": "keras.mixed_precision.experimental",
    _PRIVATE_EXPERIMENTAL + ".policy": "keras.mixed_precision.experimental",
}
"""Modules without a public name that programs import all the same, and what they show.

They were importable on TensorFlow 1.15 and, below `python.keras`, up to 2.3.
"""
