"""A source that is parsed in parts has the tree of the whole; its size is known before."""

import ast
import pathlib
import random

import libcst as cst
import pytest
from command_line import LEGACY
from tf_lossscale_codemods.engine import parts, tree_size
from tf_lossscale_codemods.engine.python_tree import SourceError
from tf_lossscale_codemods.engine.tree_size import MOST_MEMORY, PYTHON, TREES, check_sizes

PIECES = [
    "x = 1\n",
    "x = 1; y = 2; \\\nz = 3\n",
    "x = [\n  1,\n]\n",
    "# at the margin\n",
    "\n\n",
    "  \n",
    "    # indented\n",
    "def f(a):\n    # in it\n    return a\n",
    "def f(a):\n  return a\n  # at its end\n",
    "@decorator\n@decorators.other(\n    1\n)\nclass A:\n    b = 1\n",
    "if a: b\nelse:\n    c\n",
    'x = """\ntext\n  # no comment\n"""\n',
    "try:\n    a\nexcept B:\n    c\n",
    "x = 1 # and \\\n",
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=repr)
@pytest.mark.parametrize("seed", range(30))
def test_parts_give_the_same_tree(monkeypatch, seed, end):
    monkeypatch.setattr(parts, "_PART", 3)
    draw = random.Random(seed)
    text = "".join(draw.choice(PIECES) for _ in range(40))
    source = text.replace("\n", end).encode()[: None if seed % 3 else -len(end)]
    source = [b"", b"\xef\xbb\xbf", b"# -*- coding: utf-8 -*-\n"][seed % 3] + source
    tree = ast.parse(source)
    whole = cst.parse_module(source)
    merged = parts.parse_in_parts(source, tree)
    assert merged.bytes == whole.bytes
    assert merged.deep_equals(whole)


def test_long_sources_have_several_parts(monkeypatch):
    calls = []
    parse = cst.parse_module
    monkeypatch.setattr(cst, "parse_module", lambda source: calls.append(source) or parse(source))
    source = b"def f(a):\n    return a\n\n\n" * 4_000
    assert parts.parse_in_parts(source, ast.parse(source)).bytes == source
    assert len(calls) > 5
    assert b"".join(calls) == source


TOKENS = [
    (b"", 0),
    (b"x = 1\n", 4),
    (b"x = 'a, b, c'\n", 4),
    (b"x = 'a\\'b, c'\n", 4),
    (b'x = """a, b\n\'\\""" c\n"""\n', 4),
    (b"# a, b, c\n", 0),
    (b"x = 1  # a, b, c\n", 3),
    (b"x = '#'\n", 4),
    (b"x = rf'{a}{b}'\n", 12),
    (b"x = 'never closed\ny = 1\n", 8),
]


@pytest.mark.parametrize(("source", "count"), TOKENS)
def test_tokens_of_strings_and_comments_do_not_count(source, count):
    assert tree_size._tokens_of_code(source) == count
    assert tree_size.tokens_of(source) >= count - 2


def test_a_large_source_is_an_error():
    check_sizes([LEGACY * 1_000], TREES)
    statements = b"x = 1\n" * 60_000
    check_sizes([statements], PYTHON)
    with pytest.raises(SourceError) as raised:
        check_sizes([statements], TREES)
    assert f"more than {MOST_MEMORY // 2**20} MB" in raised.value.message
    assert raised.value.is_syntax
    check_sizes([b"x = '" + b"a, " * 2_000_000 + b"'\n"], TREES)


def test_a_megabyte_of_ordinary_code_is_about_the_limit():
    package = pathlib.Path(parts.__file__).parents[1]
    own = b"".join(path.read_bytes() for path in sorted(package.rglob("*.py")))
    own *= 2_000_000 // len(own) + 1
    check_sizes([own[:750_000]], TREES)
    with pytest.raises(SourceError):
        check_sizes([own[:1_333_000]], TREES)


def test_a_large_source_without_a_legacy_name_is_a_warning(command_line):
    statements = b"x = 1\n" * 60_000
    command_line.write(a=b"use = FLAGS.mixed_precision\n" + statements)
    ran = command_line.run("migrate", "--check")
    assert ran.status == 0
    assert ran.err.startswith("a.py: warning: not checked, but without a legacy name")
    assert "needs more than 225 MB" in ran.err
    command_line.write(a=LEGACY + statements)
    ran = command_line.run("migrate", "--check")
    assert ran.status == 2
    assert ran.err.startswith("a.py: error: needs more than 225 MB")
