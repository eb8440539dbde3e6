"""`--baseline` and `--write-baseline`: only findings that a project has not accepted count."""

import json
import os

import pytest
from command_line import FINAL, LEGACY, MANUAL
from file_system import git

TEST = b'is_scaled = type(opt).__name__ == "LossScaleOptimizer"\n'


@pytest.fixture
def accepted(command_line):
    """A directory with findings of all kinds, which the baseline `base.json` has."""
    command_line.write(a=LEGACY, b=MANUAL, c__d=LEGACY + TEST)
    assert command_line.run("migrate", "--check").status == 1
    ran = command_line.run("migrate", "--write-baseline", "base.json")
    assert (ran.status, ran.err) == (0, "")
    assert ran.out == (
        b"3 files checked: 0 to change, 0 failed, 0 safe, 0 unsafe, 0 manual\n"
        b"4 findings in the baseline: not counted\n"
    )
    return command_line


def findings(ran) -> list:
    return [
        (reported["path"], reported["line"], reported["code"])
        for reported in json.loads(ran.out)["findings"]
    ]


@pytest.mark.parametrize("form", ["text", "json", "sarif", "github", "html"])
def test_what_is_in_it_does_not_count(accepted, form):
    for options in (["--check"], [], ["--check", "--jobs", "1"], ["-v"]):
        ran = accepted.run("migrate", "--baseline", "base.json", "--report", form, *options)
        assert ran.status == 0
        assert b"@@" not in ran.out
        assert b"a.py" not in ran.out
    sarif = accepted.run("migrate", "--baseline", "base.json", "--report", "sarif").out
    assert json.loads(sarif)["runs"][0]["results"] == []


def test_moves_do_not_matter_but_counts_do(accepted):
    accepted.write(b=b"# first\n\nif True:\n    " + TEST + MANUAL + TEST)
    ran = accepted.run("migrate", "--baseline", "base.json", "--report", "json")
    assert ran.status == 1
    assert findings(ran) == [("b.py", 7, "LS906"), ("b.py", 8, "LS906")]
    accepted.write(b=MANUAL + LEGACY)
    ran = accepted.run("migrate", "--baseline", "base.json", "--report", "json")
    assert ran.status == 1
    assert findings(ran) == [("b.py", 6, "LS301")]


def test_a_new_edit_shows_the_diff_of_its_file_only(accepted):
    accepted.write(a=LEGACY + LEGACY.replace(b"opt =", b"other ="))
    ran = accepted.run("migrate", "--baseline", "base.json")
    assert ran.status == 1
    assert b"1 to change, 0 failed, 1 safe" in ran.out
    assert ran.out.count(b"@@ -") == 1


def test_writing_edits_what_is_in_it_too(accepted):
    ran = accepted.run("migrate", "--write", "--baseline", "base.json")
    assert ran.status == 0
    assert b"3 files checked: 2 rewritten, 0 failed, 0 safe" in ran.out
    assert accepted.bytes_on_disk()["a.py"] == FINAL


def test_stale_entries_are_shown_on_request(accepted):
    accepted.write(a=b"", c__d=LEGACY)
    os.unlink("b.py")
    ran = accepted.run("migrate", "--baseline", "base.json", "-v")
    assert ran.status == 0
    line = 'opt = tf.keras.mixed_precision.experimental.LossScaleOptimizer(opt, "dynamic")'
    test = TEST.decode().strip()
    assert [line for line in ran.err.splitlines() if "stale" in line] == [
        f"base.json: stale: a.py: LS301 {line}",
        f"base.json: stale: b.py: LS906 {test}",
        f"base.json: stale: c/d.py: LS906 {test}",
    ]
    ran = accepted.run("migrate", "--baseline", "base.json", "-v", "c", "--ignore", "LS906")
    assert "stale" not in ran.err.replace("base.json: stale: b.py", "")
    assert "stale" not in accepted.run("migrate", "--baseline", "base.json").err


def test_entries_of_a_file_that_cannot_be_read_are_not_stale(accepted):
    accepted.write(a=LEGACY + b"def broken(:\n")
    ran = accepted.run("migrate", "--baseline", "base.json", "-v")
    assert ran.status == 2
    assert "stale" not in ran.err


def test_it_is_the_same_from_every_directory_of_a_repository(command_line, monkeypatch):
    git("init", "-q")
    command_line.write(c__d=LEGACY)
    assert command_line.run("migrate", "--write-baseline", "base.json").status == 0
    monkeypatch.chdir("c")
    assert command_line.run("migrate", "--baseline", "../base.json").status == 0
    assert command_line.run("migrate", "--write-baseline", "other.json").status == 0
    with open("other.json", "rb") as other, open("../base.json", "rb") as base:
        assert other.read() == base.read()


def test_stdin(accepted):
    name = ("--stdin-filename", "a.py", "--baseline", "base.json")
    ran = accepted.run("migrate", "-", *name, stdin=LEGACY)
    assert (ran.status, ran.out) == (0, FINAL)
    assert "0 safe" in ran.err


def test_long_lines_and_odd_names(command_line):
    long = b"x = [" + b"0, " * 5000 + b"], tf.train.experimental.DynamicLossScale()\n"
    with open(b"\xff\n.py", "wb") as file:
        file.write(b"import tensorflow as tf\n" + long)
    ran = command_line.run("migrate", "--write-baseline", "base.json")
    assert ran.status == 0
    assert os.path.getsize("base.json") < 1000
    assert command_line.run("migrate", "--baseline", "base.json").status == 0


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"[]",
        b"\xff",
        b"[" * 100_000,
        b'{"tf-lossscale baseline": 2, "findings": []}',
        b'{"tf-lossscale baseline": 1}',
        b'{"tf-lossscale baseline": 1, "findings": {}}',
        b'{"tf-lossscale baseline": 1, "findings": [1]}',
        b'{"tf-lossscale baseline": 1, "findings": [{"path": "a", "code": "LS1", "text": 1}]}',
        b'{"tf-lossscale baseline": 1, "findings": [{"path": "a", "code": "b", "text": "", "count":'
        b" -1}]}",
        b'{"tf-lossscale baseline": 1, "findings": [',
    ],
)
def test_other_files_are_refused_and_not_replaced(legacy, content):
    legacy.path("base.json").write_bytes(content)
    ran = legacy.fails("--baseline", "base.json", says="base.json is not a baseline of")
    assert len(ran.err.splitlines()) == 1
    ran = legacy.fails("--write-baseline", "base.json", says="base.json exists and is not a base")
    assert len(ran.err.splitlines()) == 1
    assert legacy.bytes_on_disk()["base.json"] == content


def test_what_cannot_be_read_or_written(legacy):
    legacy.fails("--baseline", "none.json", says="none.json: no such file or directory; write one")
    legacy.fails("--baseline", ".", says="error: .: ")
    legacy.fails("--write-baseline", "none/base.json", says="none/base.json: no such file")
    os.mkfifo("fifo")
    legacy.fails("--baseline", "fifo", says="fifo: not a regular file")
    legacy.fails("--write-baseline", "fifo", says="fifo exists and is not a baseline")
    legacy.fails("--write-baseline", "/dev/full", says="/dev/full exists and is not")
    os.symlink("new.json", "link.json")
    legacy.fails("--write-baseline", "link.json", says="link.json is a symbolic link")
    assert legacy.run("migrate", "--write", "--write-baseline", "x.json").status == 2
    legacy.write(bad=LEGACY + b"(")
    ran = legacy.run("migrate", "--write-baseline", "new.json")
    assert ran.status == 2
    assert "new.json: not written, as 1 file failed; fix or --exclude it\n" in ran.err
    assert not os.path.exists("new.json")


@pytest.mark.parametrize("name", ["r.json", "sarif.json", "base.json", "text.txt"])
def test_what_the_command_wrote_is_no_configuration(legacy, name):
    """Reports and baselines name legacy paths, as configurations do (LS912)."""
    form = {"r.json": "json", "text.txt": "text"}.get(name, "sarif")
    options = ["--report", f"{form}:{name}"]
    if name == "base.json":
        options = ["--write-baseline", name]
    assert b"LS301" in legacy.run("migrate", "--keras", "2", *options).out or "base" in name
    ran = legacy.run("migrate", "--keras", "2")
    assert (b"LS301" in ran.out, b"LS912" in ran.out) == (True, False)


def test_it_can_be_replaced_by_a_new_one(accepted):
    os.unlink("b.py")
    assert accepted.run("migrate", "--write-baseline", "base.json").status == 0
    assert b"b.py" not in accepted.bytes_on_disk()["base.json"]
    both = ("--baseline", "base.json", "--write-baseline", "base.json")
    before = accepted.bytes_on_disk()["base.json"]
    assert accepted.run("migrate", *both).status == 0
    assert accepted.bytes_on_disk()["base.json"] == before
