"""Which dotted paths mean which legacy symbol.

The public paths come from the package's one table; here stand the ways that lead to them: chains of
`compat.v1` and `compat.v2`, the private modules that people imported from, and paths that never
existed in any TensorFlow but are found in code.
"""

from __future__ import annotations

import functools
import re
from typing import NamedTuple, Optional

from tf_lossscale._paths import SYMBOLS

__all__ = ["DISTINCTIVE", "Legacy", "Root", "is_namespace", "legacy_of", "root_of"]


class Legacy(NamedTuple):
    """A symbol that a dotted path means.

    Attributes:
      name: its name.
      rule: the code of the rule that moves code off it.
      family: `contrib`, `v1`, `cross-shard`, `experimental` or `final`.
      namespace: the public namespace of the path, without `tensorflow.` and `compat.v1.`.
      root: which TensorFlow namespace the path started from.
      never_existed: the path is one that no TensorFlow ever had.
    """

    name: str
    rule: str
    family: str
    namespace: str
    root: str
    never_existed: bool = False


class Root(NamedTuple):
    """A dotted path, seen from the namespace it starts from.

    Attributes:
      name: `tf`, `v1`, `v2`, `keras` or `tf_keras`.
      rest: what follows.
    """

    name: str
    rest: str


_FAMILIES = {
    "1": "contrib",
    "2": "v1",
    "5": "cross-shard",
    "3": "experimental",
    "6": "experimental",
}
_PRIVATE = {
    "contrib.mixed_precision.python.loss_scale_manager": "contrib.mixed_precision",
    "contrib.mixed_precision.python.loss_scale_optimizer": "contrib.mixed_precision",
    "contrib.tpu.python.tpu.tpu_optimizer": "contrib.tpu",
    "contrib.tpu.python.ops.tpu_ops": "contrib.tpu",
    "contrib.tpu.python.tpu.tpu": "contrib.tpu",
    "python.tpu.tpu_optimizer": "tpu",
    "python.tpu.ops.tpu_ops": "tpu",
    "python.training.experimental.loss_scale": "train.experimental",
    "python.training.experimental.loss_scale_optimizer": "train.experimental",
    "python.training.experimental.mixed_precision": "train.experimental",
    "python.keras.mixed_precision.experimental.loss_scale_optimizer": (
        "keras.mixed_precision.experimental"
    ),
    "python.keras.mixed_precision.experimental.policy": "keras.mixed_precision.experimental",
    "python.keras.mixed_precision.experimental": "keras.mixed_precision.experimental",
    "python.keras.mixed_precision.loss_scale_optimizer": "keras.mixed_precision",
    "python.keras.mixed_precision.policy": "keras.mixed_precision",
    "python.keras.mixed_precision": "keras.mixed_precision",
    "python.keras.api._v1.keras.mixed_precision.experimental": "keras.mixed_precision.experimental",
    "python.keras.api._v2.keras.mixed_precision.experimental": "keras.mixed_precision.experimental",
}
"""Modules that held the symbols, and the public namespace that they stood behind."""

_PRIVATE_NAMES = {
    "keras.mixed_precision.LossScaleOptimizerV1": (
        "keras.mixed_precision.experimental.LossScaleOptimizer"
    ),
    "keras.mixed_precision.PolicyV1": "keras.mixed_precision.experimental.Policy",
    "train.experimental.enable_mixed_precision_graph_rewrite_v1": (
        "train.experimental.enable_mixed_precision_graph_rewrite"
    ),
    "train.experimental.disable_mixed_precision_graph_rewrite_v1": (
        "train.experimental.disable_mixed_precision_graph_rewrite"
    ),
}
_NEVER_EXISTED = {
    "estimator.tpu.CrossShardOptimizer": "tpu.CrossShardOptimizer",
    "keras.mixed_precision.set_policy": "keras.mixed_precision.experimental.set_policy",
    "keras.mixed_precision.experimental.set_global_policy": (
        "keras.mixed_precision.experimental.set_policy"
    ),
}

DISTINCTIVE = frozenset(
    symbol.name
    for symbol in SYMBOLS
    if symbol.legacy and symbol.name not in ("Policy", "set_policy", "global_policy", "LossScale")
)
"""Names that are a legacy symbol wherever they come from, or another library's look-alike."""

_CHAIN = re.compile(r"(?:compat\.v(?P<a>[12])|_api\.v(?P<b>[12])|v1)(?:\.|$)")


def _table() -> dict[str, tuple[str, str, bool]]:
    table: dict[str, tuple[str, str, bool]] = {}
    for symbol in SYMBOLS:
        for namespace in symbol.namespaces:
            family = _FAMILIES.get(symbol.rule[2], "final") if symbol.legacy else "final"
            place = (
                namespace[len("compat.v1.") :] if namespace.startswith("compat.v1.") else namespace
            )
            table[f"{place}.{symbol.name}"] = (symbol.rule, family, False)
    del table["keras.mixed_precision.from_loss_scale"]  # ours, not TensorFlow's
    for path, meant in _NEVER_EXISTED.items():
        rule, family, _ = table[meant]
        table[path] = (rule, family, True)
    return table


_TABLE = _table()
_NAMESPACES = frozenset(path.rpartition(".")[0] for path in _TABLE) - {"estimator.tpu"}


@functools.lru_cache(maxsize=4096)
def root_of(path: str) -> Optional[Root]:
    """`path` without the TensorFlow namespace that it starts from; None for other libraries'."""
    first, _, rest = path.partition(".")
    if first in ("keras", "tf_keras"):
        return Root(first, rest)
    if first not in ("tensorflow", "tensorflow_core"):
        return None
    name = "tf"
    while True:
        match = _CHAIN.match(rest)
        if match is None:
            return Root(name, rest)
        name = "v2" if "2" in (match["a"], match["b"]) else "v1"
        rest = rest[match.end() :]


@functools.lru_cache(maxsize=4096)
def legacy_of(path: str) -> Optional[Legacy]:
    """The symbol that `path` means, if it is one of ours."""
    root = root_of(path)
    if root is None:
        return None
    rest = root.rest
    if root.name in ("keras", "tf_keras"):
        rest = "keras." + rest
    namespace, _, name = rest.rpartition(".")
    namespace = _PRIVATE.get(namespace, namespace)
    rest = _PRIVATE_NAMES.get(f"{namespace}.{name}", f"{namespace}.{name}")
    found = _TABLE.get(rest)
    if found is None:
        return None
    namespace, _, name = rest.rpartition(".")
    rule, family, never = found
    if rest in _NEVER_EXISTED:
        name = _NEVER_EXISTED[rest].rpartition(".")[2]
    return Legacy(name, rule, family, namespace, root.name, never)


@functools.lru_cache(maxsize=4096)
def is_namespace(path: str) -> bool:
    """Whether `path` is a module that holds legacy symbols."""
    root = root_of(path)
    if root is None:
        return False
    rest = root.rest if root.name in ("tf", "v1", "v2") else "keras." + root.rest
    return _PRIVATE.get(rest, rest) in _NAMESPACES
