"""LS913: a test of the version that does not compare numbers, and the line to write for it."""

import types

import packaging.version
import pytest
from tf_lossscale_codemods.model import Options, Safety
from verbs import transformed

SOURCE = """\
import tensorflow as tf
from packaging import version

VERSION = tf.__version__
MINOR = int(tf.__version__[2])
if {}:
    tf.keras.mixed_precision.set_global_policy("mixed_float16")
else:
    tf.keras.mixed_precision.experimental.set_policy("mixed_float16")
"""
RELEASES = ["1.15.5", *(f"2.{minor}.1" for minor in range(22))]
FROM_2_4 = {f"2.{minor}.1" for minor in range(4, 22)}
IN_WORDS = "a comparison of version.parse(tf.__version__) where this is made"
TESTS = {
    "tf.__version__ >= '2.4'": FROM_2_4,
    "'2.4' <= tf.__version__": FROM_2_4,
    "VERSION >= '2.4.0'": FROM_2_4,
    "float(tf.__version__[:3]) >= 2.4": FROM_2_4,
    "tf.__version__.split('.')[:2] >= ['2', '4']": FROM_2_4,
    "tf.version.VERSION > '2.4'": FROM_2_4,
    "'2.1' <= tf.__version__ < '2.4'": {"2.1.1", "2.2.1", "2.3.1"},
    "tf.__version__[:3] in ('2.1', '2.3')": {"2.1.1", "2.3.1"},
    "tf.__version__[:3] == '2.1'": {"2.1.1"},
    "tf.__version__[:3] != '2.1'": {*RELEASES} - {"2.1.1"},
    "tf.__version__.startswith('2.1')": {"2.1.1"},
    "tf.__version__.startswith(('2.1', '2.2'))": {"2.1.1", "2.2.1"},
}
OF_MINOR = ["tf.__version__[2] >= '4'", "MINOR >= 4", "'4' <= tf.__version__.split('.')[1]"]
RIGHT = [
    "tf.__version__ >= '2'",
    "tf.__version__ < '2.0'",
    "tf.__version__[0] == '2'",
    "tf.__version__[:4] in ('2.10', '2.11')",
    "tf.__version__.startswith('2.')",
    "tf.__version__.startswith('2.10')",
    "tf.__version__ in ('2.1.0', '2.3.0')",
    "int(tf.__version__.split('.')[1]) >= 4",
    "version.parse(tf.__version__) >= version.parse('2.4')",
]


def messages(test):
    result = transformed(SOURCE.format(test), Options())
    found = [reported for reported in result.findings if reported.code == "LS913"]
    assert all(reported.outcome is Safety.MANUAL for reported in found)
    return [reported.message for reported in found]


def releases_with(line):
    """The releases of TensorFlow for which a line of Python is true."""
    names = {"version": packaging.version}
    found = set()
    for release in RELEASES:
        tf = types.SimpleNamespace(__version__=release)
        tf.version = types.SimpleNamespace(VERSION=release)
        if eval(line, {**names, "tf": tf, "VERSION": release}):
            found.add(release)
    return found


def written(message):
    assert message.endswith(", with `from packaging import version`")
    return message.rpartition(", with ")[0].partition(": write ")[2]


@pytest.mark.parametrize("test", TESTS)
def test_the_line_to_write_compares_numbers(test):
    (message,) = messages(test)
    assert releases_with(written(message)) == TESTS[test]


@pytest.mark.parametrize("test", OF_MINOR)
def test_the_line_to_write_compares_minor_versions(test):
    (message,) = messages(test)
    assert releases_with(written(message)) >= FROM_2_4


@pytest.mark.parametrize("test", RIGHT)
def test_what_compares_numbers_or_whole_texts_is_right(test):
    assert messages(test) == []


def test_what_has_no_line_is_said_in_words():
    (message,) = messages("tf.__version__[2:3] in '456789'")
    assert written(message) == IN_WORDS


FLAGS = {
    "a flag": "OLD = tf.__version__ < '2.4'\nif not OLD:\n    {}\n",
    "a flag of a flag": "A = tf.__version__ < '2.4'\nOLD = A and True\nif not OLD:\n    {}\n",
    "a function": "def old():\n    return tf.__version__ < '2.4'\nif not old():\n    {}\n",
    "an exit": "def f():\n    if tf.__version__ < '2.4':\n        return\n    {}\n",
    "a conditional expression": "x = {} if tf.__version__ >= '2.4' else None\n",
    "the branch that is taken": "if tf.__version__ >= '2.3':\n    {}\n",
    "a use": "def f():\n    {}\nif tf.__version__ >= '2.4':\n    f()\n",
}


@pytest.mark.parametrize("use", ["experimental.set_policy", "set_global_policy"])
@pytest.mark.parametrize("form", FLAGS)
def test_a_comparison_is_found_through_what_it_makes(form, use):
    place = f"tf.keras.mixed_precision.{use}('mixed_float16')"
    result = transformed("import tensorflow as tf\n" + FLAGS[form].format(place), Options())
    assert len([reported for reported in result.findings if reported.code == "LS913"]) == 1


def test_a_comparison_that_decides_about_nothing_here_is_not_reported():
    source = "import tensorflow as tf\nif tf.__version__ < '2.4':\n    print('old')\n"
    use = "tf.keras.mixed_precision.experimental.set_policy('mixed_float16')\n"
    assert "LS913" not in [
        reported.code for reported in transformed(source + use, Options()).findings
    ]
