"""Mutated examples: nothing raises, the result parses, and text outside the edits does not change.

A mutation is wrapped around an example or inserted between its lines, so what it adds must not
change.
"""

import ast
import codecs
import os
import random
import re
import textwrap

import pytest
from tf_lossscale_codemods.engine.parse import check_syntax
from tf_lossscale_codemods.engine.python_tree import SourceError
from tf_lossscale_codemods.engine.transform import transform
from tf_lossscale_codemods.model import Options, Target
from tf_lossscale_codemods.rules.codes import rules

SOURCES = sorted({textwrap.dedent(example.before) for rule in rules() for example in rule.examples})
OPTIONS = [
    Options(),
    Options(target=Target.SHIM),
    Options(keras=3),
    Options(unsafe=True),
    Options(keras=3, unsafe=True, mark=True),
]
ROUNDS = {"small": 3, "long": 400}[os.environ.get("TFLS_TEST_SIZE", "small")]


def parses(source: bytes) -> bool:
    try:
        check_syntax(source)
    except SourceError:
        return False
    return True


def comments(rng: random.Random, source: str) -> str:
    """Comments between the lines and at their ends."""
    lines = []
    for number, line in enumerate(source.splitlines()):
        indent = re.match(r"\s*", line)[0]
        if line.strip() and rng.random() < 0.3 and not in_string(lines):
            lines.append(f"{indent}# fuzz {number} \N{SNOWMAN}")
        lines.append(line)
    return "\n".join(lines) + "\n"


def in_string(lines) -> bool:
    text = "\n".join(lines)
    return text.count('"""') % 2 == 1 or text.count("(") != text.count(")")


def indented(rng: random.Random, source: str) -> str:
    """The whole program in a function, a condition or a class, with spaces or tabs."""
    head = rng.choice(["def fuzzed():", "if __name__ == '__main__':", "class Fuzzed:", "try:"])
    tail = "except ImportError:\n{0}pass\n" if head == "try:" else ""
    indent = rng.choice(["  ", "    ", "\t", "        "])
    if "*" in source or '"""' in source or "__future__" in source:
        return source  # a star import stands at the top level only; strings change inside
    return head + "\n" + textwrap.indent(source, indent) + tail.format(indent)


def line_ends(rng: random.Random, source: str) -> str:
    return source.replace("\n", rng.choice(["\r\n", "\n", "\r\n"]))


def blank_lines(rng: random.Random, source: str) -> str:
    return "".join(
        line + (rng.choice(["\n", "\n\x0c\n", "   \n"]) if rng.random() < 0.3 else "")
        for line in source.splitlines(True)
    )


def spaces(rng: random.Random, source: str) -> str:
    """Spaces inside parentheses and around equal signs of calls."""
    source = re.sub(r"\((?=\w)", lambda match: rng.choice(["(", "( "]), source)
    return re.sub(r"(?<=\w)\)$", lambda match: rng.choice([")", " )"]), source, flags=re.M)


def no_last_line_end(rng: random.Random, source: str) -> str:
    return source.rstrip("\n")


def twice(rng: random.Random, source: str) -> str:
    return source if "__future__" in source else source + "\n" + rng.choice(SOURCES)


MUTATIONS = [comments, indented, line_ends, blank_lines, spaces, no_last_line_end, twice]
ENCODINGS = [("utf-8", ""), ("utf-8-sig", ""), ("utf-8", "# -*- coding: utf-8 -*-\n")]


def mutated(rng: random.Random, source: str) -> bytes:
    for mutation in rng.sample(MUTATIONS, rng.randint(1, 4)):
        source = mutation(rng, source)
    encoding, cookie = rng.choice(ENCODINGS)
    return (cookie + source).encode(encoding)


def editable_lines(source: bytes, findings) -> set:
    """The lines of statements (or their heads) with an import or an applied finding."""
    wanted = {
        line
        for finding in findings
        if finding.applied
        for line in range(finding.line, finding.end_line + 1)
    }
    lines = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.stmt):
            decorators = [part.lineno for part in getattr(node, "decorator_list", [])]
            body = getattr(node, "body", None)
            end = max(body[0].lineno - 1, node.lineno) if body else node.end_lineno
            extent = set(range(min([node.lineno, *decorators]), end + 1))
            is_import = isinstance(node, (ast.Import, ast.ImportFrom))
            # an alias of a module moves with the names that are read from it
            is_alias = isinstance(node, ast.Assign) and isinstance(node.value, ast.Attribute)
            if extent & wanted or is_import or is_alias:
                lines |= extent
    return lines


def first_lost_line(before: bytes, after: bytes, editable: set) -> bytes:
    """The first line of `before`, except blank and editable ones and comments, that `after` lacks.

    All of them must be lines of `after`, in their order.
    """
    old, new = (part.replace(codecs.BOM_UTF8, b"").splitlines() for part in (before, after))
    rest = iter(new)
    for number, line in enumerate(old, 1):
        text = line.strip()
        if text and not text.startswith(b"#") and number not in editable and line not in rest:
            return line
    return b""


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_mutated_examples(seed):
    for source in SOURCES:
        rng = random.Random(f"{seed} {source}")  # a new example leaves the others as they are
        before = mutated(rng, source)
        if not parses(before):
            continue  # the mutation made no program of it
        options = rng.choice(OPTIONS)
        result = transform(before, options)
        if result.error is not None:
            assert "does not reproduce" in result.error.message, (result.error, before)
            assert result.source == before
            continue
        assert parses(result.source)
        again = transform(result.source, options)
        assert again.source == result.source, before.decode()
        if b"\x0c" not in before:  # Python's own line numbers differ there
            lost = first_lost_line(before, result.source, editable_lines(before, result.findings))
            assert not lost, f"{lost!r}\n{before.decode()}\n=====\n{result.source.decode()}"
        for comment in re.findall(rb"# fuzz \d+", before):
            assert result.source.count(comment) == before.count(comment), before.decode()
        if b"\r\n" in before and b"\n" not in before.replace(b"\r\n", b""):
            assert b"\n" not in result.source.replace(b"\r\n", b""), before


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_damaged_bytes(seed):
    """Bytes cut out, doubled or changed: a result or an error, never an exception."""
    rng = random.Random(seed)
    for source in SOURCES:
        damaged = bytearray(source.encode())
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(damaged))
            change = rng.choice(["drop", "double", "change"])
            if change == "drop":
                del damaged[at : at + rng.randint(1, 5)]
            elif change == "double":
                damaged[at:at] = damaged[at : at + 7]
            else:
                damaged[at] = rng.choice(b"()[]{}\"'#\\\n\t:=.,*\x00\xff \xc3")
            if not damaged:
                break
        result = transform(bytes(damaged), rng.choice(OPTIONS))
        if result.error is not None:
            assert result.source == bytes(damaged)
        else:
            assert parses(result.source) or result.source == bytes(damaged)
