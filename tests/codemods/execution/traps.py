"""A trap: a few lines of a program whose obvious rewrite is wrong, some words of it drawn."""

from __future__ import annotations

import random
import string
import textwrap
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from .program import REWRITTEN


class Drawn(NamedTuple):
    """The lines of a trap, each word drawn. Attributes as those of `Trap`."""

    lines: list[str]
    expected: str
    scaled: bool
    scale: str
    before: list[str]
    after: list[str]
    train: list[str]
    to_shim: str


class Trap(NamedTuple):
    """A row of a table of traps.

    In all lines `{inner}` stands for a new inner optimizer, `{tf}` for TensorFlow, `{v1}` for its
    `compat.v1`, `{Symbol}` for a legacy symbol, and `$name` for one of the words below `draws`.

    Attributes:
      lines: statements that leave an optimizer: in `opt` (Keras) or `optimizer` (graph mode).
      expected: what must become of it.
      draws: name to the words of which one is drawn, in this order. A word may hold earlier names.
      before: statements at the start of the program.
      after: statements at its end.
      train: what follows instead of the usual training.
      scale: what to read as the loss scale; empty where nothing is read.
      scaled: whether the optimizer is a loss-scale optimizer in the end.
      to_shim: what must become of it with `--to shim`, unless `expected` allows anything.
      unscaled_if: a word that makes it none where it is drawn.
    """

    lines: str
    expected: str = REWRITTEN
    draws: Mapping[str, Sequence[str]] = {}
    before: str = ""
    after: str = ""
    train: str = ""
    scale: str = ""
    scaled: bool = True
    unscaled_if: str = ""
    to_shim: str = REWRITTEN

    def drawn(self, rng: random.Random) -> Drawn:
        """The trap with its words."""
        words: dict[str, str] = {}
        for name, those in self.draws.items():
            words[name] = string.Template(rng.choice(those)).substitute(words)

        def filled(text: str) -> list[str]:
            lines = textwrap.dedent(text).strip("\n")
            return string.Template(lines).substitute(words).split("\n") if lines else []

        return Drawn(
            filled(self.lines),
            self.expected,
            self.scaled and (not self.unscaled_if or self.unscaled_if not in words.values()),
            "".join(filled(self.scale)),
            filled(self.before),
            filled(self.after),
            filled(self.train),
            self.to_shim,
        )
