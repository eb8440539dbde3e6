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


def explained(prefixes: tuple[str, ...], all_examples: bool) -> str:
    """What the rules with these codes do, why, and examples."""
    found = [code for code in codes() if code.code.startswith(prefixes)]
    return "\n\n".join(_text(code, all_examples) for code in found)


def _text(code: Code, all_examples: bool) -> str:
    parts = [f"{code.code}: {code.words}", code.text]
    examples = code.rule.examples
    rewritten = [example for example in examples if example.after is not None]
    left = [example for example in examples if example.after is None]
    left.sort(key=lambda example: example.outcome is None)
    if not all_examples:
        rewritten, left = rewritten[: 1 if left else 2], left[: 1 if rewritten else 2]
    for title, shown in (("Before and after:", rewritten), ("Not rewritten:", left)):
        if shown:
            parts += [title, *map(_example, shown)]
    more = len(examples) - len(rewritten) - len(left)
    if more:
        words = "1 more example" if more == 1 else f"{more} more examples"
        parts.append(f"{words}: tf-lossscale explain {code.code} --all")
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
