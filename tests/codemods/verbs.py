"""What rules are tested with, and `transform` for tests that meet a source again."""

import ast
import functools
import textwrap

from tf_lossscale_codemods.engine.transform import transform
from tf_lossscale_codemods.model import FileResult, Options
from tf_lossscale_codemods.rules.rule import Example

transform_once = functools.lru_cache(maxsize=None)(transform)
"""`transform`, once for each source and its options. What it returns is never changed."""


def transformed(source: str, options: Options) -> FileResult:
    result = transform(source.encode(), options)
    assert result.error is None, result.error
    return result


def check(example: Example):
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


def _check_findings(example: Example, result: FileResult):
    outcomes = {finding.outcome for finding in result.findings}
    if example.outcome is None:
        assert not result.findings
    else:
        assert example.outcome in outcomes, result.findings
    if example.message_contains:
        assert any(example.message_contains in finding.message for finding in result.findings), (
            result.findings
        )
