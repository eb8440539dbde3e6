"""Programs with version guards compute the same before and after their migration.

A guard supports TensorFlow from 2.3 on, so most programs run before the migration, too.
"""

import sys
import types

import pytest

from programs.execution import MAJOR_MINOR, execute
from programs.test_programs import KERAS_3
from programs.texts import read_programs

pytestmark = pytest.mark.skipif(MAJOR_MINOR == "1.15", reason="they are for TensorFlow 2")

IS_OLD = MAJOR_MINOR == "2.3"
STAGES = ["shim", "final3"]
if not KERAS_3:
    STAGES.append("final2")
if not IS_OLD:
    STAGES += ["unsafe3"] if KERAS_3 else ["unsafe2", "unsafe3"]


def runs_here(program):
    return sys.version_info >= (3, 10) or "\nmatch " not in program["before"]


PROGRAMS = [program for program in read_programs("guards") if runs_here(program)]


@pytest.fixture(autouse=True)
def flags(monkeypatch):
    """The module from which the programs import flags."""
    module = types.ModuleType("guard_flags")
    numbers = tuple(int(part) for part in MAJOR_MINOR.split("."))
    module.OLD = module.IS_TF_2_3 = numbers < (2, 4)
    module.TF_VERSION = numbers
    module.is_old = lambda: numbers < (2, 4)
    monkeypatch.setitem(sys.modules, "guard_flags", module)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program["name"])
def test_same_after_migration(program):
    before = program["before"]
    ran = execute(before, "before")
    ran_already = {before}
    for stage in STAGES:
        after = program["after"][stage]
        if after in ran_already:
            continue
        if IS_OLD and stage != "shim" and not program["is_left"][stage]:
            continue  # the final API needs TensorFlow 2.4
        actual = execute(after, stage)
        ran_already.add(after)
        if not is_error(ran):
            assert actual == ran, f"{stage}\n{after}"
        elif not IS_OLD and not program["is_left"][stage]:
            assert not is_error(actual), f"{stage}\n{after}"


def is_error(result):
    return isinstance(result, dict) and "error" in result


def test_most_programs_run_before_their_migration():
    """Nothing would be proved by programs that fail anyway."""
    results = [execute(program["before"], "before") for program in PROGRAMS[::9]]
    assert sum(not is_error(result) for result in results) >= len(results) // 2
