"""The limits of the code's shape; `make lint` also measures complexity, with complexipy."""

import ast
import functools
import gzip
import io
import re
import tarfile
from typing import Iterator, Union

import pytest
from documents import ROOT, files, name_of

LONGEST = 40
"""Lines of a function, without its docstring."""

FOLDERS = ("tf_lossscale/", "codemods/", "tests/", "benchmarks/", "examples/", "docs/")
PACKED = (".gz", ".zip")

DOCUMENTED = 15
"""A function or class with as many lines, without its docstring, has a docstring."""

NAMELESS = {"one", "each"}
"""Loop variables are named after the thing that they stand for."""

RETIRED = re.compile(
    r"\b(?:ALONE|NOBODY|MENDED|mend(?:s|ed)?|theirs|makers|told|settle|asked_by_\w+|choosy|undecided"
    r"|agreed|handed_on|sure_value|way_from|plan_of_wraps|_held_together|with_room|not_converted"
    r"|keep_conditional_whole|KERAS_[ABC]|word_of|[Bb]ehaviour)\b"
)
"""Words that have a better one, in names as in sentences: one thing has one word."""

Function = Union[ast.FunctionDef, ast.AsyncFunctionDef]
Definition = Union[ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef]


@functools.lru_cache(maxsize=None)
def syntax(name: str) -> ast.Module:
    return ast.parse((ROOT / name).read_text(encoding="utf-8"))


def modules(*folders: str) -> Iterator[str]:
    return (name for name in map(name_of, files(".py")) if name.startswith(folders))


def length(function: Definition) -> int:
    """The lines of a function or class without its decorators and its docstring."""
    end = function.end_lineno or function.lineno
    lines = end - function.lineno + 1
    if ast.get_docstring(function) is not None:
        docstring = function.body[0]
        lines -= (docstring.end_lineno or docstring.lineno) - docstring.lineno + 1
    return lines


def undocumented(tree: ast.AST) -> Iterator[Definition]:
    """The long functions and classes without a docstring.

    Functions within functions are left out: the docstring of the outer one is about them, too. So
    are constructors of documented classes, whose arguments are in the docstring of the class.
    """
    is_documented = isinstance(tree, ast.ClassDef) and ast.get_docstring(tree) is not None
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            is_constructor = is_documented and child.name == "__init__"
            is_short = length(child) < DOCUMENTED or is_constructor
            if ast.get_docstring(child) is None and not is_short:
                yield child
        if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from undocumented(child)


def nameless_loops(tree: ast.AST) -> Iterator[int]:
    """The lines of the loops and comprehensions whose variable is called `one` or `each`."""
    for loop in ast.walk(tree):
        if not isinstance(loop, (ast.For, ast.AsyncFor, ast.comprehension)):
            continue
        for name in ast.walk(loop.target):
            if isinstance(name, ast.Name) and name.id in NAMELESS:
                yield name.lineno


def texts_in(packed: bytes) -> Iterator[bytes]:
    """What is in a gzip file; if that is an archive, what is in its files."""
    content = gzip.decompress(packed)
    try:
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            members = [archive.extractfile(member) for member in archive if member.isfile()]
            yield from (member.read() for member in members if member is not None)
    except tarfile.ReadError:
        yield content


def has_source(text: bytes) -> bool:
    return any(word in text for word in (b"import tensorflow", b"import keras", b"def "))


def test_functions_are_short():
    long = [
        f"{name}:{function.lineno}: {function.name} has {length(function)} lines"
        for name in modules("tf_lossscale/", "codemods/")
        for function in ast.walk(syntax(name))
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
        and length(function) > LONGEST
    ]
    assert long == []


def test_long_functions_and_classes_have_docstrings():
    found = [
        f"{name}:{definition.lineno}: {definition.name} has no docstring"
        for name in modules("tf_lossscale/", "codemods/")
        for definition in undocumented(syntax(name))
    ]
    assert found == []


def test_loop_variables_have_names():
    found = [
        f"{name}:{line}" for name in modules(*FOLDERS) for line in nameless_loops(syntax(name))
    ]
    assert found == []


def test_retired_words_stay_retired():
    found = [
        f"{name}:{number}: {match[0]}"
        for name in modules("tf_lossscale/", "codemods/")
        for number, line in enumerate((ROOT / name).read_text(encoding="utf-8").splitlines(), 1)
        for match in RETIRED.finditer(line)
    ]
    assert found == []


def test_no_source_is_packed():
    """A reviewer must be able to read a program in a diff: only recorded results may be packed."""
    names = list(map(name_of, files(*PACKED)))
    assert len(names) > 10
    assert [
        name for name in names if any(map(has_source, texts_in((ROOT / name).read_bytes())))
    ] == []


@pytest.mark.parametrize(
    "source",
    [
        "for one in range(3): pass",
        "for number, each in pairs: pass",
        "[x for row in rows for one in row]",
        "{one: 1 for (one, two) in pairs}",
    ],
)
def test_a_loop_without_a_name_is_found(source):
    assert list(nameless_loops(ast.parse(source))) == [1]


@pytest.mark.parametrize("line", ["MENDED = 1", "# as we were told", "for theirs in pairs: pass"])
def test_a_retired_word_is_found(line):
    assert RETIRED.search(line)


def test_a_long_function_without_a_docstring_is_found():
    body = "        pass\n" * (DOCUMENTED - 1)
    source = f"if True:\n  class A:\n    def f(self):\n{body}"
    assert [found.name for found in undocumented(ast.parse(source))] == ["A", "f"]
    documented = source.replace("pass", '"Passes."', 1)
    assert [found.name for found in undocumented(ast.parse(documented))] == ["A"]
    assert list(undocumented(ast.parse(source.replace("        pass\n", "", 2)))) == []


def test_the_docstring_is_not_counted():
    source = 'def f():\n    """One.\n\n    Two.\n    """\n    return 1\n'
    assert [length(function) for function in ast.parse(source).body] == [2]  # type: ignore[arg-type]


def test_a_packed_program_is_found():
    assert list(map(has_source, texts_in(gzip.compress(b"import tensorflow as tf")))) == [True]
    assert list(map(has_source, texts_in(gzip.compress(b'{"weights": [1.0]}')))) == [False]
