"""Writes the pages about the rules: `python docs/rule_pages.py docs/rules`."""

from __future__ import annotations

import os
import re
import sys
import textwrap
from collections.abc import Iterator

from tf_lossscale_codemods.cli.explain import findings_of, grouped, options_of
from tf_lossscale_codemods.rules.codes import codes, rules
from tf_lossscale_codemods.rules.rule import Example, Rule

__all__ = ["main", "pages"]


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
        "`tf-lossscale rules` prints this list, and `tf-lossscale explain CODE` one page.",
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
            f"| [{code.code}]({code.rule.slug}.md) | {_cell(code.words)} "
            f"| {_cell(code.rule.summary)} |"
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
    for group in grouped(rule):
        parts.append(f"## {group.title}\n")
        parts += [part for example in group.examples for part in _example_lines(example)]
    return "\n".join(parts)


def _linked(text: str) -> str:
    return " ".join(
        f"<{word}>" if word.startswith(("http://", "https://")) else word
        for word in text.split(" ")
    )


def _example_lines(example: Example) -> Iterator[str]:
    """The source before and after, and the whole messages."""
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
    findings = [
        f"- line {found.line}: {found.code} {found.outcome.value}: {_escaped(found.message)}\n"
        for found in findings_of(example)
    ]
    if findings:
        yield "".join(findings)


_MARKS = re.compile(r"[*<>\[\]]|(?<![^\W_])_+|_+(?![^\W_])")
"""What can be a mark of Markdown: underscores within a word are none."""


def _without_meaning(marks: re.Match[str]) -> str:
    entities = {"<": "&lt;", ">": "&gt;"}  # mkdocs shows the backslash of `\<`
    return "".join(entities.get(mark, "\\" + mark) for mark in marks[0])


def _escaped(message: str) -> str:
    """A message as Markdown shows it: marks count in it only between backticks."""
    parts = message.split("`")
    parts[::2] = [_MARKS.sub(_without_meaning, part) for part in parts[::2]]
    return "`".join(parts)


def _block(source: str) -> str:
    return f"```python\n{textwrap.dedent(source).strip(chr(10))}\n```\n"


if __name__ == "__main__":
    sys.exit(main())
