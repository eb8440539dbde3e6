"""The examples on each rule, run with all rules together, as the command runs them."""

import pytest
from tf_lossscale_codemods.rules.registry import rule_of, rules
from verbs import check_noop, check_rewritten

EXAMPLES = [
    pytest.param(rule, example, id=f"{rule.slug}: {example.id}")
    for rule in rules()
    for example in rule.examples
]


@pytest.mark.parametrize(("rule", "example"), EXAMPLES)
def test_example(rule, example):
    if example.after is None:
        check_noop(example)
    else:
        check_rewritten(example)


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.slug)
def test_rule_is_told_in_full(rule):
    assert rule.summary
    assert rule.upstream
    assert rule.docstring
    assert rule.examples
    assert all(rule_of(code) is rule for code in rule.codes)
    ids = [example.id for example in rule.examples]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.slug)
def test_no_ops_come_first(rule):
    rewrites = [example.after is not None for example in rule.examples]
    assert rewrites == sorted(rewrites)
