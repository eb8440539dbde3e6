"""Takes TensorFlow away from each example of a rule, mechanically: nothing may be edited any more.

The mutations import the names from another library, or bind them again.
"""

import ast
import re
import textwrap

import pytest
from verbs import transformed

from examples import all_examples

LIBRARIES = ("tensorflow", "tensorflow_core", "keras", "tf_keras", "tf_lossscale")
EXAMPLES = {
    f"{rule.slug}: {example.id}": example
    for rule, example in all_examples()
    if example.after is not None
}


def from_elsewhere(source):
    """The source with imports from another library."""
    pattern = r"^(\s*(?:import|from)\s+)(?:{})\b".format("|".join(LIBRARIES))
    return re.sub(pattern, r"\1otherlib", source, flags=re.MULTILINE)


def parameters(source):
    """The source in a function that is passed what the imports bind."""
    names = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names += [(each.asname or each.name).split(".")[0] for each in node.names]
    lines = [line for line in source.splitlines() if not re.match(r"\s*(?:import|from)\s", line)]
    if not names or any("*" in name for name in names) or "(\n" in source.partition("\n\n")[0]:
        return None
    body = textwrap.indent("\n".join(lines), "    ")
    return f"def main({', '.join(dict.fromkeys(names))}):\n{body}\n    pass\n"


@pytest.mark.parametrize("mutate", [from_elsewhere, parameters], ids=lambda one: one.__name__)
@pytest.mark.parametrize("name", EXAMPLES)
def test_nothing_is_edited_without_its_evidence(name, mutate):
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
    assert not [one for one in result.findings if one.applied]
