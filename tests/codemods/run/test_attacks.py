"""Files that take time or memory: each process of a run stays below a limit of both.

One table: what a file is made of, the statuses that the run may have, and what it says.
"""

import json
import os
import pathlib
import subprocess
import sys
from typing import Callable, NamedTuple

import pytest
from command_line import LEGACY

LONG = os.environ.get("TFLS_TEST_SIZE") == "long"
MEGABYTES = 300
SECONDS = 15
"""Processor time for a run; most of these took minutes, or never ended."""
MB = 2**20
TOO_LARGE = "needs more than 225 MB of memory; split it, or --exclude it"

HERE = pathlib.Path(__file__).resolve()
CELL = {"cell_type": "code", "metadata": {}, "outputs": [], "source": [LEGACY.decode()]}
CALL = LEGACY.splitlines(keepends=True)[-1]


class Attack(NamedTuple):
    """Files, and what the command does with them.

    Attributes:
      make: writes the files to a folder.
      statuses: the exit statuses that are right.
      says: what stands in stderr.
      arguments: more arguments of the command.
      is_long: whether it is left to `make test-long`, like those of which another one has the kind.
    """

    make: Callable
    statuses: tuple = (1,)
    says: str = ""
    arguments: tuple = ()
    is_long: bool = False


def files(**sources: bytes) -> Callable:
    """Writes files of Python."""

    def make(folder: pathlib.Path) -> None:
        for name, source in sources.items():
            (folder / f"{name}.py").write_bytes(source)

    return make


def beside(source: bytes) -> Callable:
    """A file without a legacy name, beside one that imports it and has one."""
    return files(a=b"import b\n" + LEGACY, b=b"import a\n" + source)


def within(source: bytes) -> Callable:
    """A file with a legacy name."""
    return files(a=LEGACY + source)


def notebook(cells: list, **more: object) -> Callable:
    text = json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, **more})
    return lambda folder: (folder / "a.ipynb").write_text(text)


def raw_notebook(value: str) -> Callable:
    """A notebook with a value that is given as JSON."""
    text = json.dumps({"cells": [CELL], "metadata": {}, "nbformat": 4, "x": "HERE"})
    return lambda folder: (folder / "a.ipynb").write_text(text.replace('"HERE"', value))


def data(name: str, text: str) -> Callable:
    def make(folder: pathlib.Path) -> None:
        files(a=LEGACY)(folder)
        (folder / name).write_text(text)

    return make


def re_exports(depth: int, width: int) -> Callable:
    """Levels of files, each of which may import a name from each file of the next level."""
    last = b"from tensorflow.keras.mixed_precision.experimental import LossScaleOptimizer\n"
    first = b"from m0_0 import LossScaleOptimizer\no = LossScaleOptimizer(1, 'dynamic')\n"
    sources = {"use": first}
    for level in range(depth):
        tests = (
            f"{'elif' if file else 'if'} c{file}:\n"
            f"    from m{level + 1}_{file} import LossScaleOptimizer\n"
            for file in range(width)
        )
        source = "".join(tests).encode() if level < depth - 1 else last
        sources.update({f"m{level}_{file}": source for file in range(width)})
    return files(**sources)


def links(folder: pathlib.Path) -> None:
    """Links in circles, to devices and to large files; a pipe; a directory that is named `.py`."""
    files(a=LEGACY)(folder)
    (folder / "circle").symlink_to(folder)
    (folder / "b.py").symlink_to("c.py")
    (folder / "c.py").symlink_to("b.py")
    (folder / "zero.py").symlink_to("/dev/zero")
    os.mkfifo(folder / "pipe.py")
    os.mkfifo(folder / "pyproject.toml")
    (folder / "folder.py").mkdir()


def small_files(folder: pathlib.Path) -> None:
    files(a=LEGACY)(folder)
    for number in range(1_500):
        (folder / f"m{number}.py").write_bytes(b"import m%d\n" % (number + 1))


def encodings(folder: pathlib.Path) -> None:
    files(a=b"\xef\xbb\xbf" + LEGACY, b=LEGACY.decode().encode("utf-16"), c=LEGACY + b"\0" * MB)(
        folder
    )
    (folder / "d.py").write_bytes(b"# -*- coding: rot13 -*-\n" + LEGACY)


SHORT = b"x = 1\n" * (2_400_000 // 6)
WORD = b"import tensorflow as tf\nself.set_policy = 1\n"

ATTACKS = {
    # Lines with `import`, in files that are only read for what they import
    "comments that continue": Attack(beside(b"import x #\\\n" * 20_000)),
    "an import that never closes": Attack(
        beside(b"from x import (\n" + b"# c\n" * 4_000_000), is_long=True
    ),
    "comments in an import": Attack(
        beside(b"from x import (\n" + b"# c\n" * 400_000), is_long=True
    ),
    "import and many words": Attack(
        beside(b"import " + b" ".join(b"a%d" % n for n in range(400_000)) + b"\n("), is_long=True
    ),
    "re-exports": Attack(re_exports(13, 4), (0, 1)),
    # Short statements: LibCST's tree takes 400 times as much as they
    "statements beside": Attack(beside(SHORT)),
    "statements": Attack(within(SHORT), (2,), f"a.py: error: {TOO_LARGE}"),
    "statements with a word": Attack(
        files(a=WORD.replace(b"tf", b"x").replace(b"tensorflow", b"y") + SHORT),
        (0,),
        "a.py: warning: not checked, but without a legacy name of TensorFlow",
    ),
    "statements without a word": Attack(files(a=SHORT), (0,)),
    # The trees of all of them are kept at the same time, as far as the limit lets them
    "large files": Attack(
        files(**{f"m{number}": LEGACY + b"x = 1\n" * 6_000 for number in range(12)}), is_long=True
    ),
    "the most statements": Attack(within(b"x = 1\n" * 38_000), is_long=True),
    "elements": Attack(
        within(b"x = [" + b"a," * 1_000_000 + b"]\n"), (2,), TOO_LARGE, is_long=True
    ),
    "the most elements": Attack(within(b"x = [" + b"a," * 25_000 + b"]\n"), is_long=True),
    "tuples": Attack(within(b"x = [" + b"()," * 600_000 + b"]\n"), (2,), TOO_LARGE, is_long=True),
    "expressions in strings": Attack(
        within(b"x = f'" + b"{a}" * 600_000 + b"'\n"), (2,), TOO_LARGE
    ),
    "semicolons": Attack(within(b"a;" * 800_000 + b"\n"), (2,), TOO_LARGE, is_long=True),
    "functions": Attack(within(b"def f(): pass\n" * 200_000), (2,), TOO_LARGE, is_long=True),
    "comments": Attack(within(b"# c\n" * 1_000_000), (2,), TOO_LARGE, is_long=True),
    "empty lines": Attack(within(b"\n" * 4_000_000), (2,), TOO_LARGE, is_long=True),
    "lines in a string": Attack(within(b"x = '''" + b"\n" * 4_000_000 + b"'''\n"), (2,), TOO_LARGE),
    "a long string": Attack(within(b"x = '" + b"a" * (8 * MB) + b"'\n"), is_long=True),
    "escapes in a string": Attack(within(b"x = b'" + b"\\n" * MB + b"'\n"), is_long=True),
    "quotes": Attack(within(b"'" * 2_000_001), (1, 2), is_long=True),
    "deep parentheses": Attack(
        within(b"x = " + b"(" * 100_000 + b")" * 100_000), (2,), is_long=True
    ),
    "deep blocks": Attack(
        within(b"".join(b" " * n + b"if a:\n" for n in range(90)) + b" " * 90 + b"pass\n"),
        is_long=True,
    ),
    # Many equal lines, and many findings
    "equal lines": Attack(
        files(a=b"x = 1\n" * 19_000 + LEGACY + b"x = 1\n" * 19_000),
        arguments=("--check", "--report", "sarif:../sarif.json"),
        is_long=True,
    ),
    "equal lines between edits": Attack(
        files(
            a=b"from tensorflow.keras.mixed_precision import experimental\n"
            + b"x = 1\n" * 9_000
            + b"o = experimental.LossScaleOptimizer(o, 'dynamic')\n"
        ),
        arguments=("--report", "sarif:../sarif.json"),
    ),
    "findings": Attack(
        within(CALL * 3_000), arguments=("--report", "json:../f.json"), is_long=True
    ),
    # Notebooks and configurations
    "a huge cell": Attack(
        notebook([{**CELL, "source": LEGACY.decode() + "# " + "a" * (8 * MB)}]), is_long=True
    ),
    "a cell of many lines": Attack(
        notebook([CELL, {**CELL, "source": ["x = 1\n"] * 300_000}]), (2,), TOO_LARGE, is_long=True
    ),
    "a cell of many strings": Attack(notebook([{**CELL, "source": ["#", *["a"] * 250_000]}, CELL])),
    "equal lines in a cell": Attack(
        notebook([{**CELL, "source": [LEGACY.decode(), *["x = 1\n"] * 10_000, CALL.decode()]}]),
        is_long=True,
    ),
    "many cells": Attack(notebook([CELL] * 500), is_long=True),
    "a large output": Attack(notebook([CELL], x="A" * (16 * MB)), is_long=True),
    "arrays in JSON": Attack(raw_notebook("[" + "[]," * 4_000_000 + "[]]"), (2,), TOO_LARGE),
    "numbers in JSON": Attack(
        raw_notebook("[" + "1," * 8_000_000 + "1]"), (2,), TOO_LARGE, is_long=True
    ),
    "paths in a configuration": Attack(
        data("a.yaml", "x: tf.keras.mixed_precision.experimental.Policy\n" * 20_000), is_long=True
    ),
    "words in a configuration": Attack(
        data("a.json", "tf.mixed_precision " * 50_000), is_long=True
    ),
    # Other files
    "links": Attack(links, (1, 2)),
    "small files": Attack(small_files, is_long=True),
    "encodings": Attack(encodings, (1, 2)),
}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """What the command did with each attack, all measured by one process."""
    folder = tmp_path_factory.mktemp("attacks")
    cases = {}
    for number, (name, attack) in enumerate(ATTACKS.items()):
        if LONG or not attack.is_long:
            here = folder / str(number)
            here.mkdir()
            attack.make(here)
            cases[name] = (str(here), attack.arguments)
    ran = subprocess.run(
        [sys.executable, HERE.with_name("attacked.py")], input=json.dumps(cases), text=True,
        stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(HERE.parents[1])}, check=True,
    )  # fmt: skip
    return json.loads(ran.stdout)


@pytest.mark.parametrize(
    "name", [name for name, attack in ATTACKS.items() if LONG or not attack.is_long]
)
def test_limits_of_time_and_memory_hold(results, name):
    ran, attack = results[name], ATTACKS[name]
    assert ran["status"] in attack.statuses, ran["err"]
    assert attack.says in ran["err"]
    assert "Traceback" not in ran["err"]
    assert ran["seconds"] < SECONDS
    assert ran["megabytes"] < MEGABYTES
