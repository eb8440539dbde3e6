"""Expressions over the bytes of a repository take time in proportion to them, in one process."""

import time

import pytest
from tf_lossscale_codemods.engine import magics, parse, prefilter
from tf_lossscale_codemods.engine.transform import links_of_sources
from tf_lossscale_codemods.project import evidence, pins
from tf_lossscale_codemods.resolve import import_lines
from tf_lossscale_codemods.rules.unresolved import _legacy_paths

PATHS = _legacy_paths._PATH_IN_TEXT
SIZE = 400_000
SECONDS = 3.0
"""What grows with the square of the size takes a minute or more at this size."""


def restored(source: str) -> str:
    cell = magics.mask(source)
    return cell.restore(cell.source)


def lines_with_import(source: bytes) -> list:
    return list(import_lines.importing_lines(source))


def readers(source: bytes) -> bool:
    return import_lines.ReaderSearch(["amp", "model", "."]).may_read(source)


def of_sources(path: str):
    return lambda text: list(evidence.legacy_keras_in(path, text))


ATTACKS = {
    "spaces after an import of contrib": (
        prefilter.uses_other_contrib,
        b"import tf.contrib\nfrom tf.contrib import" + b" " * SIZE,
    ),
    "contrib, many times": (prefilter.uses_other_contrib, b" tf.contrib.tpu_ops" * (SIZE // 19)),
    "dots after contrib": (prefilter.uses_other_contrib, b"tf.contrib" + b"." * SIZE),
    "import, many times in a line": (prefilter.may_refer, b"tf " + b"import " * (SIZE // 7)),
    "the module, many times in a line": (
        prefilter.may_refer,
        b"tf " + b"mixed_precision " * (SIZE // 16),
    ),
    "a long line without import": (lines_with_import, b"x " * (SIZE // 2)),
    "a long line of names like import": (lines_with_import, b"ximport " * (SIZE // 8)),
    "imports that do not end": (lines_with_import, b"import (\n" * (SIZE // 9)),
    "imports that go on": (lines_with_import, b"import x #\\\nimport \\\n" * (SIZE // 21)),
    "from, many times": (readers, b"amp from ." * (SIZE // 10)),
    "dots after from": (readers, b"amp from " + b". " * (SIZE // 2)),
    "spaces after dots": (readers, b"amp" + (b"." + b" " * 999) * (SIZE // 1000)),
    "spaces after a dot": (readers, b"amp ." + b" " * SIZE),
    "lines that go on": (readers, b"amp\n" + b"import \\\n\\\n" * (SIZE // 11)),
    "a flag of many names, in the other order": (
        lambda source: links_of_sources([source]),
        b"import tensorflow as tf\n"
        + b"".join(b"a%d = a%d\n" % (i, i + 1) for i in range(SIZE // 20))
        + b"a%d = tf.__version__\n" % (SIZE // 20),
    ),
    "many magic lines": (restored, "%x\n" * (SIZE // 6)),
    "a magic line of many lines": (restored, "%x\\\n" * (SIZE // 8)),
    "an assignment to many names": (restored, "a," * (SIZE // 2)),
    "except and commas": (parse.looks_like_python_2, b"except " + b",w" * (SIZE // 2)),
    "except and line ends": (parse.looks_like_python_2, b"except x," + b"\n" * SIZE),
    "words and spaces": (PATHS.findall, "a  " * (SIZE // 3)),
    "beginnings of paths": (PATHS.findall, "tf.x  " * (SIZE // 6)),
    "quotes": (of_sources("a.py"), "TF_USE_LEGACY_KERAS" + "'''\"\"\"" * (SIZE // 6)),
    "the variable": (of_sources("a.py"), ("TF_USE_LEGACY_KERAS" + " " * 1900 + "\n") * 200),
    "a cell of quotes": (of_sources("a.ipynb"), ("tf_keras" + '" ' * 900 + "\n") * 200),
    "requirements of spaces": (
        lambda text: list(pins.pins_in("requirements.txt", text)),
        (" " * 1900 + "\n") * 200,
    ),
    "requirements of quotes": (
        lambda text: list(pins.pins_in("setup.py", text)),
        ("'keras={'" * 200 + "\n") * 200,
    ),
    "tables of settings": (
        lambda text: list(pins.pins_in("pyproject.toml", text)),
        "[tool.tf-lossscale]\n" * (SIZE // 20),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ATTACKS)
def test_time_grows_with_the_size(name):
    search, source = ATTACKS[name]
    started = time.process_time()
    search(source)
    assert time.process_time() - started < SECONDS


@pytest.mark.parametrize(
    ("source", "imports"),
    [
        ("import a\nprint a\n", ["import a"]),
        ("from a import b; print (b,\n  c)\n", ["from a import b; print (b,"]),
        ("from a import (b,  # )\n  # ) and\n  c)\nd = 1\n", [
            "from a import (b,  # )\n  # ) and\n  c)"
        ]),
        ("import a, \\\n  b\nc = 1\n", ["import a, \\\n  b"]),
        ("from a import \\\n  (b,\n  c)\nd = 1\n", ["from a import \\\n  (b,\n  c)"]),
        ("import (\na,\nb\n", ["import (\na,\nb\n"]),
        ("x = 1\nfrom a \\\n  import b\n", ["from a \\\n  import b"]),
        ("from a \\\r\n.b import \\\r\n  c\r\n", ["from a \\\r\n.b import \\\r\n  c\r"]),
        ("import a; \\\nimport b", ["import a; \\\nimport b"]),
    ],
)  # fmt: skip
def test_an_import_goes_on_to_its_end(source, imports):
    assert [lines.decode() for lines in lines_with_import(source.encode())] == imports


@pytest.mark.parametrize(
    ("source", "refers"),
    [
        (b"import tensorflow\nfrom keras import mixed_precision", True),
        (b"import keras, mixed_precision", True),
        (b"mixed_precision = keras; import x", False),
        (b"import keras\nmixed_precision", False),
        (b"keras = mixed_precision; import mixed_precision", True),
        (b"import keras, use_mixed_precision", False),
        (b"mixed_precision\nkeras\nximport mixed_precision\nimport mixed_precision", True),
    ],
)
def test_an_import_of_the_module_stands_in_one_line(source, refers):
    assert prefilter.may_refer(source) is refers


@pytest.mark.parametrize(
    ("source", "uses"),
    [
        (b"from tf.contrib import (  tpu_optimizer)", False),
        (b"from tf.contrib import\\\n tpu_ops", True),
        (b"from tf.contrib import   mixed_precision", False),
        (b"from tf.contrib import (\n  layers)", True),
        (b"from tf.contrib  import slim", True),
    ],
)
def test_other_uses_of_contrib(source, uses):
    assert prefilter.uses_other_contrib(source) is uses


@pytest.mark.parametrize("lost", ["pass#lossscale-masked-line-0#", "#lossscale-masked-line-1#"])
@pytest.mark.parametrize("times", [0, 2])
def test_a_lost_placeholder_is_an_error(lost, times):
    source = "%run a \\\n b\nx = 1  #lossscale-masked-line-7#\n"
    cell = magics.mask(source)
    assert cell.restore(cell.source) == source
    with pytest.raises(ValueError, match="would get lost"):
        cell.restore(cell.source.replace(lost, lost * times, 1))
