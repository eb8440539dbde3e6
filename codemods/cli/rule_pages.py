"""What rules do, for `tf-lossscale rules` and `explain`, and as the pages of the documentation.

`python -m tf_lossscale_codemods.cli.rule_pages FOLDER` writes the pages.
"""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Iterator, Sequence
from typing import TextIO

from ..files.diffs import unified
from ..model import Safety, Target
from ..rules.codes import Code, codes
from ..rules.registry import rules
from ..rules.rule import Example, Rule
from .request import prefixes_in

__all__ = ["explain", "list_rules", "main", "pages"]


def list_rules(stream: TextIO) -> int:
    """Prints one line for each rule code."""
    for code in codes():
        stream.write(f"{code.code}  {code.words}\n")
    return 0


def explain(names: Sequence[str], stream: TextIO, all_examples: bool = False) -> int:
    """Prints what rules do, why, and examples; returns 2 if no code starts with one of `names`."""
    try:
        prefixes = prefixes_in(names)
    except ValueError as error:
        print(f"tf-lossscale: error: {error}", file=sys.stderr)
        return 2
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


def pages() -> dict[str, str]:
    """Returns the text of `index.md` and of a page for each rule, by file name."""
    written = {f"{rule.slug}.md": _page(rule) for rule in rules()}
    written["index.md"] = _index()
    return written


def main() -> int:
    """Writes the pages to the given folder, and removes the pages of rules that no longer exist."""
    if len(sys.argv) != 2:
        print(f"usage: {sys.argv[0]} FOLDER", file=sys.stderr)
        return 2
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    written = pages()
    for name in set(os.listdir(folder)) - set(written):
        os.unlink(os.path.join(folder, name))
    for name, text in written.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)
    return 0


def _index() -> str:
    lines = [
        "# The rules",
        "",
        "`tf-lossscale rules` prints this list, and `tf-lossscale explain CODE --all` one page.",
        "The meaning of a code never changes. The outcomes *safe*, *unsafe* and *manual* are",
        "explained under [outcomes](../migrate.md#outcomes).",
    ]
    family = ""
    for code in codes():
        if code.rule.family != family:
            family = code.rule.family
            lines += [
                "",
                f"## {family}",
                "",
                "| code | what | rule |",
                "|---|---|---|",
            ]
        lines.append(
            f"| [{code.code}]({code.rule.slug}.md) | {_cell(code.words)} | {_cell(code.summary)} |"
        )
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _page(rule: Rule) -> str:
    title = ", ".join(sorted(rule.codes))
    parts = [f"# {title}: {rule.summary}\n"]
    parts.append("".join(f"- **{code}**: {words}\n" for code, words in sorted(rule.codes.items())))
    parts.append(rule.docstring + "\n")
    parts.append(f"Upstream: {_linked(rule.upstream)}\n")
    for title, is_rewritten in (("Before and after", True), ("Not rewritten", False)):
        shown = [one for one in rule.examples if (one.after is not None) is is_rewritten]
        if shown:
            parts.append(f"## {title}\n")
            parts += [part for example in shown for part in _example_lines(example)]
    return "\n".join(parts)


def _linked(text: str) -> str:
    return " ".join(
        f"<{word}>" if word.startswith(("http://", "https://")) else word
        for word in text.split(" ")
    )


def _example_lines(example: Example) -> Iterator[str]:
    yield f"### {example.id[:1].upper()}{example.id[1:]}\n"
    yield (
        f"`{options_of(example)}`\n"
        if example.outcome
        else f"`{options_of(example)}`, no finding\n"
    )
    yield _block(example.before)
    if example.after is not None:
        yield "becomes\n"
        yield _block(example.after)
    if example.message_contains:
        yield f"The message contains: “{example.message_contains}”\n"


def _block(source: str) -> str:
    return f"```python\n{textwrap.dedent(source).strip(chr(10))}\n```\n"


if __name__ == "__main__":
    sys.exit(main())
