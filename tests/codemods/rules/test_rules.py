"""The examples of the rules, run with all rules together, as the command runs them."""

import ast
import re
import textwrap

import pytest
from tf_lossscale_codemods.cli.explain import explained, findings_of
from tf_lossscale_codemods.model import Options
from tf_lossscale_codemods.rules.codes import codes, rules
from verbs import check, transform_once as transform, transformed

from examples import EXAMPLES as FURTHER, all_examples

EXAMPLES = {f"{rule.slug}: {example.id}": example for rule, example in all_examples()}
EDITED = [name for name, example in EXAMPLES.items() if example.after is not None]
LIBRARIES = ("tensorflow", "tensorflow_core", "keras", "tf_keras", "tf_lossscale")


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)
def test_example(example):
    check(example)


def test_further_examples_are_of_rules():
    assert FURTHER.keys() <= {rule.slug for rule in rules()}


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.slug)
def test_rule_is_told_in_full(rule):
    assert rule.summary
    assert rule.upstream
    assert rule.docstring
    assert 0 < len(rule.examples) <= 12
    ids = [example.id for example in [*rule.examples, *FURTHER.get(rule.slug, ())]]
    assert len(ids) == len(set(ids))


WITHOUT_EXAMPLES = ("LS403", "LS910")
"""A code that is no longer reported, and one for lines of notebooks."""


@pytest.mark.parametrize("code", codes(), ids=lambda code: code.code)
def test_every_code_has_two_examples_and_their_whole_messages(code):
    text = explained((code.code,))
    assert "message contains" not in text
    with_code = [
        example
        for example in code.rule.examples
        if code.code in [finding.code for finding in findings_of(example)]
    ]
    assert len(with_code) >= 2 or code.code in WITHOUT_EXAMPLES
    for example in with_code:
        for finding in findings_of(example):
            assert f"line {finding.line}: {finding.code} {finding.outcome.value}: " in text
            assert finding.message in text


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("LS301", "opt = tf.keras.mixed_precision.LossScaleOptimizer(opt)"),
        ("LS303", "print(opt.inner_optimizer.learning_rate)"),
        ("LS406", 'tfls.keras.mixed_precision.set_global_policy("mixed_float16")'),
    ],
)
def test_explain_shows_the_ordinary_rewrite(code, line):
    after = explained((code,)).partition("  becomes\n")[2]
    assert line in after


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.slug)
def test_no_ops_come_first(rule):
    rewrites = [example.after is not None for example in rule.examples]
    assert rewrites == sorted(rewrites)


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)
def test_every_example_goes_the_safe_way_for_keras_3(example):
    """For an unknown Keras version, as that result runs on both."""
    source = textwrap.dedent(example.before).encode()
    both, keras_3 = (
        transform(source, Options(target=example.target, keras=keras)) for keras in (None, 3)
    )
    assert both == keras_3


@pytest.mark.parametrize("unsafe", [False, True])
def test_the_final_class_moves_to_the_shim_for_both_keras_versions(unsafe):
    """Also with `--unsafe`: the class of Keras 3 lacks the methods that Keras 2 code calls."""
    final = "tf.keras.mixed_precision.LossScaleOptimizer"
    before = f"import tensorflow as tf\n\nopt = {final}(opt)\n".encode()
    after = transform(before, Options(keras=None, unsafe=unsafe)).source
    assert b"opt = tfls.keras.mixed_precision.LossScaleOptimizer(opt)" in after
    assert transform(before, Options(keras=2)).source == before


def from_elsewhere(source):
    """The source with imports from another library."""
    pattern = r"^(\s*(?:import|from)\s+)(?:{})\b".format("|".join(LIBRARIES))
    return re.sub(pattern, r"\1otherlib", source, flags=re.MULTILINE)


def parameters(source):
    """The source in a function that is passed what the imports bind."""
    names = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names += [(alias.asname or alias.name).split(".")[0] for alias in node.names]
    lines = [line for line in source.splitlines() if not re.match(r"\s*(?:import|from)\s", line)]
    if not names or any("*" in name for name in names) or "(\n" in source.partition("\n\n")[0]:
        return None
    body = textwrap.indent("\n".join(lines), "    ")
    return f"def main({', '.join(dict.fromkeys(names))}):\n{body}\n    pass\n"


@pytest.mark.parametrize("mutate", [from_elsewhere, parameters], ids=lambda one: one.__name__)
@pytest.mark.parametrize("name", EDITED)
def test_nothing_is_edited_without_its_evidence(name, mutate):
    """Takes TensorFlow away from each example, mechanically."""
    example = EXAMPLES[name]
    source = mutate(textwrap.dedent(example.before))
    if source is None:
        return
    try:
        ast.parse(source)
    except SyntaxError:
        return  # a statement of several lines
    result = transformed(source, example.options)
    assert result.source.decode() == source
    assert not [finding for finding in result.findings if finding.applied]
