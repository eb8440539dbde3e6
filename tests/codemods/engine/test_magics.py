"""Magic and shell lines are masked for the parser, and restored afterwards."""

import ast

import pytest
from tf_lossscale_codemods.engine.magics import mask

UNTOUCHED = [
    pytest.param("x = 1\n", id="plain Python"),
    pytest.param("x = ('%s'\n     % 3)\n", id="a percent sign that continues an expression"),
    pytest.param("x = y \\\n% 3\n", id="a percent sign after a backslash"),
    pytest.param("s = '''\n!no\n%no\nno?\n'''\n", id="inside a string of several lines"),
    pytest.param('s = """\\"""\n!no\n"""\n', id="after a quote that a backslash keeps"),
    pytest.param("s = 'a\\\n!no'\n", id="inside a string that a backslash continues"),
    pytest.param("x = [  # it's (\n  1 # '''\n]\n", id="quotes and brackets in comments"),
    pytest.param("f(a,\n  # c\n  b)\nx != 3\nx %= 2\nx = x % 2\n", id="operators"),
    pytest.param("x = rb'''\n%no\n'''\n", id="prefixes of strings"),
    pytest.param("", id="an empty cell"),
]

HIDDEN = [
    pytest.param("%matplotlib inline\n", id="a line magic"),
    pytest.param("!pip install x", id="a shell line without a line end"),
    pytest.param("!pip install \\\n    x \\\n  y\nz = 1\n", id="a shell line that is continued"),
    pytest.param("if x:\n    !ls\n    y = 1\nelse:\n\t%time f()\n", id="inside blocks"),
    pytest.param("y = !ls\nx, z = %sx ls\n", id="assignments"),
    pytest.param("tf.keras?\nobj??\n?obj\n", id="help"),
    pytest.param("%%time\nx = 1\n", id="a cell magic whose body is Python"),
    pytest.param("%ls\r\nx = 1\r\n!a \\\r\n b\r\n", id="with carriage returns"),
    pytest.param("s = '''\n!no\n'''\n!yes\n", id="after a string of several lines"),
    pytest.param("f(\n)\n%a\n", id="after brackets"),
]


@pytest.mark.parametrize("source", UNTOUCHED)
def test_left_alone(source):
    ast.parse(source)
    assert mask(source).source == source


@pytest.mark.parametrize("source", HIDDEN)
def test_hidden_and_back(source):
    hidden = mask(source)
    assert hidden.source != source
    ast.parse(hidden.source)
    assert len(hidden.source.splitlines()) == len(source.splitlines())
    assert hidden.restore(hidden.source) == source
    # An edit elsewhere does not hinder: a line more above, one more below.
    assert hidden.restore(f"a = 1\n{hidden.source}\nb = 2\n") == f"a = 1\n{source}\nb = 2\n"


def test_an_assignment_still_binds_its_name():
    assert mask("tf = !ls\n").source.startswith("tf = 0#")


@pytest.mark.parametrize("magic", ["%%bash\nls", "%%writefile a.py\nimport x", "  %%html\n<p>"])
def test_a_cell_in_another_language(magic):
    assert mask(magic).source is None


def test_a_line_that_would_get_lost_is_an_error():
    hidden = mask("!ls\n")
    with pytest.raises(ValueError, match="'!ls' would get lost"):
        hidden.restore("x = 1\n")
    with pytest.raises(ValueError, match="would get lost"):
        hidden.restore(hidden.source * 2)
