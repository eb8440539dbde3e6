"""A version guard is left as a whole and reported, or renamed as a whole, however it is written.

What the programs compute is proved by `tests/shim/programs/test_guards.py`, on every TensorFlow.
"""

import collections
import os

import pytest
from verbs import transform_once as transform

from .bundle import BUNDLE, GUARDS, bundled_guards, read_guards
from .guard_programs import guard_programs
from .leftovers import leftovers
from .migration import STAGES

LONG = os.environ.get("TFLS_TEST_SIZE") == "long"
CASES = list(guard_programs(7 if LONG else 499))


@pytest.mark.parametrize("program", CASES, ids=lambda program: program.name)
@pytest.mark.parametrize("stage", ["shim", "final2", "final3", "unsafe2"])
def test_guard_is_left_or_renamed_as_a_whole(program, stage):
    options = STAGES[stage]
    result = transform(program.source.encode(), options)
    assert result.error is None
    after = result.source.decode()
    stays = all(line in after for line in program.legacy)
    reported = [one for one in result.findings if one.code == "LS908"]
    if program.is_left:
        assert stays
        assert stage == "final3" or after == program.source
        assert {one.code for one in result.findings if one.applied} <= {"LS401"}
        places = [program.source.split("\n")[one.line - 1] for one in reported]
        assert len(places) == program.source.count(program.legacy[0])
        assert all(program.legacy[0] in place for place in places)
    if program.is_guard and leftovers(after):
        assert stays
        assert reported or any(one.is_left for one in result.findings)
    if not program.is_guard:
        assert not reported
    again = transform(result.source, options)
    assert again.source == result.source
    assert said(again) == said(result)


def test_bundle_is_what_the_rules_make_today():
    written = {line["name"]: line for line in read_guards(BUNDLE)}
    assert sorted(written) == sorted(program.name for program in guard_programs(GUARDS))
    today = {line["name"]: line for line in bundled_guards(1 if LONG else 5)}
    stale = sorted(name for name in today if today[name] != written[name])
    assert not stale, f"run `make programs`: {len(stale)} programs differ, the first is {stale[0]}"


def said(result):
    return collections.Counter((one.code, one.symbol) for one in result.findings if one.is_left)
