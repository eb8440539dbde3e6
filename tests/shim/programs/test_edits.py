"""Edits as text give back what they were made of, and refuse any other text."""

import pytest

from programs.edits import edited, edits_between, read_hunk
from programs.migrations import read_migrations, write_migrations

TEXTS = [
    ("", "import a\n"),
    ("a\nb\nc\n", "a\nc\n"),
    ("a\nb\nc\n", "a\nx\ny\nc\n"),
    ("a\nb\nc", "a\nb\nc\n"),
    ("--- a\n+++ b\n@@ c\n", "=== a\n+++ b\n-- c\n"),
    ("a\n\n\nb\n", "\nb\na\n"),
]


def hunks_of(lines):
    found, place = [], 0
    while place < len(lines):
        hunk, place = read_hunk(lines, place)
        found.append(hunk)
    return found


@pytest.mark.parametrize(("before", "after"), TEXTS)
def test_edits_make_one_text_of_the_other(before, after):
    hunks = hunks_of(list(edits_between(before, after)))
    assert edited(before, hunks) == after
    assert edited(before, []) == before


def test_edits_of_another_text_are_refused():
    hunks = hunks_of(list(edits_between("a\nb\n", "a\nc\n")))
    with pytest.raises(ValueError, match="line 2"):
        edited("a\nx\n", hunks)
    with pytest.raises(ValueError, match="begins with"):
        read_hunk(["@@ -1,1 +1,1 @@", "a", "b"], 0)


@pytest.mark.parametrize(("before", "after"), TEXTS)
def test_migrations_are_read_as_they_were_written(tmp_path, before, after):
    path = str(tmp_path / "migrated" / "kind.txt")
    single = {"name": "single", "before": before, "left": {"shim": ["LS1"], "final2": []}}
    several = {"name": "several", "files": {"a.py": before, "b/c.py": after}}
    single["after"] = {"final2": before, "shim": after}
    several["after"] = {
        stage: {"a.py": text, "b/c.py": after} for stage, text in single["after"].items()
    }
    write_migrations(path, [("1", single), ("2", several)])
    found = read_migrations(path)
    given = {"name": "single", "before": before}
    assert dict(given, **found["1"].applied_to(given)) == single
    given = {"name": "several", "files": several["files"]}
    assert dict(given, **found["2"].applied_to(given)) == several
