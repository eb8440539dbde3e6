"""The one table of public paths: which symbol stands under which of TensorFlow's names.

Everything that must know a path reads this table: the namespaces (`tfls.contrib...`), the drop-in
(`tf_lossscale.install()`), `tf-lossscale doctor`, and the tests that compare signatures. It imports
nothing, so that the command can print it without TensorFlow.
"""

from typing import Dict, NamedTuple, Tuple


class Symbol(NamedTuple):
    name: str  # in every namespace
    module: str  # the module of ours that has it, relative to `tf_lossscale`
    rule: str  # the codemod rule that moves code off it (codes never change their meaning)
    namespaces: Tuple[str, ...]  # TensorFlow's public ones, without the leading `tf.`
    legacy: bool = True  # False where TensorFlow keeps the symbol, or never had it
    attribute: str = ""  # its name in `module`, if that is another one

    @property
    def implementation(self) -> str:
        """The `module:attribute` of ours, which is the same under all names of the symbol."""
        return f"{self.module}:{self.attribute or self.name}"


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
    Symbol("FixedLossScaleManager", "_v1.managers", "LS101", _CONTRIB),
    Symbol("ExponentialUpdateLossScaleManager", "_v1.managers", "LS102", _CONTRIB),
    Symbol("LossScaleOptimizer", "_v1.contrib", "LS103", _CONTRIB),
    Symbol("LossScaleManager", "_v1.managers", "LS104", _CONTRIB),
    Symbol("LossScale", "_core.loss_scales", "LS201", _LOSS_SCALES),
    Symbol("FixedLossScale", "_core.loss_scales", "LS202", _LOSS_SCALES),
    Symbol("DynamicLossScale", "_core.loss_scales", "LS203", _LOSS_SCALES),
    Symbol("MixedPrecisionLossScaleOptimizer", "_v1.optimizer", "LS204", _V1_OPTIMIZER),
    Symbol("enable_mixed_precision_graph_rewrite", "_v1.optimizer", "LS205", _V1_OPTIMIZER),
    Symbol("disable_mixed_precision_graph_rewrite", "_v1.optimizer", "LS205", _V1_OPTIMIZER),
    Symbol("LossScaleOptimizer", "_keras.experimental", "LS301", _EXPERIMENTAL),
    Symbol("Policy", "_keras.policy", "LS602", _EXPERIMENTAL, True, "ExperimentalPolicy"),
    Symbol("set_policy", "_keras.policy", "LS601", _EXPERIMENTAL),
    Symbol(
        "global_policy", "_keras.policy", "LS603", _EXPERIMENTAL, True, "experimental_global_policy"
    ),
    Symbol("get_layer_policy", "_keras.policy", "LS604", _EXPERIMENTAL),
    Symbol("LossScaleOptimizer", "_keras.final", "LS401", _FINAL, False),
    Symbol("from_loss_scale", "_keras.experimental", "LS301", _FINAL, False),
    Symbol("Policy", "_keras.policy", "LS602", _FINAL, False),
    Symbol("set_global_policy", "_keras.policy", "LS601", _FINAL, False),
    Symbol("global_policy", "_keras.policy", "LS603", _FINAL, False),
    Symbol("CrossShardOptimizer", "_v1.cross_shard", "LS501", _TPU),
    Symbol("cross_replica_sum", "_v1.sums", "LS502", _TPU),
)

NAMESPACES: Dict[str, Dict[str, Symbol]] = {
    namespace: {each.name: each for each in SYMBOLS if namespace in each.namespaces}
    for symbol in SYMBOLS
    for namespace in symbol.namespaces
}
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
