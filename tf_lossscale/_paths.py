"""The one table of public paths: which symbol stands under which of TensorFlow's names.

Everything that must know a path reads this table: the namespaces (`tfls.contrib...`), the drop-in
(`tf_lossscale.install()`), `tf-lossscale doctor`, and the tests that compare signatures. It imports
nothing, so that the command can print it without TensorFlow.
"""

from typing import Dict, NamedTuple, Tuple


class Symbol(NamedTuple):
    """A public symbol, with its place in this package and the rule that moves code off it."""

    name: str  # in every namespace
    module: str  # the module of the shim that has it, relative to `tf_lossscale`
    rule: str  # the codemod rule that moves code off it (codes never change their meaning)
    namespaces: Tuple[str, ...]  # TensorFlow's public ones, without the leading `tf.`
    legacy: bool = True  # False where TensorFlow keeps the symbol, or never had it
    attribute: str = ""  # its name in `module`, if that is another one

    @property
    def implementation(self) -> str:
        """The `module:attribute` in the shim, which is the same under all names of the symbol."""
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
    namespace: {entry.name: entry for entry in SYMBOLS if namespace in entry.namespaces}
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


def symbol_at(path: str) -> Symbol:
    """Returns the symbol of a path in `PRIVATE`, or of any other public one without `tf.`."""
    namespace, _, name = path.rpartition(".")
    return NAMESPACES[namespace][name]


def _at(namespace: str, *names: str, **renamed: str) -> Dict[str, str]:
    """Returns the paths in a namespace of names, and of names that are different there."""
    paths = dict({name: name for name in names}, **renamed)
    return {name: f"{namespace}.{public}" for name, public in paths.items()}


_PRIVATE_MANAGERS = _at(
    "contrib.mixed_precision",
    *("LossScaleManager", "FixedLossScaleManager", "ExponentialUpdateLossScaleManager"),
)
_PRIVATE_EXPERIMENTAL = _at(
    "keras.mixed_precision.experimental",
    *("LossScaleOptimizer", "Policy", "set_policy", "global_policy", "get_layer_policy"),
)
_PRIVATE_OPTIMIZERS = {
    **_at("keras.mixed_precision.experimental", LossScaleOptimizerV1="LossScaleOptimizer"),
    **_at(
        "keras.mixed_precision",
        "LossScaleOptimizer",
        BaseLossScaleOptimizer="LossScaleOptimizer",
        LossScaleOptimizerV3="LossScaleOptimizer",
    ),
}
_PRIVATE_POLICIES = {
    **_at("keras.mixed_precision.experimental", PolicyV1="Policy"),
    **_at(
        "keras.mixed_precision",
        *("Policy", "global_policy", "set_global_policy"),
        set_policy="set_global_policy",  # its name in TensorFlow 2.4 and 2.5
    ),
}
_PRIVATE_FINAL = _at(
    "keras.mixed_precision", "LossScaleOptimizer", "Policy", "global_policy", "set_global_policy"
)
_PRIVATE_REWRITES = _at(
    "compat.v1.mixed_precision",
    "enable_mixed_precision_graph_rewrite",
    "disable_mixed_precision_graph_rewrite",
    enable_mixed_precision_graph_rewrite_v1="enable_mixed_precision_graph_rewrite",
    disable_mixed_precision_graph_rewrite_v1="disable_mixed_precision_graph_rewrite",
)
_PRIVATE_V1_OPTIMIZER = _at("compat.v1.mixed_precision", "MixedPrecisionLossScaleOptimizer")


def _of_keras(package: str) -> Dict[str, Dict[str, str]]:
    """Returns the modules below the `mixed_precision` of one Keras package."""
    return {
        package + ".loss_scale_optimizer": _PRIVATE_OPTIMIZERS,
        package + ".policy": _PRIVATE_POLICIES,
        package + ".get_layer_policy": _at(
            "keras.mixed_precision.experimental", "get_layer_policy"
        ),
    }


def _of_experimental(package: str) -> Dict[str, Dict[str, str]]:
    """Returns the private modules of the experimental Keras classes, with the public paths."""
    return {
        package: _PRIVATE_EXPERIMENTAL,
        package + ".loss_scale_optimizer": _at(
            "keras.mixed_precision.experimental", "LossScaleOptimizer"
        ),
        package + ".policy": _at(
            "keras.mixed_precision.experimental", "Policy", "set_policy", "global_policy"
        ),
        package + ".get_layer_policy": _at(
            "keras.mixed_precision.experimental", "get_layer_policy"
        ),
    }


def _of_api(keras: str) -> Dict[str, Dict[str, str]]:
    """Returns the generated modules of a Keras API, which editors import names from."""
    return {
        keras + ".mixed_precision": _PRIVATE_FINAL,
        keras + ".mixed_precision.experimental": _PRIVATE_EXPERIMENTAL,
    }


PRIVATE: Dict[str, Dict[str, str]] = {
    # TensorFlow 1.
    "tensorflow.contrib.mixed_precision.python.loss_scale_manager": _PRIVATE_MANAGERS,
    "tensorflow.contrib.mixed_precision.python.loss_scale_optimizer": _at(
        "contrib.mixed_precision", "LossScaleOptimizer"
    ),
    "tensorflow.contrib.tpu.python.ops.tpu_ops": _at("contrib.tpu", "cross_replica_sum"),
    "tensorflow.contrib.tpu.python.tpu.tpu_optimizer": _at("contrib.tpu", "CrossShardOptimizer"),
    # Every TensorFlow.
    "tensorflow.python.tpu.ops.tpu_ops": _at("compat.v1.tpu", "cross_replica_sum"),
    "tensorflow.python.tpu.tpu_optimizer": _at("compat.v1.tpu", "CrossShardOptimizer"),
    "tensorflow.python.training.experimental.loss_scale": _at(
        "compat.v1.mixed_precision", "LossScale", "FixedLossScale", "DynamicLossScale"
    ),
    "tensorflow.python.training.experimental.loss_scale_optimizer": _PRIVATE_V1_OPTIMIZER,
    "tensorflow.python.training.experimental.mixed_precision": _PRIVATE_REWRITES,
    "tensorflow.python.training.training": {**_PRIVATE_V1_OPTIMIZER, **_PRIVATE_REWRITES},
    # Keras up to TensorFlow 2.3, from 2.4 on, from 2.6 to 2.12, and from 2.13 to 2.15.
    **_of_experimental("tensorflow.python.keras.mixed_precision.experimental"),
    **_of_keras("tensorflow.python.keras.mixed_precision"),
    **_of_keras("keras.mixed_precision"),
    "keras.src.mixed_precision": _PRIVATE_FINAL,
    **_of_keras("keras.src.mixed_precision"),
    # The API of Keras up to TensorFlow 2.5, and up to 2.15.
    **_of_api("tensorflow.python.keras.api._v1.keras"),
    **_of_api("tensorflow.python.keras.api._v2.keras"),
    **_of_api("keras.api._v1.keras"),
    **_of_api("keras.api._v2.keras"),
}
"""Modules without a public name that programs import all the same, by their full names.

`{module: {name in it: public path}}`: `keras.mixed_precision.loss_scale_optimizer` has the name
`LossScaleOptimizerV1` for `keras.mixed_precision.experimental.LossScaleOptimizer`, which is below
`tf` and below `tf_lossscale`. Each module was importable on some TensorFlow.
"""
