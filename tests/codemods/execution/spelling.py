"""How legacy names arrive in a program: the import styles that real repositories use."""

from __future__ import annotations

import random
import re
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, Optional

MODULE_ALIASES = ("mixed_precision", "prec", "mp", "amp")
SYMBOL_ALIASES = {
    "LossScaleOptimizer": ("LSO", "ScaledOptimizer"),
    "DynamicLossScale": ("DLS", "Dynamic"),
    "FixedLossScale": ("FLS", "Fixed"),
    "MixedPrecisionLossScaleOptimizer": ("MPLSO", "Amp"),
    "FixedLossScaleManager": ("FLSM", "FixedManager"),
    "ExponentialUpdateLossScaleManager": ("EULSM", "ExpManager"),
}


class Names(NamedTuple):
    """The lines that bind the names (the assignments after all imports), and what is written."""

    imports: list[str]
    assignments: list[str]
    written: dict[str, str]

    @property
    def bound(self) -> set[str]:
        """The names that the lines bind."""
        text = "\n".join([*self.imports, *self.assignments])
        plain = {name.split(".")[0] for name in self.written.values()}
        return {name for name in plain if re.search(rf"\b{name}\b", text)}


class Root(NamedTuple):
    """How a program imports TensorFlow: the name of a package, and that of `tf.compat.v1`."""

    name: str
    package: str
    v1: str
    imports: tuple[str, ...]
    assignments: tuple[str, ...] = ()


class Deep(NamedTuple):
    """A module below TensorFlow's public API that defines some of the symbols."""

    package: str
    module: str


class _Request(NamedTuple):
    """What a style is asked for; see `spell`."""

    rng: random.Random
    root: Root
    path: str
    symbols: Sequence[str]
    packages: Sequence[str]
    deep: Mapping[str, Deep]

    def package(self) -> str:
        return self.rng.choice(self.packages)

    def chain(self) -> str:
        """`tf.compat.v2` and the like: what stands before the path."""
        return self.root.name + self.package()[len(self.root.package) :]

    def aliases(self) -> dict[str, str]:
        return {
            symbol: self.rng.choice([symbol, *SYMBOL_ALIASES.get(symbol, ())])
            for symbol in self.symbols
        }


def spell(
    rng: random.Random,
    root: Root,
    path: str,
    symbols: Sequence[str],
    packages: Sequence[str] = (),
    deep: Optional[Mapping[str, Deep]] = None,
    taken: Collection[str] = (),
) -> Names:
    """Writes `symbols` of one public module in one of the styles seen in real code.

    Args:
      rng: decides the style.
      root: how the program imports TensorFlow.
      path: dotted path of the module below TensorFlow.
      symbols: what the program needs of it.
      packages: the importable packages that hold `path`, such as `tensorflow.compat.v2`, all of
        them below the root's; the root's own when none is given.
      deep: where each symbol is defined below the public API; absent where a program must not
        reach for that.
      taken: names that the program binds already.
    """
    styles = [_dotted, _dotted, _dotted, _from_parent, _from_module, _import_as, _assigned_module]
    styles += [_assigned_symbols, _first_component]
    if deep and all(symbol in deep for symbol in symbols):
        styles += [_deep_module, _deep_symbols]
    request = _Request(rng, root, path, symbols, packages or [root.package], deep or {})
    while True:
        names = rng.choice(styles)(request)
        if not names.bound & set(taken):
            return names


def _imported(symbol: str, alias: str) -> str:
    return symbol if symbol == alias else f"{symbol} as {alias}"


def _dotted(ask: _Request) -> Names:
    chain = ask.chain()
    return Names([], [], {each: f"{chain}.{ask.path}.{each}" for each in ask.symbols})


def _from_parent(ask: _Request) -> Names:
    parent, _, last = f"{ask.package()}.{ask.path}".rpartition(".")
    alias = ask.rng.choice([last, *MODULE_ALIASES])
    line = f"from {parent} import {_imported(last, alias)}"
    return Names([line], [], {symbol: f"{alias}.{symbol}" for symbol in ask.symbols})


def _from_module(ask: _Request) -> Names:
    aliases = ask.aliases()
    module = f"{ask.package()}.{ask.path}"
    names = [_imported(symbol, alias) for symbol, alias in aliases.items()]
    together = ask.rng.choice(["one line", "parentheses", "line each"])
    if together == "one line":
        lines = [f"from {module} import {', '.join(names)}"]
    elif together == "parentheses":
        lines = [f"from {module} import (", *(f"    {name}," for name in names), ")"]
    else:
        lines = [f"from {module} import {name}" for name in names]
    return Names(lines, [], aliases)


def _import_as(ask: _Request) -> Names:
    alias = ask.rng.choice(MODULE_ALIASES)
    line = f"import {ask.package()}.{ask.path} as {alias}"
    return Names([line], [], {symbol: f"{alias}.{symbol}" for symbol in ask.symbols})


def _assigned_module(ask: _Request) -> Names:
    alias = ask.rng.choice(MODULE_ALIASES)
    line = f"{alias} = {ask.chain()}.{ask.path}"
    return Names([], [line], {symbol: f"{alias}.{symbol}" for symbol in ask.symbols})


def _assigned_symbols(ask: _Request) -> Names:
    aliases, chain = ask.aliases(), ask.chain()
    lines = [f"{alias} = {chain}.{ask.path}.{symbol}" for symbol, alias in aliases.items()]
    return Names([], lines, aliases)


def _first_component(ask: _Request) -> Names:
    first = ask.path.partition(".")[0]
    line = f"from {ask.package()} import {first}"
    return Names([line], [], {symbol: f"{ask.path}.{symbol}" for symbol in ask.symbols})


def _deep_module(ask: _Request) -> Names:
    suffix = ask.rng.choice(["", "_lib"])
    modules = {ask.deep[symbol]: ask.deep[symbol].module + suffix for symbol in ask.symbols}
    lines = [
        f"from {place.package} import {_imported(place.module, alias)}"
        for place, alias in modules.items()
    ]
    return Names(
        lines, [], {symbol: f"{modules[ask.deep[symbol]]}.{symbol}" for symbol in ask.symbols}
    )


def _deep_symbols(ask: _Request) -> Names:
    aliases = ask.aliases()
    lines = [
        f"from {ask.deep[each].package}.{ask.deep[each].module} import {_imported(each, alias)}"
        for each, alias in aliases.items()
    ]
    return Names(lines, [], aliases)
