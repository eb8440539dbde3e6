"""Limits on one file: constants, nesting and notebooks that would take forever."""

import json
import os
import random

import libcst as cst
import pytest
from command_line import FINAL, LEGACY
from tf_lossscale_codemods.engine.transform import transform
from tf_lossscale_codemods.model import Options
from tf_lossscale_codemods.rewrite.arguments import constant

LONG = os.environ.get("TFLS_TEST_SIZE") == "long"
HEAD = "import tensorflow as tf\n\nopt = tf.contrib.tpu.CrossShardOptimizer(opt)\n"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2 ** 15", 32768),
        ("2.0 ** 22", 4194304.0),
        ("-2 ** 3", -8),
        ("'dynamic'", "dynamic"),
        ("None", None),
    ],
)
def test_small_constants_are_computed(text, value):
    assert constant(cst.parse_expression(text)) == (value,)


@pytest.mark.parametrize(
    "text",
    [
        "((9**1024)**1024)**1024",
        "9**9**9**9",
        "10**400",
        "10.0**400",
        "2**(2**1000)",
        "2**2000",
        "(-8)**0.5",
        "0**-1",
        "1000 / 8 + 1",
        "1/0",
        "1 << 10**9",
        "'a' * 10**9",
        "10**9 * 'a'",
        "[0] * 10**9",
        "9" * 5000,
    ],
    ids=lambda text: text[:30],
)
def test_large_constants_are_not(text):
    assert constant(cst.parse_expression(text)) is None


DEEP = {
    "parentheses": lambda n: "x = " + "(" * n + "1" + ")" * n,
    "calls": lambda n: "x = " + "f(" * n + "1" + ")" * n,
    "lists": lambda n: "x = " + "[" * n + "1" + "]" * n,
    "dicts": lambda n: "x = " + "{1: " * n + "1" + "}" * n,
    "subscripts": lambda n: "x = " + "a[" * n + "1" + "]" * n,
    "annotations": lambda n: "x: " + "List[" * n + "a" + "]" * n,
    "assignment expressions": lambda n: "x = " + "(a := " * n + "1" + ")" * n,
    "patterns": lambda n: "match a:\n case " + "[" * n + "1" + "]" * n + ": pass",
    "never closed": lambda n: "x = " + "(" * n,
    "in an f-string": lambda n: 'x = f"{' + "(" * n + "1" + ")" * n + '}"',
    "f-strings": lambda n: "x = " + "f'{" * n + "1" + "}'" * n,
    "format specifications": lambda n: 'x = f"{a:' + "{a:" * n + "}" * n + '}"',
    "minus": lambda n: "x = " + "-" * n + "1",
    "not": lambda n: "x = " + "not " * n + "1",
    "await": lambda n: "async def f():\n    x = " + "await " * n + "1",
    "lambda": lambda n: "x = " + "lambda: " * n + "1",
    "lambda with parameters": lambda n: "x = " + "lambda a, b: " * n + "1",
    "powers": lambda n: "x = " + "2**" * n + "1",
    "sums": lambda n: "x = " + "2 + " * n + "1",
    "and": lambda n: "x = " + "a and " * n + "1",
    "conditions": lambda n: "x = " + "a if b else " * n + "1",
    "attributes": lambda n: "x = a" + ".b" * n,
    "calls of calls": lambda n: "x = a" + "()" * n,
    "subscripts of subscripts": lambda n: "x = a" + "[0]" * n,
    "adjacent strings": lambda n: "x = " + '"a" ' * n,
    "on continued lines": lambda n: "x = " + "not \\\n" * n + "1",
    "comprehensions": lambda n: "x = [1 " + "for a, b in c " * n + "]",
    "elif": lambda n: "if a: pass\n" + "elif b: pass\n" * n,
    "elif with definitions": lambda n: "if a: pass\n" + "elif b:\n def f(): pass\n" * n,
    "blocks": lambda n: "".join(" " * d + "if a:\n" for d in range(n)) + " " * n + "pass",
    "definitions": lambda n: "".join(" " * d + "def f():\n" for d in range(n)) + " " * n + "pass",
    "dotted imports": lambda n: "import a" + ".b" * n,
}


HIDDEN = "x = " + '("""\ndef f(): """ + ' * 3000 + "1" + ")" * 3000  # from the quick look

# LibCST takes time that doubles with each level of these, so a time limit stops it.
SLOW = ("patterns",)


def test_deep_files_are_one_error_each(command_line):
    """In a worker, where a crash or a stall would be an error line of another kind."""
    for kind in DEEP:
        depth = 1_000 if kind in ("blocks", "definitions") else 20_000
        name = kind.replace(" ", "_") + ".py"
        command_line.path(name).write_text(HEAD + DEEP[kind](depth) + "\n")
    command_line.write(hidden=(HEAD + HIDDEN).encode(), zzz=LEGACY)
    ran = command_line.run("migrate", "--write", "--jobs", "2", "--time-limit", "5")
    assert ran.status == 2
    lines = dict(line.split(":", 1) for line in ran.err.splitlines())
    assert not any("a rule failed" in line or "crashed" in line for line in lines.values())
    assert len(lines) == len(ran.err.splitlines())
    assert lines["parentheses.py"].startswith("4: error: is nested too deeply")
    assert "hidden.py" in lines
    assert command_line.path("zzz.py").read_bytes() == FINAL


@pytest.mark.parametrize("kind", sorted({*DEEP} - {"never closed", "await", "f-strings", *SLOW}))
def test_nesting_that_python_takes_is_not_refused(kind):
    result = transform((HEAD + DEEP[kind](90) + "\n").encode(), Options(), "a.py")
    assert result.error is None
    assert b"tf.contrib" not in result.source


def test_many_paths_of_calls():
    """Each function is examined once: 40 levels of four calls each make 4 ** 40 paths."""
    levels = [
        f"def f{n}():\n    f{n + 1}(), f{n + 1}()\n    f{n + 1}(), f{n + 1}()\n" for n in range(40)
    ]
    last = "def f40():\n    return tf.tpu.CrossShardOptimizer\n"
    source = "\n\n".join(["import tensorflow as tf\n", *levels, last])
    result = transform(source.encode(), Options())
    assert result.error is None
    assert b"tf.compat.v1.tpu.CrossShardOptimizer" in result.source


OLD = 'opt = tf.keras.mixed_precision.experimental.LossScaleOptimizer(opt, "dynamic")'
CELL = {"cell_type": "code", "metadata": {}, "outputs": [], "source": [HEAD, OLD]}
NOTEBOOK = {"cells": [CELL], "metadata": {}, "nbformat": 4}


@pytest.mark.parametrize("value", ["9" * 5000, "-" + "9" * 5000, "9" * 500_000, "1e999", "NaN"])
def test_numbers_in_notebooks(value):
    text = json.dumps({**NOTEBOOK, "x": "HERE"}).replace('"HERE"', value)
    result = transform(text.encode(), Options(), "a.ipynb")
    assert result.error is None
    assert value.encode() in result.source
    assert b"experimental" not in result.source


@pytest.mark.parametrize("bracket", ["[", '{"a": '])
def test_deep_notebooks(bracket):
    text = json.dumps({**NOTEBOOK, "x": "HERE"}, indent=1).replace('"HERE"', bracket * 100_000)
    result = transform(text.encode(), Options(), "a.ipynb")
    assert result.error is not None
    assert result.error.message == "is nested more than 200 deep; --exclude it"
    assert result.error.line == text.count("\n", 0, text.index(bracket * 10)) + 1


def test_the_last_of_two_keys_counts():
    text = json.dumps(NOTEBOOK)
    twice = text[:-1] + ', "cells": ' + json.dumps(NOTEBOOK["cells"]) + "}"
    result = transform(twice.encode(), Options(), "a.ipynb")
    assert result.error is None
    assert result.source.count(b"experimental") == 1
    assert b"experimental" not in json.dumps(json.loads(result.source)).encode()


def test_lone_surrogates():
    for source in (["x = '\ud800'\n", OLD], ["!echo \ud800\n", OLD], [OLD + "  # \udfff"]):
        one = {**NOTEBOOK, "cells": [{**CELL, "source": [HEAD, *source]}]}
        text = json.dumps(one)
        for before in (text, text[:-1] + ', "ä": 1}'):
            result = transform(before.encode(), Options(), "a.ipynb")
            if result.error is not None:
                assert "cannot be decoded" in result.error.message
                assert result.source == before.encode()


def mutated(rng: random.Random, text: str) -> str:
    """The notebook cut, doubled, nested, or with another value somewhere."""
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(text))
        end = min(at + rng.choice([1, 2, 5, 30]), len(text))
        kind = rng.randrange(5)
        if kind == 0:
            text = text[:at] + text[end:]
        elif kind == 1:
            text = text[:end] + text[at:]
        elif kind == 2:
            text = text[:at] + rng.choice('"\\[]{},:\n\ud800\x00é%!') + text[end:]
        elif kind == 3:
            value = rng.choice(
                ["1" * 5000, "NaN", "[" * 300, "null", '"\\ud800"', '{"a": 1}', "tru"]
            )
            text = text[:at] + value + text[at:]
        else:
            text = text.replace(
                rng.choice([": ", ", ", "\\n", '"source"']), rng.choice([":", ""]), 1
            )
    return text


@pytest.mark.parametrize("seed", range(40 if LONG else 2))
def test_mutated_notebooks(seed):
    rng = random.Random(seed)
    text = json.dumps({**NOTEBOOK, "cells": [CELL, {**CELL, "source": f"%%time\n{OLD}\n!ls"}]})
    outcomes = set()
    for _ in range(100):
        before = mutated(rng, text).encode("utf-8", "surrogatepass")
        result = transform(before, Options(unsafe=True, mark=True), "a.ipynb")
        if result.error is not None:
            assert "a rule failed" not in result.error.message, (result.error, before)
            assert result.source == before
        elif result.source != before:
            json.loads(result.source, strict=False, parse_int=float)
        outcomes.add((result.error is None, result.source == before))
    assert (False, True) in outcomes
    assert (True, False) in outcomes


def test_a_long_line_of_a_magic_is_searched_in_linear_time():
    one = {**NOTEBOOK, "cells": [{**CELL, "source": [OLD + "\n", "!" + "a" * 1_000_000]}]}
    assert transform(json.dumps(one).encode(), Options(), "a.ipynb").error is None
