"""Diffs: `git apply` makes the new file of them, and equal lines cost no time."""

import random
import time

import pytest
from file_system import git
from tf_lossscale_codemods.files import diffs
from tf_lossscale_codemods.files.line_edits import line_edits

LINES = ["a", "b", "c", "", "d\r", "\u00e9"]
ENDS = ["", "\n"]


def edited(draw, lines):
    """A copy with a few lines inserted or removed."""
    found = list(lines)
    for _ in range(draw.randrange(1, 5)):
        place = draw.randrange(len(found) + 1)
        if draw.random() < 0.5:
            found.insert(place, draw.choice(["new", "a"]))
        else:
            del found[place : place + 1]
    return found


@pytest.mark.parametrize("seed", range(20))
def test_git_applies_a_diff(seed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    draw = random.Random(seed)
    before = [draw.choice(LINES) for _ in range(draw.randrange(40))]
    old = ("\n".join(before) + draw.choice(ENDS)).encode()
    new = ("\n".join(edited(draw, before)) + draw.choice(ENDS)).encode()
    path = tmp_path / "file"
    path.write_bytes(old)
    (tmp_path / "patch").write_bytes(diffs.unified("file", old, new))
    git("apply", "--whitespace=nowarn", "--allow-empty", "patch")
    assert (path.read_bytes() if path.exists() else b"") == new


def test_equal_files_have_no_diff():
    assert diffs.unified("file", b"a\nb", b"a\nb") == b""
    assert diffs.replacements(b"a\nb", b"a\nb") == ()


@pytest.mark.parametrize("places", [[0], [20_000], [40_000], [0, 20_000, 40_000]], ids=str)
def test_many_equal_lines_take_no_time(places):
    """With `difflib` alone, 10,000 lines took 15 seconds, or all of them were in the diff."""
    before = ["x = 1\n"] * 40_000
    after = list(before)
    for place in reversed(places):
        after.insert(place, "y = 2\n")
    old, new = ("".join(lines).encode() for lines in (before, after))
    began = time.process_time()
    diff, found = diffs.unified("file", old, new), diffs.replacements(old, new)
    assert time.process_time() - began < 5
    added = [line for line in diff.split(b"\n") if line.startswith(b"+y")]
    assert len(added) == len(places)
    assert sum(edit.text.count("y = 2") for edit in found) == len(places)


@pytest.mark.parametrize("seed", range(50))
def test_edits_make_the_new_lines_of_the_old(seed):
    """Also of lines that were moved, or that occur more often than before."""
    draw = random.Random(seed)
    before = [draw.choice(LINES) for _ in range(draw.randrange(200))]
    after = edited(draw, before)
    if seed % 2:
        draw.shuffle(after)
    made, at = [], 0
    for start, end, new_start, new_end in line_edits(before, after):
        assert start < end or new_start < new_end
        assert at <= start <= end
        made += [*before[at:start], *after[new_start:new_end]]
        at = end
    assert [*made, *before[at:]] == after


def test_frequent_lines_between_edits_stay():
    """Most lines of a file occur in it several times, such as `else:` and empty ones."""
    draw = random.Random(0)
    before = [draw.choice(LINES) for _ in range(2_000)]
    after = ["new", *before[1:999], "new", *before[1_000:-1], "new"]
    edits = line_edits(before, after)
    assert [edit.new_end - edit.new_start for edit in edits] == [1, 1, 1]


@pytest.mark.parametrize("count", [1, 100, 20_000], ids="{} different lines".format)
def test_edits_everywhere_are_found_in_linear_time(count):
    """With `difflib`, 20,000 lines took a minute."""
    draw = random.Random(0)
    before = [f"x = {draw.randrange(count)}" for _ in range(30_000)]
    after = [line if draw.random() < 0.9 else "new" for line in before]
    began = time.process_time()
    edits = line_edits(before, after)
    assert time.process_time() - began < 5
    assert edits
