"""Notebooks: only the source of edited cells changes, byte for byte."""

import json

import pytest
from command_line import LEGACY
from tf_lossscale_codemods.engine.json_positions import Array, String, parsed_json
from tf_lossscale_codemods.engine.notebook import Notebook, code_of
from tf_lossscale_codemods.engine.prefilter import without_images
from tf_lossscale_codemods.engine.python_tree import SourceError
from tf_lossscale_codemods.engine.transform import transform
from tf_lossscale_codemods.model import FileResult, Options, Target

IMPORT = "import tensorflow as tf\n"
OLD = 'opt = tf.keras.mixed_precision.experimental.LossScaleOptimizer(opt, "dynamic")'
NEW = "opt = tf.keras.mixed_precision.LossScaleOptimizer(opt)"


def cell(*lines: str, kind: str = "code", **more: object) -> dict:
    rest = {"execution_count": 3, "outputs": []} if kind == "code" else {}
    return {"cell_type": kind, "metadata": {}, **rest, "source": list(lines), **more}


def document(*cells: dict, language: str = "python") -> dict:
    kernel = {"display_name": "Python 3", "language": language, "name": "python3"}
    return {"cells": list(cells), "metadata": {"kernelspec": kernel}, "nbformat": 4}


def encoded(value: dict, **options: object) -> bytes:
    return (json.dumps(value, indent=1, **options) + "\n").encode()


def transformed(source: bytes, **options: object) -> FileResult:
    result = transform(source, Options(**options), "a.ipynb")
    assert result.error is None, result.error
    return result


def test_names_flow_from_cell_to_cell():
    source = encoded(document(cell(IMPORT), cell("# Train\n", "x = 1"), cell(OLD, id="c")))
    result = transformed(source)
    assert result.source == encoded(
        document(cell(IMPORT), cell("# Train\n", "x = 1"), cell(NEW, id="c"))
    )
    (finding,) = result.findings
    assert source.splitlines()[finding.line - 1].strip() == json.dumps(OLD).encode()
    assert (finding.cell, finding.cell_line) == (3, 1)


def test_imports_change_in_their_own_cell():
    before = (
        "from tensorflow.keras.mixed_precision import experimental as mp\n",
        "mp.set_policy('mixed_float16')\n",
        "opt = mp.LossScaleOptimizer(opt, 'dynamic')\n",
    )
    after = (
        "from tensorflow.keras import mixed_precision as mp\n",
        "mp.set_global_policy('mixed_float16')\n",
        "opt = mp.LossScaleOptimizer(opt)\n",
    )
    result = transformed(encoded(document(*map(cell, before))))
    assert result.source == encoded(document(*map(cell, after)))


@pytest.mark.parametrize(
    "dump",
    [
        pytest.param({"indent": 1}, id="as Jupyter writes it"),
        pytest.param({"indent": 4}, id="indented by four"),
        pytest.param({"indent": "\t"}, id="with tabs"),
        pytest.param({"indent": None}, id="on one line"),
        pytest.param({"indent": None, "separators": (",", ":")}, id="without spaces"),
        pytest.param({"indent": 1, "ensure_ascii": False}, id="not ASCII"),
        pytest.param({"indent": 1, "sort_keys": True}, id="sorted"),
    ],
)
@pytest.mark.parametrize("end", ["", "\n", "\r\n"], ids=["no line end", "line end", "CRLF"])
@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["", "with a BOM"])
def test_only_the_edited_line_changes(dump, end, mark):
    cells = (
        cell("# Größe 漢字 \U0001f600 / \\ \t\n", kind="markdown"),
        cell("%matplotlib inline\n", "!pip install \\\n", "  tensorflow\n", IMPORT.strip()),
        cell(
            "größe = '\\n\\t\"/'\n", OLD + "  # größe\n", "\n", "y = !ls", outputs=[{"a/b": 1.50}]
        ),
    )
    text = json.dumps(document(*cells), **dump) + end
    text = text.replace("\n", end) if end == "\r\n" else text
    text = text.replace("1.5", "1.50e0").replace("a/b", "a\\/b")  # spellings that json has not
    source = (mark + text).encode()
    expected = source.replace(json.dumps(OLD)[1:-1].encode(), NEW.encode())
    assert expected != source
    assert transformed(source).source == expected


def test_a_source_that_is_one_string():
    whole = document(dict(cell(), source=IMPORT + OLD + "\n!ls"))
    expected = document(dict(cell(), source=IMPORT + NEW + "\n!ls"))
    assert transformed(encoded(whole)).source == encoded(expected)


def test_a_source_whose_strings_are_no_lines():
    one = document(cell(IMPORT + "x", " = 1\n", OLD[:30], OLD[30:]))
    cells = json.loads(transformed(encoded(one)).source)["cells"]
    assert "".join(cells[0]["source"]) == f"{IMPORT}x = 1\n{NEW}"


def test_lines_that_come_and_go():
    one = document(
        cell("import tensorflow as tf\n", "m = tf.contrib.mixed_precision.LossScaleManager")
    )
    result = transformed(encoded(one))
    cells = json.loads(result.source)["cells"]
    assert "".join(cells[0]["source"]) == (
        "import tf_lossscale as tfls\nm = tfls.contrib.mixed_precision.LossScaleManager"
    )
    assert all(line.count("\n") <= 1 for line in cells[0]["source"])


def test_spellings_of_lines_that_stay_are_kept():
    source = encoded(document(cell("s = 'x'\n", IMPORT, OLD)))
    source = source.replace(b"s = 'x'", b"\\u0073 = '\\u00e9\\/'")
    assert transformed(source).source == source.replace(
        json.dumps(OLD)[1:-1].encode(), NEW.encode()
    )


def test_the_third_format_of_notebooks():
    sheet = {"cells": [{"cell_type": "code", "input": [IMPORT, OLD], "language": "python"}]}
    one = {"metadata": {}, "nbformat": 3, "worksheets": [sheet]}
    expected = json.loads(json.dumps(one).replace(json.dumps(OLD), json.dumps(NEW)))
    assert transformed(encoded(one)).source == encoded(expected)


@pytest.mark.parametrize(
    ("one", "note"),
    [
        (document(cell(IMPORT)), "no legacy name in it"),
        (document(cell(OLD, kind="markdown")), "no code cell in it"),
        (document(cell(OLD), language="R"), "a notebook in r"),
        (document(cell("x = 1"), cell(OLD, kind="raw")), "no legacy name in it"),
        ({"LossScale": 1}, "no code cell in it"),
    ],
    ids=["no name", "in prose", "another language", "raw", "no notebook"],
)
def test_left_alone(one, note):
    source = encoded(one)
    result = transformed(source)
    assert (result.source, result.note) == (source, note)


@pytest.mark.parametrize(
    ("source", "line", "says"),
    [
        (b'{\n"cells": [LossScale', 2, "is not a notebook: invalid JSON: "),
        (b'{"a": "LossScale"} {}', 1, "is not a notebook: invalid JSON: Extra data"),
        (b'{"LossScale": [1, 2', 1, "invalid JSON"),
        (b'{"LossScale" 1}', 1, "invalid JSON"),
        (b"{LossScale: 1}", 1, "invalid JSON"),
        (b'["LossScale"]', 1, "is not a notebook: the JSON is not an object"),
        (b'\n{"a": "LossScale \xff"}', 2, "is not a notebook: not UTF-8"),
        (b"\n" + b"[" * 200_000 + b'"LossScale"', 2, "is nested more than 200 deep"),
        (encoded(document(cell(IMPORT), cell("x = 1\n", "LossScale ("))), 19, "cell 2, line 2: "),
    ],
    ids=["cut", "more", "open list", "no colon", "no quotes", "list", "latin-1", "deep", "syntax"],
)
def test_what_cannot_be_processed_is_reported(source, line, says):
    result = transform(source, Options(), "a.ipynb")
    assert result.source == source
    assert result.error is not None
    assert result.error.line == line
    assert says in result.error.message


@pytest.mark.parametrize(
    ("lines", "at"),
    [
        (("%%writefile a.py\n", IMPORT, OLD), 3),
        (("x = 1\n", "%timeit " + OLD), 2),
        (("!python -c \\\n", "  '" + OLD + "'"), 2),
    ],
    ids=["a cell", "a line", "a line that is continued"],
)
def test_legacy_names_in_magic_and_shell_lines_are_reported(lines, at):
    source = encoded(document(cell(*lines)))
    result = transformed(source)
    assert result.source == source
    (finding,) = result.findings
    assert (finding.code, finding.symbol) == ("LS910", "mixed_precision.experimental")
    assert (finding.cell, finding.cell_line) == (1, at)
    assert transformed(source, ignore=("LS9",)).findings == ()
    assert transformed(source, select=("LS3",)).findings == ()
    assert transformed(source, select=("LS91",)).findings == (finding,)


def test_call_of_the_loss_scale_in_a_magic_line_is_reported():
    result = transformed(encoded(document(cell(IMPORT), cell("%timeit opt.loss_scale()"))))
    assert ("LS910", "loss_scale") in [
        (finding.code, finding.symbol) for finding in result.findings
    ]


def test_suppressions_hold_in_cells(command_line):
    one = document(cell(IMPORT), cell(OLD + "  # lossscale: ignore[LS301] still on 2.3"))
    command_line.path("a.ipynb").write_bytes(encoded(one))
    assert command_line.run("migrate").status == 0


def test_the_command_writes_notebooks(command_line):
    command_line.path("a.ipynb").write_bytes(encoded(document(cell(IMPORT), cell(OLD))))
    command_line.write(b=LEGACY)
    assert command_line.run("migrate", "--write").status == 0
    assert command_line.bytes_on_disk()["a.ipynb"] == encoded(document(cell(IMPORT), cell(NEW)))
    assert command_line.run("migrate").status == 0


def test_each_report_names_the_cell(command_line):
    cells = (cell(IMPORT), cell("# Train\n", kind="markdown"), cell("x = 1\n", OLD), cell(OLD))
    command_line.path("a.ipynb").write_bytes(encoded(document(*cells)))
    command_line.write(b=LEGACY)

    def report(name):
        return command_line.run("migrate", "--check", "--report", name).out.decode()

    text = report("text")
    assert text.count("LS301 safe") == 2  # equal findings in two cells are shown together
    assert ": LS301 safe LossScaleOptimizer: cell 3, line 2: dynamic " in text
    assert f"   3:2 | {OLD}\n" in text
    assert f"   4:1 | {OLD}\n" in text
    findings = json.loads(report("json"))["findings"]
    places = [(finding["cell"], finding["cell_line"]) for finding in findings]
    assert places == [(3, 2), (4, 1), (None, None)]
    (run,) = json.loads(report("sarif"))["runs"]
    places = [
        (result["properties"].get("cell"), result["properties"].get("cellLine"))
        for result in run["results"]
    ]
    assert places == [(3, 2), (4, 1), (None, None)]
    messages = [finding["message"] for finding in findings]
    assert [message.partition(": ")[0] for message in messages[:2]] == [
        "cell 3, line 2",
        "cell 4, line 1",
    ]
    assert [result["message"]["text"].partition(": ")[2] for result in run["results"]] == messages
    assert "::cell 4, line 1: " in report("github")
    assert '<span class="at">cell 3, 2:7</span>' in report("html")


@pytest.mark.parametrize("text", ["[]", "{}", ' [1, -2.5e3, "a\\n", null, true, {"a": [[]]}] '])
def test_arrays_and_strings_say_where_they_stand(text):
    def check(value):
        if isinstance(value, (Array, String)):
            assert json.loads(text[value.start : value.end], parse_int=float) == value
        if isinstance(value, (list, dict)):
            for item in value.values() if isinstance(value, dict) else value:
                check(item)

    value = parsed_json(text)
    assert value == json.loads(text, parse_int=float)
    check(value)


@pytest.mark.parametrize(
    "data",
    [
        encoded(document(cell(IMPORT, OLD), cell("a = 1\n"), cell("no code", kind="raw"))),
        encoded(document(cell("%cd x\n", OLD), cell("%%bash\n", "ls\n"))),
        b"\xef\xbb\xbf" + encoded({"cells": [{"cell_type": "code", "source": IMPORT + OLD}]}),
        encoded(
            {"worksheets": [{"cells": [{"cell_type": "code", "input": [OLD, "\u00e9\udcff"]}]}]}
        ),
        encoded(document(cell(OLD), language="R")),
        encoded({"cells": [{"cell_type": "code", "source": 1}, {"cell_type": "code"}, 2]}),
    ],
    ids=["arrays", "magic", "string", "worksheets", "R", "nothing"],
)
def test_the_code_alone_is_the_same(data):
    assert code_of(data) == Notebook(data).sources


@pytest.mark.parametrize("data", [b"{", b"[]", b"\xff", b"[" * 200_000])
def test_there_is_no_code_in_what_is_no_notebook(data):
    with pytest.raises(SourceError, match="is not a notebook"):
        code_of(data)


@pytest.mark.parametrize(
    "line",
    ["%timeit tf.matmul(1, 2)", "x = %timeit -o tf.ones(3)", "tf.ones?", "!echo {tf.ones(1)}"],
)
def test_an_import_that_a_magic_line_reads_stays(line):
    lines = ("import tensorflow as tf\n", "opt = tf.contrib.tpu.CrossShardOptimizer(opt)\n")
    before = encoded(document(*map(cell, lines), cell(line)))
    after = transformed(before, target=Target.SHIM).source.decode()
    assert "import tensorflow as tf" in after
    assert "import tf_lossscale as tfls" in after


def test_a_notebook_without_its_images():
    text = '"image/png": "' + "a" * 2000
    images = ["QUJD" * 1000, "b" * 100, "c" * 2000 + '"']
    outputs = [{"data": {"image/png": image}} for image in images]
    before = document(*(cell(text, outputs=[output]) for output in outputs), cell(IMPORT))
    after = json.loads(without_images(encoded(before)))
    shown = [
        shown_cell.pop("outputs")[0]["data"]["image/png"] for shown_cell in after["cells"][:-1]
    ]
    assert shown == ["", *images[1:]]
    for old_cell in before["cells"][:-1]:
        del old_cell["outputs"]
    assert after == before
