"""What rules are tested with, and `transform` for tests that meet a source again."""

import ast
import functools
import re
import textwrap

from tf_lossscale_codemods.engine.transform import transform
from tf_lossscale_codemods.model import FileResult, Options, Safety, Target
from tf_lossscale_codemods.rules.rule import Example

transform_once = functools.lru_cache(maxsize=None)(transform)
"""`transform`, once for each source and its options. What it returns is never changed."""

_OPTIONS: dict[str, dict] = {
    "--to shim": {"target": Target.SHIM},
    "--keras 3": {"keras": 3},
    "--unsafe": {"unsafe": True},
}


def transformed(source: str, options: Options) -> FileResult:
    result = transform(source.encode(), options)
    assert result.error is None, result.error
    return result


def examples(text: str) -> tuple[Example, ...]:
    """The examples of a text: for each, `# ` and its name, then its source as a diff.

    `> ` begins a line with the outcome, the options of the command, and after a colon a part of a
    message. Without an outcome, an edit is safe, and a source that stays has no finding.
    """
    blocks = re.split(r"^# ", textwrap.dedent(text), flags=re.MULTILINE)[1:]
    return tuple(_example(*block.rstrip().split("\n", 1)) for block in blocks)


def _example(name: str, text: str) -> Example:
    words, message = "", ""
    if text.startswith("> "):
        first, text = text[2:].split("\n", 1)
        words, _, message = first.partition(": ")
    lines = text.split("\n")
    before = "".join(f"{line[2:]}\n" for line in lines if not line.startswith("+"))
    after = "".join(f"{line[2:]}\n" for line in lines if not line.startswith("-"))
    example = Example(name, before, None if before == after else after, message_contains=message)
    if before != after:
        example = example._replace(outcome=Safety.SAFE)
    for word in filter(None, words.split(", ")):
        example = example._replace(**_OPTIONS.get(word) or {"outcome": Safety(word)})
    return example


def check(example: Example) -> None:
    """The source becomes the expected one, which parses and is left alone the second time.

    Where none is expected, nothing is edited. The findings have the outcome that the example names,
    or there are none.
    """
    before = textwrap.dedent(example.before)
    after = before if example.after is None else textwrap.dedent(example.after)
    assert example.after is None or after != before
    ast.parse(before)
    ast.parse(after)
    result = transformed(before, example.options)
    assert result.source.decode() == after
    again = transformed(after, example.options)
    assert again.source.decode() == after
    assert not [finding for finding in again.findings if finding.applied]
    _check_findings(example, result)


def _check_findings(example: Example, result: FileResult) -> None:
    outcomes = {finding.outcome for finding in result.findings}
    if example.outcome is None:
        assert not result.findings
    else:
        assert example.outcome in outcomes, result.findings
    if example.message_contains:
        assert any(example.message_contains in finding.message for finding in result.findings), (
            result.findings
        )
