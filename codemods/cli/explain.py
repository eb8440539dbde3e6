"""What rules do: `tf-lossscale rules` and `explain`; `docs/rule_pages.py` writes it as pages."""

from __future__ import annotations

import functools
import textwrap
from typing import NamedTuple

from ..engine.transform import transform
from ..model import Finding, Safety, Target
from ..rules.codes import Code, codes
from ..rules.rule import Example, Rule

__all__ = ["Group", "codes_of", "explained", "findings_of", "grouped", "listed", "options_of"]


class Group(NamedTuple):
    """The examples of a rule with one kind of result.

    Attributes:
      title: what becomes of them.
      examples: these examples, in the order of the rule.
    """

    title: str
    examples: list[Example]


def listed() -> str:
    """One line for each rule code."""
    return "".join(f"{code.code}  {code.words}\n" for code in codes())


def explained(prefixes: tuple[str, ...]) -> str:
    """What the rules with these codes do, why, and their examples."""
    return "\n\n".join(_text(code) for code in codes() if code.code.startswith(prefixes))


@functools.lru_cache(maxsize=None)
def findings_of(example: Example) -> tuple[Finding, ...]:
    """What the command reports about an example, by all rules."""
    return transform(example.before.encode(), example.options).findings


def codes_of(example: Example) -> set[str]:
    """The codes of the findings about an example."""
    return {finding.code for finding in findings_of(example)}


def grouped(rule: Rule, code: str = "") -> list[Group]:
    """The examples of a rule: rewritten, only reported, and neither.

    Those with a finding of `code` come first.
    """
    rewritten: list[Example] = []
    reported: list[Example] = []
    left: list[Example] = []
    for example in sorted(rule.examples, key=lambda example: code not in codes_of(example)):
        is_rewritten = example.after is not None
        is_reported = bool(findings_of(example))
        (rewritten if is_rewritten else reported if is_reported else left).append(example)
    groups = [
        Group("Before and after", rewritten),
        Group("Reported, and not rewritten", reported),
        Group("Not reported", left),
    ]
    return [group for group in groups if group.examples]


def _text(code: Code) -> str:
    parts = [f"{code.code}: {code.words}", code.text]
    for group in grouped(code.rule, code.code):
        parts += [f"{group.title}:", *map(_example, group.examples)]
    return "\n\n".join(parts) + "\n"


def _example(example: Example) -> str:
    sources = [source for source in (example.before, example.after) if source is not None]
    shown = [textwrap.indent(textwrap.dedent(source).strip("\n"), "    ") for source in sources]
    text = f"  {example.id} ({options_of(example)}):\n\n" + "\n\n  becomes\n\n".join(shown)
    found = "".join(f"\n  {line}" for line in map(_finding, findings_of(example)))
    return f"{text}\n{found}" if found else text


def _finding(finding: Finding) -> str:
    return f"line {finding.line}: {finding.code} {finding.outcome.value}: {finding.message}"


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
