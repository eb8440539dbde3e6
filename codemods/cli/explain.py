"""What rules do: `tf-lossscale rules` and `explain`; `docs/rule_pages.py` writes it as pages."""

from __future__ import annotations

import textwrap
from typing import TextIO

from ..files.diffs import unified
from ..model import Safety, Target
from ..rules.codes import Code, codes
from ..rules.rule import Example

__all__ = ["explain", "list_rules", "options_of"]


def list_rules(stream: TextIO) -> int:
    """Prints one line for each rule code."""
    for code in codes():
        stream.write(f"{code.code}  {code.words}\n")
    return 0


def explain(prefixes: tuple[str, ...], stream: TextIO, all_examples: bool = False) -> int:
    """Prints what the rules with these codes do, why, and examples."""
    found = [code for code in codes() if code.code.startswith(prefixes)]
    stream.write("\n\n".join(_text(code, all_examples) for code in found))
    return 0


def _text(code: Code, all_examples: bool) -> str:
    parts = [f"{code.code}: {code.words}", code.rule.docstring, f"Upstream: {code.rule.upstream}"]
    others = [
        f"  {other}  {words}" for other, words in code.rule.codes.items() if other != code.code
    ]
    if others:
        parts.append("Other codes of this rule:\n" + "\n".join(others))
    rewritten = [example for example in code.rule.examples if example.after is not None]
    left = [example for example in code.rule.examples if example.after is None]
    left.sort(key=lambda example: example.outcome is None)
    if not all_examples:
        rewritten, left = rewritten[: 1 if left else 2], left[: 1 if rewritten else 2]
    if rewritten:
        parts.append("Before and after:")
        parts += [_example(example) for example in rewritten]
    if left:
        parts.append("Not rewritten:")
        parts += [_example(example) for example in left]
    more = len(code.rule.examples) - len(rewritten) - len(left)
    if more:
        examples = "1 more example" if more == 1 else f"{more} more examples"
        parts.append(f"{examples}: tf-lossscale explain {code.code} --all")
    return "\n\n".join(parts) + "\n"


def _example(example: Example) -> str:
    before = textwrap.dedent(example.before).strip("\n") + "\n"
    head = f"  {example.id} ({options_of(example)})"
    if example.after is None:
        return head + ":\n\n" + textwrap.indent(before, "    ").rstrip("\n")
    after = textwrap.dedent(example.after).strip("\n") + "\n"
    diff = unified("", before.encode(), after.encode()).decode()
    body = "".join(line for line in diff.splitlines(True)[2:] if not line.startswith("@@"))
    return head + ":\n\n" + textwrap.indent(body, "    ").rstrip("\n")


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
