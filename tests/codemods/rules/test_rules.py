"""The examples of the rules, run with all rules together, as the command runs them."""

import pytest
from tf_lossscale_codemods.rules.codes import rules
from verbs import check

from examples import EXAMPLES as FURTHER, all_examples

EXAMPLES = [
    pytest.param(example, id=f"{rule.slug}: {example.id}") for rule, example in all_examples()
]


@pytest.mark.parametrize("example", EXAMPLES)
def test_example(example):
    check(example)


def test_further_examples_are_of_rules():
    assert FURTHER.keys() <= {rule.slug for rule in rules()}


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.slug)
def test_rule_is_told_in_full(rule):
    assert rule.summary
    assert rule.upstream
    assert rule.docstring
    assert 0 < len(rule.examples) <= 5
    ids = [example.id for example in [*rule.examples, *FURTHER.get(rule.slug, ())]]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.slug)
def test_no_ops_come_first(rule):
    rewrites = [example.after is not None for example in rule.examples]
    assert rewrites == sorted(rewrites)
