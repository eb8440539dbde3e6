"""Programs of several files: what the migration leaves is reported, and the bundle is current.

What the programs compute is proved by `tests/shim/programs/test_several_files.py`.
"""

import os

import pytest

from .bundle import BUNDLE, FILES, bundled_files, read_files
from .file_programs import file_programs
from .leftovers import leftovers

LONG = os.environ.get("TFLS_TEST_SIZE") == "long"
MODULE_THAT_STAYS = "tensorflow.train.experimental"
"""A module that every TensorFlow has; only some of its names are legacy."""


def test_bundle_is_what_the_rules_make_today():
    written = {line["name"]: line for line in read_files(BUNDLE)}
    assert sorted(written) == sorted(program.name for program in file_programs(FILES))
    today = {line["name"]: line for line in bundled_files(FILES if LONG else FILES // 5)}
    stale = sorted(name for name in today if today[name] != written[name])
    assert not stale, f"run `make programs`: {len(stale)} programs differ, the first is {stale[0]}"


@pytest.mark.parametrize("stage", ["shim", "final2", "final3"])
def test_every_legacy_name_is_rewritten_or_reported(stage):
    rewritten = 0
    for line in read_files(BUNDLE):
        keeps_guards = line["name"].startswith("guards")  # an old branch stays, and is no work left
        if not line["left"][stage] and not keeps_guards:
            found = leftovers("\n".join(line["after"][stage].values()))
            assert set(found) <= {MODULE_THAT_STAYS}, line["name"]
            rewritten += 1
    assert rewritten >= FILES // 5


def test_programs_have_several_files_and_are_always_the_same():
    first, second = list(file_programs(60)), list(file_programs(60))
    assert first == second
    assert all(2 <= len(program.files) <= 9 for program in first)
    assert len({program.family for program in first}) >= 6
