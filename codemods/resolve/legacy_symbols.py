"""Maps dotted paths to legacy symbols.

The public paths come from `tf_lossscale._paths`. This module adds paths through `compat.v1` and
`compat.v2`, the private modules that programs import from, and paths that occur in programs but
never existed in TensorFlow.

The shim's twin of a symbol counts as the symbol: a program on the shim is migrated to the final API
like the original.
"""

from __future__ import annotations

import enum
import functools
import re
from typing import NamedTuple, Optional

from tf_lossscale._paths import NAMESPACES, PRIVATE, SYMBOLS

from ..facts import Decision
from ..model import Group, Options

__all__ = [
    "ON_SHIM",
    "Family",
    "Legacy",
    "Namespace",
    "Root",
    "groups_named",
    "is_absent_from_shim",
    "is_of_shim",
    "is_of_tensorflow",
    "is_special",
    "is_whole",
    "legacy_of",
    "may_show_version",
    "namespace_of",
    "root_of",
    "shown_path",
    "shows_version",
    "twin_of",
]


class Family(enum.Enum):
    """The API that a symbol belongs to."""

    CONTRIB = "contrib"
    """`tf.contrib.mixed_precision`."""
    V1 = "v1"
    """The loss scales, their optimizer and the graph rewrite, for the optimizers of `tf.train`."""
    CROSS_SHARD = "cross-shard"
    """The cross-shard optimizer and sum."""
    EXPERIMENTAL = "experimental"
    """`tf.keras.mixed_precision.experimental`."""
    FINAL = "final"
    """`tf.keras.mixed_precision`."""


class Legacy(NamedTuple):
    """The legacy symbol that a dotted path refers to.

    Attributes:
      name: its name.
      rule: the code of the rule that migrates it; empty if there is none.
      family: the API that it belongs to.
      namespace: the public namespace of the path, without `tensorflow.` and `compat.v1.`.
      root: the TensorFlow namespace that the path starts from, as in `Root`; or `ON_SHIM`.
      is_current: whether the newest TensorFlow has the path; for a path of the shim, its twin.
      is_private: whether the path leads through a private module.
      never_existed: whether the path never existed in TensorFlow.
    """

    name: str
    rule: str
    family: Family
    namespace: str
    root: str
    is_current: bool
    is_private: bool = False
    never_existed: bool = False

    @property
    def group(self) -> Group:
        """The symbols that are decided together with it."""
        if self._is_keras:
            return Group.POLICIES if self.is_policy else Group.KERAS_OPTIMIZERS
        return Group(self.family.value)

    @property
    def is_keras_optimizer(self) -> bool:
        """Whether it is a Keras loss-scale optimizer, experimental or final."""
        return self._is_keras and self.name == "LossScaleOptimizer"

    @property
    def is_experimental_optimizer(self) -> bool:
        """Whether it is the Keras loss-scale optimizer that takes a loss scale."""
        return self.is_keras_optimizer and self.family is Family.EXPERIMENTAL

    @property
    def is_policy(self) -> bool:
        """Whether it belongs to the dtype policy API, experimental or final."""
        return self._is_keras and self.name != "LossScaleOptimizer"

    @property
    def is_experimental_policy(self) -> bool:
        """Whether it sets or makes a policy that has a loss scale."""
        is_setting = self.name in ("Policy", "set_policy")
        return self.is_policy and is_setting and self.family is Family.EXPERIMENTAL

    @property
    def returns_policy(self) -> bool:
        """Whether calling it returns a policy."""
        return self.is_policy and not self.name.startswith("set_")

    @property
    def is_graph_optimizer(self) -> bool:
        """Whether it creates an optimizer that scales the loss in `compute_gradients`."""
        if self.family is Family.V1:
            return not self.name.endswith("LossScale")
        return self.family is Family.CONTRIB and self.name == "LossScaleOptimizer"

    @property
    def is_on_shim(self) -> bool:
        """Whether the path leads to the shim's twin."""
        return self.root == ON_SHIM

    @property
    def is_of_final_api(self) -> bool:
        """Whether it belongs to `tf.keras.mixed_precision`."""
        return self.family is Family.FINAL

    @property
    def has_loss_scales(self) -> bool:
        """Whether it belongs to an API in which loss scales are objects of their own."""
        return self.family not in (Family.CROSS_SHARD, Family.FINAL)

    @property
    def is_final_path(self) -> bool:
        """Whether the path leads to the API that the symbol is migrated to."""
        return self.family in _STAY_ON_SHIM if self.is_on_shim else self.is_current

    @property
    def twin(self) -> str:
        """The path of the symbol in the shim that corresponds to this one."""
        namespace = self.namespace
        if (
            self.family in (Family.V1, Family.CROSS_SHARD)
            and (self.root == "v1" or namespace == "mixed_precision")
            and not namespace.startswith("contrib.")
        ):
            # Not for `tf.contrib`, which 1.15 also has under `import tensorflow.compat.v1 as tf`.
            namespace = "compat.v1." + namespace
        if self.never_existed and self.family is Family.CROSS_SHARD:
            namespace = "compat.v1.tpu"
        if self.family is Family.EXPERIMENTAL:
            namespace = _EXPERIMENTAL
        return f"{_SHIM}.{namespace}.{self.name}"

    def is_renamed(self, options: Options, decision: Decision) -> bool:
        """Whether a run gives the symbol another path, where a name leads to it."""
        is_moved_final = self.is_keras_optimizer and options.for_keras_3
        is_for_shim = decision.goes_to_shim(self.group)
        if not self.rule or (self.is_on_shim and (is_for_shim or options.to_shim)):
            return False
        return not self.is_final_path or is_moved_final or is_for_shim

    @property
    def _is_keras(self) -> bool:
        return self.family in (Family.EXPERIMENTAL, Family.FINAL)


class Root(NamedTuple):
    """A dotted path, split at the TensorFlow namespace that it starts from.

    Attributes:
      name: `tf`, `v1`, `v2`, `keras` or `tf_keras`.
      rest: the rest of the path, without the namespace.
    """

    name: str
    rest: str


ON_SHIM = "shim"
"""The root of a path in the shim."""
_SHIM = "tf_lossscale"
_STAY_ON_SHIM = frozenset([Family.CONTRIB, Family.CROSS_SHARD])
"""The families that stay on the shim, except with `--unsafe`.

TensorFlow has no symbols like the contrib ones, and its cross-shard symbols need a TPU.
"""
_ON_SHIM = _STAY_ON_SHIM | {Family.V1, Family.EXPERIMENTAL}
"""The families that are read from the shim. The shim's final class can be the final one."""

_EXPERIMENTAL = "keras.mixed_precision.experimental"
_FAMILIES = {
    "contrib.mixed_precision": Family.CONTRIB,
    "train.experimental": Family.V1,
    "mixed_precision.experimental": Family.V1,
    "mixed_precision": Family.V1,
    "contrib.tpu": Family.CROSS_SHARD,
    "tpu": Family.CROSS_SHARD,
    _EXPERIMENTAL: Family.EXPERIMENTAL,
    "keras.mixed_precision": Family.FINAL,
}
"""The family of each public namespace (written without `compat.v1.`)."""

_PRIVATE: dict[str, dict[str, str]] = {
    module.removeprefix("tensorflow."): {
        name: path.removeprefix("compat.v1.") for name, path in names.items()
    }
    for module, names in {
        **PRIVATE,
        # `tpu.py` imports the sum, and TensorFlow 2.4 to 2.8 the names of the final API.
        "tensorflow.contrib.tpu.python.tpu.tpu": PRIVATE[
            "tensorflow.contrib.tpu.python.ops.tpu_ops"
        ],
        "tensorflow.python.keras.mixed_precision": PRIVATE["keras.src.mixed_precision"],
    }.items()
}
"""The private modules, without `tensorflow.`: the public path of each of their names."""

_ALIASES = {
    "keras.mixed_precision.LossScaleOptimizerV1": f"{_EXPERIMENTAL}.LossScaleOptimizer",
    "keras.mixed_precision.PolicyV1": f"{_EXPERIMENTAL}.Policy",
}
"""Names that programs read from a public module, though only private ones have them."""
_NEVER_EXISTED = {
    "estimator.tpu.CrossShardOptimizer": "tpu.CrossShardOptimizer",
    "keras.mixed_precision.set_policy": f"{_EXPERIMENTAL}.set_policy",
    f"{_EXPERIMENTAL}.set_global_policy": f"{_EXPERIMENTAL}.set_policy",
}

_MOVED_FINALS = ("LossScaleOptimizer", "set_global_policy")
"""The symbols of the final API that can go to the shim.

Keras 3 has another class of the first name, and wraps optimizers in it under the policy that the
second one sets.
"""

_VERSION = re.compile(
    r"(?:^|\.)(?:__version__|(?:GIT_)?VERSION|__dict__|\w*enabled|executing_eagerly\w*)$|^version$"
)
"""What shows the version of TensorFlow, without the path of a module around it."""
_CHAIN = re.compile(r"(?:compat\.v(?P<a>[12])|_api\.v(?P<b>[12])|v1)(?:\.|$)")


class _Entry(NamedTuple):
    """What a public path leads to."""

    name: str
    rule: str
    family: Family
    never_existed: bool = False


def _table() -> dict[str, _Entry]:
    """The entry of each public path, without `tensorflow.` and `compat.v1.`."""
    table: dict[str, _Entry] = {}
    for symbol in SYMBOLS:
        is_moved = symbol.legacy or symbol.name in _MOVED_FINALS
        for namespace in symbol.namespaces:
            place = namespace.removeprefix("compat.v1.")
            rule = symbol.rule if is_moved else ""
            table[f"{place}.{symbol.name}"] = _Entry(symbol.name, rule, _FAMILIES[place])
    del table["keras.mixed_precision.from_loss_scale"]  # the shim's own, not TensorFlow's
    for path, meant in _NEVER_EXISTED.items():
        table[path] = table[meant]._replace(never_existed=True)
    return table


_TABLE = _table()
_RULES_OF_FINALS = {
    symbol.name: symbol.rule for symbol in SYMBOLS if "keras.mixed_precision" in symbol.namespaces
}
"""The rules of the symbols of the final API, which only move from a private module."""
_NAMESPACES = frozenset(path.rpartition(".")[0] for path in _TABLE) - {"estimator.tpu"}


_KERAS = ("keras", "tf_keras")
_TENSORFLOW = ("tensorflow", "tensorflow_core")
_PACKAGES = frozenset([*_KERAS, *_TENSORFLOW, _SHIM])


@functools.lru_cache(maxsize=4096)
def root_of(path: str) -> Optional[Root]:
    """Splits `path` after its TensorFlow namespace; None for other libraries."""
    first, _, rest = path.partition(".")
    if first in _KERAS:
        return Root(first, rest)
    if first not in _TENSORFLOW:
        return None
    name = "tf"
    while True:
        match = _CHAIN.match(rest)
        if match is None:
            return Root(name, rest)
        name = "v2" if "2" in (match["a"], match["b"]) else "v1"
        rest = rest[match.end() :]


def shows_version(path: str) -> bool:
    """Whether a path of TensorFlow shows its version."""
    root = root_of(path)
    return root is not None and _VERSION.search(root.rest) is not None


@functools.lru_cache(maxsize=4096)
def may_show_version(name: str) -> bool:
    """Whether a path that ends with a name can show the version."""
    return name == "version" or _VERSION.search(name) is not None


def is_of_shim(path: str) -> bool:
    """Whether `path` is the shim, or in it."""
    return path.partition(".")[0] == _SHIM


def is_of_tensorflow(path: str) -> bool:
    """Whether `path` leads to TensorFlow, to a Keras, or to the shim."""
    return path.partition(".")[0] in _PACKAGES


@functools.lru_cache(maxsize=4096)
def legacy_of(path: str) -> Optional[Legacy]:
    """The legacy symbol, or its twin in the shim, that `path` refers to; None if there is none."""
    root, rest = _split(path)
    if root is None or rest in _PRIVATE:  # a module, though a symbol has the same name
        return None
    module, _, last = rest.rpartition(".")
    is_private = module in _PRIVATE and root != ON_SHIM
    public = _PRIVATE[module].get(last, "") if is_private else _ALIASES.get(rest, rest)
    entry = _TABLE.get(public)
    if entry is None or (root == ON_SHIM and not _is_read_from_shim(entry)):
        return None
    namespace = public.rpartition(".")[0]
    is_current = not is_private and _is_current(namespace, entry.family, path)
    rule = entry.rule or (_RULES_OF_FINALS.get(entry.name, "") if is_private else "")
    return Legacy(
        entry.name, rule, entry.family, namespace, root, is_current, is_private,
        entry.never_existed,
    )  # fmt: skip


@functools.lru_cache(maxsize=None)
def groups_named(name: str) -> frozenset[Group]:
    """The groups of all symbols with a name."""
    paths = [f"tensorflow.{path}" for path, entry in _TABLE.items() if entry.name == name]
    legacies = [legacy_of(path) for path in paths]
    return frozenset(legacy.group for legacy in legacies if legacy is not None)


def _is_read_from_shim(entry: _Entry) -> bool:
    """Whether the shim's twin of a symbol is migrated further, like the symbol itself."""
    return entry.family in _ON_SHIM and not entry.never_existed


def _split(path: str) -> tuple[Optional[str], str]:
    """The root of a path, as in `Legacy`, and the rest below the top of TensorFlow or the shim."""
    if is_of_shim(path):
        return ON_SHIM, path.partition(".")[2].removeprefix("compat.v1.")
    root = root_of(path)
    if root is None:
        return None, ""
    return root.name, f"keras.{root.rest}" if root.name in ("keras", "tf_keras") else root.rest


def _is_current(namespace: str, family: Family, path: str) -> bool:
    """Whether the newest TensorFlow has these symbols in that namespace of `path`."""
    root = root_of(path.replace(_SHIM, "tensorflow", 1)) if is_of_shim(path) else root_of(path)
    if root is not None and root.name == "v1" and family in (Family.V1, Family.CROSS_SHARD):
        return True
    return namespace == "keras.mixed_precision"


class Namespace(NamedTuple):
    """A module that holds legacy symbols.

    Attributes:
      name: its public name, without `tensorflow.` and `compat.v1.`.
      family: the API that it belongs to; the final Keras module belongs to the final one.
      is_final: whether its symbols are what the legacy ones of the family are migrated to.
      is_current: whether the newest TensorFlow has it; for a namespace of the shim, its twin.
    """

    name: str
    family: Family
    is_final: bool
    is_current: bool

    @property
    def has_others(self) -> bool:
        """Whether it also holds things that the shim's module does not have."""
        return self.name not in _WHOLE

    @property
    def groups(self) -> tuple[Group, ...]:
        """The groups of symbols that it has; the modules of Keras have those of each other."""
        if self.name.startswith("keras"):
            return (Group.KERAS_OPTIMIZERS, Group.POLICIES)
        return (Group(self.family.value),)

    @property
    def twin(self) -> str:
        """The path of the shim's module of this name."""
        return f"{_SHIM}.{self.name}"


_WHOLE = (
    "contrib.mixed_precision",
    "keras.mixed_precision",
    _EXPERIMENTAL,
    "mixed_precision.experimental",
)
"""The modules of which everything is in the shim's module of the same name."""


@functools.lru_cache(maxsize=4096)
def namespace_of(path: str) -> Optional[Namespace]:
    """The module of legacy symbols, of TensorFlow or the shim, that `path` means, or None."""
    root, rest = _split(path)
    is_private = rest in _PRIVATE and root != ON_SHIM
    name = _public_module(rest) if is_private else rest
    if root is None or name not in _NAMESPACES:
        return None
    family = _FAMILIES[name]
    if root == ON_SHIM and family not in _ON_SHIM:
        return None
    is_current = not is_private and _is_current(name, family, path)
    is_final = family in _STAY_ON_SHIM if root == ON_SHIM else is_current
    return Namespace(name, family, is_final, is_current)


def is_whole(path: str) -> bool:
    """Whether a path is a removed module of TensorFlow, and the shim has everything in it."""
    module = namespace_of(path)
    if module is None or module.is_current or is_of_shim(path):
        return False
    return not module.has_others and module.family is not Family.FINAL


def is_absent_from_shim(path: str) -> bool:
    """Whether a path is a name in one of the shim's modules that this module does not have.

    The final module is none of these: each Keras has other names there.
    """
    module, _, name = path.partition(".")[2].rpartition(".")
    is_known = module in NAMESPACES and _FAMILIES.get(module) is not Family.FINAL
    if not is_of_shim(path) or not is_known or is_special(name):
        return False
    is_module = any(f"{space}.".startswith(f"{module}.{name}.") for space in NAMESPACES)
    return not (is_module or name in NAMESPACES[module])


def is_special(name: str) -> bool:
    """Whether every module has a name, or may have it: `__dict__`."""
    return name.startswith("__")


def _public_module(module: str) -> str:
    """The public module that has most names of a private one."""
    modules = [path.rpartition(".")[0] for path in _PRIVATE[module].values()]
    return max(modules, key=modules.count)


def twin_of(path: str) -> str:
    """The path in the shim of what a legacy path names, a symbol or a module."""
    named = legacy_of(path) or namespace_of(path)
    return named.twin if named is not None else path


def shown_path(path: str) -> str:
    """A path as programs write it: `tf.keras...`, `tfls.keras...`."""
    first, _, rest = path.partition(".")
    if first == _SHIM:
        return f"tfls.{rest}"
    return f"tf.{rest}" if first in _TENSORFLOW else path
