"""A trap: a few lines of a program whose obvious rewrite is wrong, some words of it drawn."""

from __future__ import annotations

import random
import re
import string
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from .program import REWRITTEN


class Trap(NamedTuple):
    """A trap of a table; `drawn` fills in its words.

    Attributes:
      lines: statements that leave an optimizer: in `opt` (Keras) or `optimizer` (graph mode).
      expected: what must become of it.
      draws: name to the words of which one is drawn, in this order. A word may hold earlier names.
      before: statements at the start of the program.
      after: statements at its end.
      train: what follows instead of the usual training.
      scale: what to read as the loss scale; empty where nothing is read.
      unscaled_if: a word that leaves no loss-scale optimizer where it is drawn, or "always".
      scaled: whether a loss-scale optimizer is left by the words that were drawn.
      to_shim: what must become of it with `--to shim`, unless `expected` allows anything.
    """

    lines: list[str]
    draws: Mapping[str, Sequence[str]]
    expected: str = REWRITTEN
    before: Sequence[str] = ()
    after: Sequence[str] = ()
    train: Sequence[str] = ()
    scale: str = ""
    unscaled_if: str = "never"
    scaled: bool = True
    to_shim: str = REWRITTEN

    def drawn(self, rng: random.Random) -> Trap:
        """The trap with its words."""
        words: dict[str, str] = {}
        for name, those in self.draws.items():
            words[name] = string.Template(rng.choice(those)).substitute(words)

        def filled(lines: Sequence[str]) -> list[str]:
            text = string.Template("\n".join(lines)).substitute(words)
            return text.split("\n") if text else []

        return self._replace(
            lines=filled(self.lines),
            before=filled(self.before),
            after=filled(self.after),
            train=filled(self.train),
            scale="".join(filled([self.scale])),
            scaled=self.unscaled_if not in ("always", *words.values()),
        )


def traps(text: str) -> dict[str, Trap]:
    """The traps of a table, by name.

    `# ` begins the name, and after a colon why it is a trap; `$name: ` the words of which one is
    drawn; `> ` an attribute, or the statements below it. In the statements, `{inner}` stands for a
    new inner optimizer, `{tf}` for TensorFlow, `{v1}` for its `compat.v1`, and `{Symbol}` for a
    legacy symbol.
    """
    found = {}
    for block in re.split(r"^# ", textwrap.dedent(text), flags=re.MULTILINE)[1:]:
        head, *lines = re.sub(r"\n +\| ", " | ", block.rstrip()).split("\n")
        found[head.partition(":")[0]] = _trap(lines)
    return found


def _trap(lines: Sequence[str]) -> Trap:
    draws: dict[str, list[str]] = {}
    section: list[str] = []
    fields: dict[str, Any] = {"lines": section}
    for line in lines:
        if line.startswith("$"):
            for draw in line[1:].split("; $"):
                name, _, words = draw.partition(":")
                draws[name] = [word.strip().replace("\\n", "\n") for word in words.split("|")]
        elif line.startswith("> "):
            name, _, value = line[2:].partition(":")
            fields[name] = value.strip()
            if not value:
                section = fields[name] = []
        else:
            section.append(line[2:])
    return Trap(draws=draws, **fields)
