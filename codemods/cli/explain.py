"""`tf-lossscale rules` and `tf-lossscale explain CODE`."""

from __future__ import annotations

import sys
import textwrap
from typing import TextIO

from ..files.diffs import unified
from ..model import Safety, Target
from ..rules.codes import Code, codes, nearest
from ..rules.rule import Example

__all__ = ["explain", "list_rules"]


def list_rules(stream: TextIO) -> int:
    """Prints one line for each rule code."""
    for code in codes():
        stream.write(f"{code.code}  {code.words}\n")
    return 0


def explain(name: str, stream: TextIO) -> int:
    """Prints what a rule does, why, and examples; returns 2 if no rule has the code `name`."""
    listed = codes()
    found = next((code for code in listed if code.code == name.upper()), None)
    if found is None:
        near = nearest(name.upper())
        hint = f"; did you mean {', '.join(near)}?" if near else "; see `tf-lossscale rules`"
        print(f"tf-lossscale: error: unknown rule code {name}{hint}", file=sys.stderr)
        return 2
    stream.write(_text(found))
    return 0


def _text(code: Code) -> str:
    parts = [f"{code.code}: {code.words}", code.rule.docstring, f"Upstream: {code.rule.upstream}"]
    others = [
        f"  {other}  {words}" for other, words in code.rule.codes.items() if other != code.code
    ]
    if others:
        parts.append("Other codes of this rule:\n" + "\n".join(others))
    rewritten = [example for example in code.rule.examples if example.after is not None]
    left = [example for example in code.rule.examples if example.after is None]
    if rewritten:
        parts.append("Before and after:")
        parts += [_example(example) for example in rewritten]
    if left:
        parts.append("Not rewritten:")
        parts += [_example(example) for example in left]
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
