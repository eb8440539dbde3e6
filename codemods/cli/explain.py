"""What rules do: `tf-lossscale rules` and `explain`; `docs/rule_pages.py` writes it as pages."""

from __future__ import annotations

import textwrap

from ..model import Safety, Target
from ..rules.codes import Code, codes
from ..rules.rule import Example

__all__ = ["explained", "listed", "options_of"]


def listed() -> str:
    """One line for each rule code."""
    return "".join(f"{code.code}  {code.words}\n" for code in codes())


def explained(prefixes: tuple[str, ...]) -> str:
    """What the rules with these codes do, why, and their examples."""
    return "\n\n".join(_text(code) for code in codes() if code.code.startswith(prefixes))


def _text(code: Code) -> str:
    parts = [f"{code.code}: {code.words}", code.text]
    for title, is_rewritten in (("Before and after:", True), ("Not rewritten:", False)):
        shown = [one for one in code.rule.examples if (one.after is not None) is is_rewritten]
        if shown:
            parts += [title, *map(_example, shown)]
    return "\n\n".join(parts) + "\n"


def _example(example: Example) -> str:
    sources = [source for source in (example.before, example.after) if source is not None]
    shown = [textwrap.indent(textwrap.dedent(source).strip("\n"), "    ") for source in sources]
    return f"  {example.id} ({options_of(example)}):\n\n" + "\n\n  becomes\n\n".join(shown)


def options_of(example: Example) -> str:
    """The command-line options of an example, and its outcome."""
    words = [f"--to {example.target.value}"]
    if example.target is Target.FINAL:
        keras = "auto, version unknown" if example.keras is None else str(example.keras)
        words.append(f"--keras {keras}")
    if example.unsafe:
        words.append("--unsafe")
    text = " ".join(words)
    if isinstance(example.outcome, Safety):
        text += f": {example.outcome.value}"
    return text
