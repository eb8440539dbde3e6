"""A tree of files that break other codemods; after a run, every byte is compared."""

import os
import re
import shutil
import stat

import pytest
from command_line import CLEAN, FINAL, LEGACY
from file_system import snapshot

BOM = b"\xef\xbb\xbf"


def crlf(source: bytes) -> bytes:
    return source.replace(b"\n", b"\r\n")


def in_function(source: bytes) -> bytes:
    """The last line inside functions that are indented with tabs, between form feeds."""
    head, last = source.rsplit(b"\n\n", 1)
    return head + b"\n\x0c\ndef f():\n\tif True:\n\t\tx = 1\t# tab\n\t\t" + last + b"\x0c\n# \x0c\n"


def latin_1(source: bytes) -> bytes:
    return b"# -*- coding: latin-1 -*-\n# Gr\xf6\xdfe\n" + source + b"name = '\xe9\xff'\n"


def commented(source: bytes) -> bytes:
    return source.rstrip(b"\n") + b"  # noqa: E501  # type: ignore\n# the end"


def large(source: bytes) -> bytes:
    return source + b"".join(b"x%06d = '%s'\n" % (n, b"-" * 1000) for n in range(1000))


# Before and after: where both are given by one function, the same edit in another dress.
WRITTEN = {
    "plain.py": (LEGACY, FINAL),
    "stub.pyi": (LEGACY, FINAL),
    "window.pyw": (LEGACY, FINAL),
    "crlf.py": (crlf(LEGACY), crlf(FINAL)),
    "bom.py": (BOM + LEGACY, BOM + FINAL),
    "bom_crlf.py": (BOM + crlf(LEGACY), BOM + crlf(FINAL)),
    "mixed.py": (b"x = 1\r\ny = 2\n" + LEGACY, b"x = 1\r\ny = 2\n" + FINAL),
    "latin_1.py": (latin_1(LEGACY), latin_1(FINAL)),
    "no_end.py": (LEGACY.rstrip(b"\n"), FINAL.rstrip(b"\n")),
    "blank_end.py": (LEGACY + b"\n\n\n", FINAL + b"\n\n\n"),
    "tabs.py": (in_function(LEGACY), in_function(FINAL)),
    "noqa.py": (commented(LEGACY), commented(FINAL)),
    "semicolons.py": (
        b"a = 1;" + LEGACY + b"b = 2 ; c = 3 ;\n",
        b"a = 1;" + FINAL + b"b = 2 ; c = 3 ;\n",
    ),
    "with space.py": (LEGACY, FINAL),
    "ünïcode.py": (
        LEGACY + "ä = '漢字 \U0001f600'\n".encode(),
        FINAL + "ä = '漢字 \U0001f600'\n".encode(),
    ),
    "deep/er/plain.py": (LEGACY, FINAL),
    "large.py": (large(LEGACY), large(FINAL)),
}
LEFT = {
    "empty.py": b"",
    "bom_only.py": BOM,
    "clean.py": CLEAN,
    "blank.py": b" \n\t\n\x0c",
    "prose.py": b'"""Uses tf.contrib.mixed_precision.LossScaleOptimizer."""\n',
    "look_alike.py": LEGACY.replace(b"tensorflow as tf", b"npu_bridge.npu_init as tf"),
    "data.txt": LEGACY,
    "python_2_clean.py": b"print 'x'\n",
    ".venv/lib/a.py": LEGACY,
    "tools/anything/pyvenv.cfg": b"",
    "tools/anything/lib/a.py": LEGACY,
    "__pycache__/a.py": LEGACY,
}  # fmt: skip
FAILS = {
    "python_2.py": (b"print 'x'\n" + LEGACY, "python_2.py:1: error: cannot be parsed: .*Python 2"),
    "broken.py": (LEGACY + b"def f(:\n", "broken.py:4: error: .*; fix the syntax error"),
    "cut.py": (LEGACY + b"x = '''", "cut.py:4: error: cannot be parsed: "),
    "gbk.py": (LEGACY + "x = '漢字'\n".encode("gbk"), "gbk.py:4: error: .* decoded: .*UTF-8"),
    "cookie.py": (b"# coding: klingon\n" + LEGACY, "cookie.py:1: error: cannot be decoded: "),
    "null.py": (LEGACY + b"\x00\n", "null.py"),
    "lost.py": (LEGACY + b"if a:\n  b()\n # c\n # d\n", "lost.py:6: error: .*comment"),
    "blanks.py": (LEGACY + b"\n  \n", "blanks.py:4: error: not rewritten: the parser"),
    "form_feed.py": (b"\x0c" + LEGACY, r"form_feed.py:1: error: .* form feed .*\(remove it\)"),
    "inner.py": (LEGACY + b"if a:\n  b()\n\x0c  c()\n", "inner.py:6: error: .* form feed"),
    "old_mac.py": (LEGACY.replace(b"\n", b"\r"), "old_mac.py:3: error: .* carriage return .*LF"),
    "read_only.py": (LEGACY, "read_only.py: error: not written: the file is read-only; "),
    "broken.ipynb": (b'{"cells": [ LossScale', "broken.ipynb:1: error: is not a notebook: invalid"),
}  # fmt: skip


@pytest.fixture
def tree(command_line):
    for name, (source, _) in [*WRITTEN.items(), *FAILS.items()]:
        command_line.path(name).write_bytes(source)
    for name, source in LEFT.items():
        command_line.path(name).write_bytes(source)
    command_line.path("read_only.py").chmod(0o444)
    command_line.path("outside/target.py").write_bytes(LEGACY)
    shutil.move("outside", "../outside")
    os.symlink("plain.py", "link_inside.py")
    os.symlink("../outside/target.py", "link_outside.py")
    os.symlink("deep", "link_to_directory")
    os.symlink("..", "deep/loop")
    os.symlink("nowhere.py", "link_to_nothing.py")
    return command_line


def links(command_line) -> dict:
    states = snapshot(command_line.directory)
    return {path: state for path, state in states.items() if stat.S_ISLNK(state[0])}


def test_everything_that_can_is_written_and_nothing_else(tree):
    before = links(tree)
    ran = tree.run("migrate", "--write")
    assert ran.status == 2
    found = tree.bytes_on_disk()
    for name, (_, after) in WRITTEN.items():
        assert found.pop(name) == after, name
    for name, source in LEFT.items():
        assert found.pop(name) == source, name
    for name, (source, _) in FAILS.items():
        assert found.pop(name) == source, name
    assert found == {"link_inside.py": FINAL, "link_outside.py": LEGACY}
    assert tree.path("../outside/target.py").read_bytes() == LEGACY
    assert links(tree) == before
    assert sorted(os.listdir(tree.directory / "../outside")) == ["target.py"]
    lines = ran.err.splitlines()  # each failure is one line with its place and a hint
    assert len(lines) == len(FAILS)
    for name, (_, says) in FAILS.items():
        (line,) = [line for line in lines if line.startswith(name)]
        assert re.match(says, line)
        assert ";" in line
    before = tree.bytes_on_disk()
    assert b" 0 rewritten, " in tree.run("migrate", "--write").out
    assert tree.bytes_on_disk() == before


@pytest.mark.parametrize("options", [[], ["--check"], ["--unsafe"], ["--mark"]], ids=" ".join)
def test_looking_writes_nothing(tree, options):
    before = snapshot(tree.directory)
    assert tree.run("migrate", *options).status == 2
    assert snapshot(tree.directory) == before


@pytest.mark.parametrize("name", sorted({*WRITTEN, *FAILS} - {"large.py"}))
def test_stdin_takes_the_same_bytes(tree, name):
    source, after = WRITTEN.get(name) or (FAILS[name][0], FAILS[name][0])
    if name == "read_only.py":
        after = FINAL  # on stdin it is as good as any
    ran = tree.run("migrate", "-", "--stdin-filename", name, stdin=source)
    assert ran.out == after
    assert ran.status == (2 if source == after else 1)


@pytest.mark.parametrize("target", [["--to", "shim"], ["--keras", "3"]], ids=" ".join)
def test_other_targets_keep_the_rest_of_the_bytes(tree, target):
    tree.run("migrate", "--write", *target)
    found = tree.bytes_on_disk()
    for name, (source, _) in WRITTEN.items():
        ours, theirs = found[name].split(b"\n"), source.split(b"\n")
        assert found[name] != source, name
        assert [line for line in theirs if b"tf" not in line and line not in ours] == [], name
        assert found[name].startswith(BOM) == source.startswith(BOM)
        assert found[name].count(b"\r") >= source.count(b"\r")
